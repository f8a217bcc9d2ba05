"""A report as one HTML file: nothing to fetch, readable on a phone, in light and dark mode."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from plaudit.report import svg
from plaudit.report.document import Bars, Curves, Part, Report, Scatter, Table

WORDS = 24
"""Characters past which a cell is a text rather than a number."""
STYLE = """
:root { color-scheme: light dark; --paper: #fdfdfb; --ink: #1d2126; --quiet: #667079; --line: #dcdfe2;
  --track: #eceeef; --bar: #c2571a; --better: #1b7f79; --worse: #c2571a; }
@media (prefers-color-scheme: dark) { :root { --paper: #15181b; --ink: #e6e8ea; --quiet: #98a2ab;
  --line: #333a40; --track: #262b30; --bar: #e08a4f; --better: #4fbdb5; --worse: #e08a4f; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 44rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.1rem; margin: 2.5rem 0 .5rem; }
.finding { font-size: 1.1rem; margin: 0 0 1.5rem; }
.note, dt, .legend, .made { color: var(--quiet); font-size: .875rem; }
dl { display: grid; grid-template-columns: fit-content(45%) 1fr; gap: .15rem 1rem; margin: 0; }
dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .35rem .6rem; border-bottom: 1px solid var(--line); }
th { color: var(--quiet); font-weight: 500; }
td { white-space: nowrap; }
th:first-child, td:first-child, .words { white-space: normal; text-align: left; }
th:first-child, td:first-child { padding-left: 0; }
svg { display: block; width: 100%; max-width: 36rem; height: auto; font: 12.5px system-ui, sans-serif;
  fill: var(--ink); }
svg .quiet { fill: var(--quiet); font-size: 11.5px; }
svg .track { fill: var(--track); }
svg .bar { fill: var(--bar); }
svg .interval { stroke: var(--ink); stroke-width: 1.2; fill: none; opacity: .75; }
svg .grid { stroke: var(--line); }
svg .better { fill: var(--better); fill-opacity: .65; }
svg .worse { fill: var(--worse); fill-opacity: .65; }
.dot { display: inline-block; width: .7em; height: .7em; border-radius: 50%; margin: 0 .3em 0 1em; }
.dot.better { background: var(--better); }
.dot.worse { background: var(--worse); }
.dot:first-child { margin-left: 0; }
.made { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: .5rem; }
"""


def page(report: Report) -> str:
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in report.facts)
    parts = "\n".join(_part(part) for part in report.parts)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(report.title)}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{escape(report.title)}</h1>
<p class="finding">{escape(report.finding)}</p>
<dl>{facts}</dl>
{parts}
<p class="made">{escape(report.footer)}</p>
</body>
</html>
"""


def _part(part: Part) -> str:
    note = f'<p class="note">{escape(part.note)}</p>' if part.note else ""
    return f"<section>\n<h2>{escape(part.title)}</h2>\n{note}\n{_body(part)}\n</section>"


def _body(part: Part) -> str:
    match part:
        case Bars():
            return svg.bars(part)
        case Curves():
            return svg.curves(part)
        case Scatter():
            return (
                f'<p class="legend"><span class="dot better"></span>{escape(part.legend[0])}'
                f'<span class="dot worse"></span>{escape(part.legend[1])}'
                f" &nbsp;·&nbsp; upwards: {escape(part.y_label)}</p>{svg.scatter(part)}"
            )
        case Table():
            return _table(part)


def _table(part: Table) -> str:
    """A column with long texts is written from the left, its header too."""
    has_words = [any(len(row[place]) > WORDS for row in part.rows) for place in range(len(part.header))]
    kinds = [' class="words"' if is_words else "" for is_words in has_words]
    head = _row("th", part.header, kinds)
    rows = "\n".join(_row("td", row, kinds) for row in part.rows)
    return f'<div class="wide"><table><thead>{head}</thead>\n<tbody>{rows}</tbody></table></div>'


def _row(tag: str, cells: Sequence[str], kinds: Sequence[str]) -> str:
    made = (f"<{tag}{kind}>{escape(cell)}</{tag}>" for cell, kind in zip(cells, kinds, strict=True))
    return f"<tr>{''.join(made)}</tr>"
