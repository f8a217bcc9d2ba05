"""What a training found, as one HTML file: the curve of rewards, the best rewrites, and what failed."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from plaudit.audit.page import STYLE
from plaudit.files import write_whole
from plaudit.mutation.history import History, Point
from plaudit.mutation.plot import Curve, Level, curves

SHOWN = 20
WINDOW = 5
"""Rollouts over which the first and the last reward are taken."""


def write_report(path: Path, history: History, facts: Sequence[tuple[str, str]]) -> None:
    """Write the page; nothing in it is fetched from elsewhere."""
    write_whole(path, report(history, facts).encode("utf-8", "replace"))


def report(history: History, facts: Sequence[tuple[str, str]]) -> str:
    """The page itself."""
    counted = (
        ("steps", f"{history.steps:,} in {history.episodes:,} episodes"),
        ("steps that came to nothing", nothing(history)),
        *facts,
    )
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in counted)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Query mutation</title>
<style>{STYLE} .left {{ text-align: left; }} td.left {{ white-space: normal; }}</style>
</head>
<body>
<h1>Query mutation</h1>
<p class="finding">{escape(finding(history.points))}</p>
<dl>{listed}</dl>
<section>
<h2>Reward over steps</h2>
<p class="note">The mean over the episodes that ended in each rollout. Gain is the quality alone, from 0 to 1,
with drift and cost not counted.</p>
{picture(history.points)}
</section>
<section>
<h2>The best rewrites</h2>
{_rewrites(history)}
</section>
{_failures(history)}<p class="made">Written by plaudit train-mutator.</p>
</body>
</html>
"""


def finding(points: Sequence[Point]) -> str:
    """The result in one sentence."""
    rewards = [point.reward for point in points if point.reward is not None]
    if not rewards:
        return "No episode ended, so there is nothing to report."
    window = max(1, min(WINDOW, len(rewards) // 2))
    first, last = sum(rewards[:window]) / window, sum(rewards[-window:]) / window
    return f"Reward per episode: {first:+.3f} at the beginning, {last:+.3f} at the end."


def nothing(history: History) -> str:
    """How many steps earned nothing because something failed, and where it failed."""
    if not history.failures:
        return "none"
    stages = ", ".join(f"{stage} {count:,}" for stage, count in sorted(history.failures.items()))
    return f"{history.steps_failed():,}, which earned nothing; by stage: {stages}"


def picture(points: Sequence[Point]) -> str:
    """The curve of rewards, and that of the quality gained."""
    rewards = [(float(point.steps), point.reward) for point in points if point.reward is not None]
    gains = [(float(point.steps), point.gain) for point in points if point.gain is not None]
    return curves(
        [Curve("reward", rewards), Curve("gain", gains)],
        x_label="steps",
        y_label="mean per episode",
        levels=[Level("", 0.0)],
    )


def _rewrites(history: History) -> str:
    rows = "\n".join(
        f'<tr><td class="words">{escape(one.before)}</td><td class="left">{escape(one.after)}</td>'
        f"<td>{one.quality_before:.2f}</td><td>{one.quality_after:.2f}</td></tr>"
        for one in history.top(SHOWN)
    )
    if not rows:
        return "<p>No rewrite was answered better than the question it came from.</p>"
    head = '<tr><th>before</th><th class="left">after</th><th>score before</th><th>score after</th></tr>'
    return f'<div class="wide"><table><thead>{head}</thead>\n<tbody>{rows}</tbody></table></div>'


def _failures(history: History) -> str:
    if not history.errors:
        return ""
    rows = "\n".join(
        f'<tr><td class="words">{escape(error)}</td><td>{count:,}</td></tr>'
        for error, count in history.errors.items()
    )
    head = "<tr><th>what failed</th><th>steps</th></tr>"
    return (
        "<section>\n<h2>Failures</h2>\n"
        f'<div class="wide"><table><thead>{head}</thead>\n<tbody>{rows}</tbody></table></div>\n</section>\n'
    )
