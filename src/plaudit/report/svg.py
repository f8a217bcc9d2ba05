"""Charts as SVG: bars with intervals, points, and curves. Only curves bring their own colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from plaudit.report.document import Bars, Curve, Curves, Scatter

WIDTH = 400
"""Units, not pixels: about a phone's width, so that words keep a readable size there."""
ROW = 40
LEFT, RIGHT, TOP, BOTTOM = 34, 10, 12, 42
PLOT_HEIGHT = 270
DIGIT = 7
"""Room for a character of the numbers beside a bar."""
CURVE_WIDTH, CURVE_HEIGHT = 640, 330
CURVE_LEFT, CURVE_RIGHT, CURVE_TOP, CURVE_BOTTOM = 48, 100, 24, 44
LIGHT = ("#1b7f79", "#c2571a", "#3b6fb5", "#8a5aa5", "#a3801a", "#b0416f", "#5b7d2e", "#4d5b66")
DARK = ("#4fbdb5", "#e08a4f", "#7ba7e0", "#b98ed1", "#d9b654", "#e583a9", "#9dc267", "#a3b1bc")
NAMED_IN_A_ROW, LEGEND_ROW = 3, 16


def bars(chart: Bars) -> str:
    """A row for each share: its name, and below it the bar, the interval and the numbers."""
    longest = max((len(f"100% {share.hits} of {share.of}") for _, share in chart.bars), default=0)
    track = WIDTH - max(104, 12 + DIGIT * longest)
    rows = []
    for number, (name, share) in enumerate(chart.bars):
        top = number * ROW
        rows.append(f'<text x="0" y="{top + 15}" class="name">{escape(name)}</text>')
        rows.append(f'<rect x="0" y="{top + 22}" width="{track}" height="12" rx="3" class="track"/>')
        if share.value is None:
            rows.append(f'<text x="{track + 12}" y="{top + 33}" class="quiet">none counted</text>')
            continue
        low, high, middle = share.low * track, share.high * track, top + 28
        interval = (
            f'<path d="M{low:.1f} {middle}H{high:.1f}M{low:.1f} {middle - 5}v10M{high:.1f} {middle - 5}v10" '
            'class="interval"/>'
        )
        rows.append(
            f'<rect x="0" y="{top + 22}" width="{share.value * track:.1f}" height="12" rx="3" class="bar"/>'
            f"{interval if chart.with_intervals else ''}"
            f'<text x="{track + 12}" y="{top + 33}">{share.value:.0%}'
            f'<tspan class="quiet"> {share.hits} of {share.of}</tspan></text>'
        )
    height = len(chart.bars) * ROW
    label = f"{chart.title}: " + "; ".join(f"{name} {share}" for name, share in chart.bars)
    return _svg(height, label, "".join(rows))


@dataclass(frozen=True, slots=True)
class _Axes:
    """Where numbers lie in a picture whose axes go from their first round number to their last."""

    x_ticks: Sequence[float]
    y_ticks: Sequence[float]
    left: float
    right: float
    top: float
    floor: float

    def across(self, x: float) -> float:
        share = (x - self.x_ticks[0]) / (self.x_ticks[-1] - self.x_ticks[0])
        return self.left + share * (self.right - self.left)

    def down(self, y: float) -> float:
        share = (self.y_ticks[-1] - y) / (self.y_ticks[-1] - self.y_ticks[0])
        return self.top + share * (self.floor - self.top)

    def drawn(self, x_label: str, *, label_at: float) -> list[str]:
        """The grid, its numbers, and the name of the axis across."""
        rows = [
            f'<path d="M{self.left} {y:.1f}H{self.right}" class="grid"/>'
            f'<text x="{self.left - 8}" y="{y + 4:.1f}" text-anchor="end" class="quiet">{number:g}</text>'
            for number, y in ((number, self.down(number)) for number in self.y_ticks)
        ]
        rows += [
            f'<text x="{self.across(x):.1f}" y="{self.floor + 18}" text-anchor="middle" class="quiet">'
            f"{x:,.7g}</text>"
            for x in self.x_ticks
        ]
        middle = (self.left + self.right) / 2
        return [*rows, f'<text x="{middle}" y="{label_at}" text-anchor="middle">{escape(x_label)}</text>']


def scatter(chart: Scatter) -> str:
    """Points over two axes; each axis has round numbers."""
    xs = [x for x, _, _ in chart.points] or [0.0]
    across, down = ticks(min(xs), max(xs)), ticks(*chart.y_range)
    axes = _Axes(across, down, LEFT, WIDTH - RIGHT, TOP, PLOT_HEIGHT - BOTTOM)
    parts = axes.drawn(chart.x_label, label_at=PLOT_HEIGHT - 6)
    parts += [
        f'<circle cx="{axes.across(x):.1f}" cy="{axes.down(y):.1f}" r="4" '
        f'class="{"better" if is_better else "worse"}"/>'
        for x, y, is_better in chart.points
    ]
    return _svg(PLOT_HEIGHT, f"{chart.title}: {len(chart.points)} points", "".join(parts))


def curves(chart: Curves) -> str:
    """A picture that is legible on its own: lines are named above it, levels at its right."""
    lines, levels = chart.lines, chart.levels
    xs = [x for line in lines for x, _ in line.points] or [0.0]
    ys = [y for line in lines for _, y in line.points] + [level.value for level in levels] or [0.0]
    right = CURVE_WIDTH - CURVE_RIGHT
    top = CURVE_TOP + max(0, len(lines) - 1) // NAMED_IN_A_ROW * LEGEND_ROW
    across, down = ticks(0.0, max(xs)), ticks(min(*ys, 0.0), max(ys))
    axes = _Axes(across, down, CURVE_LEFT, right, top, CURVE_HEIGHT - CURVE_BOTTOM)
    parts = axes.drawn(chart.x_label, label_at=CURVE_HEIGHT - 6)
    heights = [(axes.down(level.value), level.name) for level in levels]
    parts += [f'<path d="M{CURVE_LEFT} {y:.1f}H{right}" class="level"/>' for y, _ in heights]
    parts += [
        f'<text x="{right + 8}" y="{y + 4:.1f}" class="quiet">{escape(name)}</text>'
        for y, name in _apart(heights)
    ]
    for number, line in enumerate(lines):
        if line.points:
            path = "L".join(f"{axes.across(x):.1f} {axes.down(y):.1f}" for x, y in line.points)
            parts.append(f'<path d="M{path}" class="line c{number % len(LIGHT)}"/>')
    parts.append(_legend(lines, right))
    parts.append(f'<text x="{CURVE_LEFT}" y="{top - 4}" class="quiet">{escape(chart.y_label)}</text>')
    names = ", ".join(filter(None, [*(line.name for line in lines), *(level.name for level in levels)]))
    label = escape(f"{chart.y_label} over {chart.x_label}: {names}", quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {CURVE_WIDTH} {CURVE_HEIGHT}" '
        'class="curves" role="img" '
        f'aria-label="{label}"><style>{CURVE_STYLE}</style>{"".join(parts)}</svg>'
    )


def ticks(low: float, high: float) -> list[float]:
    """Three to eight round numbers from `low` (or just below) to `high` (or just above)."""
    span = high - low or 1.0
    power = 10.0 ** math.floor(math.log10(span))
    step = next(power * factor for factor in (0.2, 0.5, 1.0, 2.0) if span / (power * factor) <= 6)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 10) for number in range(first, max(last, first + 1) + 1)]


def _svg(height: float, label: str, inside: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(label, quote=True)}" '
        f'preserveAspectRatio="xMinYMin meet">{inside}</svg>'
    )


def _legend(lines: Sequence[Curve], right: float) -> str:
    rows = []
    for start in range(0, len(lines), NAMED_IN_A_ROW):
        names = "".join(
            f'<tspan dx="14" class="f{number % len(LIGHT)}">&#9632;</tspan>'
            f'<tspan dx="4">{escape(lines[number].name)}</tspan>'
            for number in range(start, min(start + NAMED_IN_A_ROW, len(lines)))
        )
        y = CURVE_TOP - 4 + start // NAMED_IN_A_ROW * LEGEND_ROW
        rows.append(f'<text x="{right}" y="{y}" text-anchor="end">{names}</text>')
    return "".join(rows)


def _apart(names: Sequence[tuple[float, str]], *, gap: float = 15.0) -> list[tuple[float, str]]:
    """The names from top to bottom, moved down where they would cover one another."""
    placed: list[tuple[float, str]] = []
    for y, name in sorted(names):
        lowest = placed[-1][0] + gap if placed else y
        placed.append((max(y, lowest), name))
    return placed


def _colours(colours: Sequence[str]) -> str:
    rules = (
        f".c{number} {{ stroke: {one}; }} .f{number} {{ fill: {one}; }}" for number, one in enumerate(colours)
    )
    return " ".join(rules)


CURVE_STYLE = f"""
.curves {{ font: 12.5px system-ui, sans-serif; fill: #1d2126; }}
.curves .grid {{ stroke: #dcdfe2; }} .curves .quiet {{ fill: #667079; }}
.curves .line {{ fill: none; stroke-width: 2; stroke-linejoin: round; }}
.curves .level {{ stroke: #667079; stroke-width: 1.3; stroke-dasharray: 5 4; }}
{_colours(LIGHT)}
@media (prefers-color-scheme: dark) {{ .curves {{ fill: #e6e8ea; }} .curves .grid {{ stroke: #333a40; }}
  .curves .quiet {{ fill: #98a2ab; }} .curves .level {{ stroke: #98a2ab; }}
  {_colours(DARK)} }}
"""
