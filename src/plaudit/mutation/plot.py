"""Curves over steps as an SVG picture, by hand: legible on its own, by day and by night."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from plaudit.audit.svg import ticks

WIDTH, HEIGHT = 640, 330
LEFT, RIGHT, TOP, BOTTOM = 48, 100, 24, 44
STYLE = """
.curves { font: 12.5px system-ui, sans-serif; fill: #1d2126; }
.curves .grid { stroke: #dcdfe2; } .curves .quiet { fill: #667079; }
.curves .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.curves .level { stroke: #667079; stroke-width: 1.3; stroke-dasharray: 5 4; }
.c0 { stroke: #1b7f79; } .c1 { stroke: #c2571a; } .c2 { stroke: #3b6fb5; } .c3 { stroke: #8a5aa5; }
.f0 { fill: #1b7f79; } .f1 { fill: #c2571a; } .f2 { fill: #3b6fb5; } .f3 { fill: #8a5aa5; }
@media (prefers-color-scheme: dark) { .curves { fill: #e6e8ea; } .curves .grid { stroke: #333a40; }
  .curves .quiet { fill: #98a2ab; } .curves .level { stroke: #98a2ab; }
  .c0 { stroke: #4fbdb5; } .c1 { stroke: #e08a4f; } .c2 { stroke: #7ba7e0; } .c3 { stroke: #b98ed1; }
  .f0 { fill: #4fbdb5; } .f1 { fill: #e08a4f; } .f2 { fill: #7ba7e0; } .f3 { fill: #b98ed1; } }
"""
COLOURS = 4


@dataclass(frozen=True, slots=True)
class Curve:
    """A named line; x rises from point to point."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Level:
    """A value to compare with, drawn across."""

    name: str
    value: float


def curves(lines: Sequence[Curve], *, x_label: str, y_label: str, levels: Sequence[Level] = ()) -> str:
    """The picture: lines are named above it, levels at its right."""
    xs = [x for line in lines for x, _ in line.points] or [0.0]
    ys = [y for line in lines for _, y in line.points] + [level.value for level in levels] or [0.0]
    x_ticks, y_ticks = ticks(0.0, max(xs)), ticks(min(*ys, 0.0), max(ys))
    floor, right = HEIGHT - BOTTOM, WIDTH - RIGHT

    def across(x: float) -> float:
        return LEFT + (x - x_ticks[0]) / (x_ticks[-1] - x_ticks[0]) * (right - LEFT)

    def down(y: float) -> float:
        return TOP + (y_ticks[-1] - y) / (y_ticks[-1] - y_ticks[0]) * (floor - TOP)

    parts = [
        f'<path d="M{LEFT} {down(y):.1f}H{right}" class="grid"/>'
        f'<text x="{LEFT - 8}" y="{down(y) + 4:.1f}" text-anchor="end" class="quiet">{y:g}</text>'
        for y in y_ticks
    ]
    parts += [
        f'<text x="{across(x):.1f}" y="{floor + 18}" text-anchor="middle" class="quiet">{x:,.7g}</text>'
        for x in x_ticks
    ]
    parts += [f'<path d="M{LEFT} {down(level.value):.1f}H{right}" class="level"/>' for level in levels]
    parts += [
        f'<text x="{right + 8}" y="{y + 4:.1f}" class="quiet">{escape(name)}</text>'
        for y, name in _apart([(down(level.value), level.name) for level in levels])
    ]
    for number, line in enumerate(lines):
        if line.points:
            path = "L".join(f"{across(x):.1f} {down(y):.1f}" for x, y in line.points)
            parts.append(f'<path d="M{path}" class="line c{number % COLOURS}"/>')
    parts.append(_legend(lines, right))
    parts.append(
        f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x_label)}</text>'
        f'<text x="{LEFT}" y="{TOP - 4}" class="quiet">{escape(y_label)}</text>'
    )
    named = [*(line.name for line in lines), *(level.name for level in levels)]
    names = ", ".join(filter(None, named))
    label = escape(f"{y_label} over {x_label}: {names}", quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" class="curves" role="img" '
        f'aria-label="{label}"><style>{STYLE}</style>{"".join(parts)}</svg>'
    )


def _legend(lines: Sequence[Curve], right: float) -> str:
    names = "".join(
        f'<tspan dx="14" class="f{number % COLOURS}">&#9632;</tspan><tspan dx="4">{escape(line.name)}</tspan>'
        for number, line in enumerate(lines)
    )
    return f'<text x="{right}" y="{TOP - 4}" text-anchor="end">{names}</text>'


def _apart(names: Sequence[tuple[float, str]], *, gap: float = 15.0) -> list[tuple[float, str]]:
    """The names from top to bottom, moved down where they would cover one another."""
    placed: list[tuple[float, str]] = []
    for y, name in sorted(names):
        lowest = placed[-1][0] + gap if placed else y
        placed.append((max(y, lowest), name))
    return placed
