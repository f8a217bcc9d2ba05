"""What a training found, as a report: the curve of rewards, the best rewrites, and what failed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plaudit.files import write_whole
from plaudit.mutation.history import History, Point
from plaudit.report.document import Baseline, Curve, Curves, Report, Table
from plaudit.report.html import page

SHOWN = 20
WINDOW = 5
"""Rollouts over which the first and the last reward are taken."""


def write_report(path: Path, history: History, facts: Sequence[tuple[str, str]]) -> None:
    """Write the page; nothing in it is fetched from elsewhere."""
    write_whole(path, page(report(history, facts)).encode("utf-8", "replace"))


def report(history: History, facts: Sequence[tuple[str, str]]) -> Report:
    failures = tuple((error, f"{count:,}") for error, count in history.errors.items())
    return Report(
        title="Query mutation",
        finding=finding(history.points),
        facts=(
            ("steps", f"{history.steps:,} in {history.episodes:,} episodes"),
            ("failed steps", nothing(history)),
            *facts,
        ),
        parts=(
            _rewards(history.points),
            _operators(history.points),
            _failed(history.points),
            _rewrites(history),
            *([Table("Failures", ("what failed", "steps"), failures)] if failures else ()),
        ),
        footer="Written by plaudit train-mutator.",
    )


def finding(points: Sequence[Point]) -> str:
    """The result in one sentence."""
    rewards = [point.reward for point in points if point.reward is not None]
    if not rewards:
        return "No episode ended, so there is nothing to report."
    return "Reward per episode: {:+.3f} at the beginning, {:+.3f} at the end.".format(*_ends(rewards))


def nothing(history: History) -> str:
    """How many steps earned nothing because something failed, and where it failed."""
    if not history.failures:
        return "none"
    stages = ", ".join(f"{stage} {count:,}" for stage, count in sorted(history.failures.items()))
    return f"{history.steps_failed():,}, which earned nothing; by stage: {stages}"


def _rewards(points: Sequence[Point]) -> Curves:
    rewards = [(float(point.steps), point.reward) for point in points if point.reward is not None]
    gains = [(float(point.steps), point.gain) for point in points if point.gain is not None]
    return Curves(
        "Reward over steps",
        "steps",
        "mean per episode",
        [Curve("reward", rewards), Curve("gain", gains)],
        [Baseline("random policy", rewards[0][1])] if rewards else (),
        note="The mean over the episodes that ended in each rollout. Gain is the quality alone, from 0 to 1, "
        "with drift and cost not counted. A policy begins by choosing operators at random, so the reward of "
        "its first rollout is that of a random policy.",
    )


def _operators(points: Sequence[Point]) -> Curves:
    names = sorted({name for point in points for name in point.operators})
    return Curves(
        "Operators chosen",
        "steps",
        "share of the steps",
        [Curve(name, _shares(points, name)) for name in names],
        [Baseline("random policy", 1 / len(names))] if names else (),
        note="; ".join(f"{name} {_change(points, name)}" for name in names),
    )


def _shares(points: Sequence[Point], name: str) -> list[tuple[float, float]]:
    return [
        (float(point.steps), point.operators.get(name, 0) / sum(point.operators.values()))
        for point in points
        if point.operators
    ]


def _change(points: Sequence[Point], name: str) -> str:
    """The share of an operator over the first rollouts and over the last ones."""
    shares = [share for _, share in _shares(points, name)]
    return "{:.0%} at the beginning, {:.0%} at the end".format(*_ends(shares))


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """The mean of the first values, and of the last."""
    window = max(1, min(WINDOW, len(values) // 2))
    return sum(values[:window]) / window, sum(values[-window:]) / window


def _failed(points: Sequence[Point]) -> Curves:
    return Curves(
        "Failed steps",
        "steps",
        "share of the steps",
        [
            Curve("a call failed", [(float(one.steps), one.failed - one.rejected) for one in points]),
            Curve("the rewrite was rejected", [(float(one.steps), one.rejected) for one in points]),
        ],
        note="A step fails if a call fails, because of the servers, or if the rewrite is rejected, because "
        "of the operator.",
    )


def _rewrites(history: History) -> Table:
    rows = tuple(
        (one.before, one.after, f"{one.quality_before:.2f}", f"{one.quality_after:.2f}")
        for one in history.top(SHOWN)
    )
    note = "" if rows else "No rewrite was answered better than the question it came from."
    return Table("The best rewrites", ("before", "after", "score before", "score after"), rows, note)
