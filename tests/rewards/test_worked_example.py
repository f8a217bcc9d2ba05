"""The numbers in docs/rewards.md are what the code gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from plaudit.rewards import Component, LengthPenalty, Reward, RuleReward, advantages
from plaudit.types import Sample, Status, Verdict

DOC = (Path(__file__).parents[2] / "docs" / "rewards.md").read_text(encoding="utf-8")


def table(first: str) -> list[list[str]]:
    """The rows of the table whose heading starts with this cell."""
    lines = DOC[DOC.index(f"| {first} |") :].splitlines()
    rows = []
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def test_the_worked_example() -> None:
    rows = [[float(cell) for cell in row] for row in table("length")]
    assert len(rows) == 6
    lengths, rules, judged, distances, penalties, rewards = (
        list(column) for column in zip(*rows, strict=True)
    )
    assert [abs(length - 1000) / 1000 for length in lengths] == pytest.approx(distances, abs=1e-12)
    assert LengthPenalty().penalties(lengths, ["g"] * 6) == pytest.approx(penalties, abs=1e-12)
    reward = Reward(
        [
            Component("rule", RuleReward(lambda sample: float(sample.text))),
            Component("judge", weight=0.5),
            Component("length", LengthPenalty()),
        ]
    )
    samples = [Sample("p", str(rule), group="g") for rule in rules]
    verdicts = [Verdict(score, Status.OK) for score in judged]
    combined = reward.combine(samples, verdicts={"judge": verdicts}, lengths=lengths)
    assert combined.values == pytest.approx(rewards, abs=1e-12)


def test_what_a_failure_does() -> None:
    truth = [0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.4, 0.3]
    samples = [Sample("p", "r", group="g")] * 8
    failed = [Verdict(None, Status.FAILED), *(Verdict(score, Status.OK) for score in truth[1:])]

    def after(policy: str | float) -> list[float | None]:
        reward = Reward([Component("judge")], on_failure=policy)  # type: ignore[arg-type]
        return reward.combine(samples, verdicts={"judge": failed}).values

    ours: list[list[float | None]] = [[*truth], after(0.0), after("mask"), after("group_mean")]
    rows = table("the failed row gets")
    for row, rewards in zip(rows, ours, strict=True):
        shown = [
            f"{advantage + 0.0:.2f}".replace("-0.00", "0.00") for advantage in advantages(rewards, "g" * 8)
        ]
        assert shown == row[1:], row[0]
