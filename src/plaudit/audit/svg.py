"""Charts as SVG, by hand: bars with intervals, and points. Colours come from the page's own style."""

from __future__ import annotations

import math
from html import escape

from plaudit.audit.report import Bars, Scatter

WIDTH = 400
"""Units, not pixels: about a phone's width, so that words keep a readable size there."""
ROW = 40
LEFT, RIGHT, TOP, BOTTOM = 34, 10, 12, 42
PLOT_HEIGHT = 270


def bars(chart: Bars) -> str:
    """A row for each share: its name, and below it the bar, the interval and the numbers."""
    track = WIDTH - 104
    rows = []
    for number, (name, share) in enumerate(chart.bars):
        top = number * ROW
        rows.append(f'<text x="0" y="{top + 15}" class="name">{escape(name)}</text>')
        rows.append(f'<rect x="0" y="{top + 22}" width="{track}" height="12" rx="3" class="track"/>')
        if share.value is None:
            rows.append(f'<text x="{track + 12}" y="{top + 33}" class="quiet">none counted</text>')
            continue
        low, high, middle = share.low * track, share.high * track, top + 28
        rows.append(
            f'<rect x="0" y="{top + 22}" width="{share.value * track:.1f}" height="12" rx="3" class="bar"/>'
            f'<path d="M{low:.1f} {middle}H{high:.1f}M{low:.1f} {middle - 5}v10M{high:.1f} {middle - 5}v10" '
            'class="interval"/>'
            f'<text x="{track + 12}" y="{top + 33}">{share.value:.0%}'
            f'<tspan class="quiet"> {share.hits} of {share.of}</tspan></text>'
        )
    height = len(chart.bars) * ROW
    label = f"{chart.title}: " + "; ".join(f"{name} {share}" for name, share in chart.bars)
    return _svg(height, label, "".join(rows))


def scatter(chart: Scatter) -> str:
    """Points over two axes; each axis has round numbers."""
    xs = [x for x, _, _ in chart.points] or [0.0]
    x_ticks, y_ticks = ticks(min(xs), max(xs)), ticks(*chart.y_range)
    x_low, x_high = min(x_ticks[0], *xs), max(x_ticks[-1], *xs)
    y_low, y_high = chart.y_range

    def across(x: float) -> float:
        return LEFT + (x - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT)

    def down(y: float) -> float:
        return TOP + (y_high - y) / (y_high - y_low) * (PLOT_HEIGHT - TOP - BOTTOM)

    floor = PLOT_HEIGHT - BOTTOM
    parts = [
        f'<path d="M{LEFT} {down(y):.1f}H{WIDTH - RIGHT}" class="grid"/>'
        f'<text x="{LEFT - 8}" y="{down(y) + 4:.1f}" text-anchor="end" class="quiet">{y:g}</text>'
        for y in y_ticks
    ]
    parts += [
        f'<text x="{across(x):.1f}" y="{floor + 18}" text-anchor="middle" class="quiet">{x:g}</text>'
        for x in x_ticks
    ]
    parts += [
        f'<circle cx="{across(x):.1f}" cy="{down(y):.1f}" r="4" class="{_kind(is_better)}"/>'
        for x, y, is_better in chart.points
    ]
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{PLOT_HEIGHT - 6}" text-anchor="middle">'
        f"{escape(chart.x_label)}</text>"
    )
    return _svg(PLOT_HEIGHT, f"{chart.title}: {len(chart.points)} points", "".join(parts))


def ticks(low: float, high: float) -> list[float]:
    """Three to eight round numbers from `low` (or just below) to `high` (or just above)."""
    span = high - low or 1.0
    power = 10.0 ** math.floor(math.log10(span))
    step = next(power * factor for factor in (0.2, 0.5, 1.0, 2.0) if span / (power * factor) <= 6)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 10) for number in range(first, max(last, first + 1) + 1)]


def _kind(is_better: bool) -> str:
    return "better" if is_better else "worse"


def _svg(height: float, label: str, inside: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(label, quote=True)}" '
        f'preserveAspectRatio="xMinYMin meet">{inside}</svg>'
    )
