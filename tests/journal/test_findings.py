from __future__ import annotations

import random
from typing import Any

import pytest

from plaudit.journal.findings import findings


def curves(steps: int = 80, **columns: Any) -> dict[str, Any]:
    """The trend of a training in which nothing happens, but for some columns: functions of the step."""
    plain: dict[str, Any] = {
        "records": 64,
        "missing": 0,
        "flat": 0,
        "groups": 8,
        "mean": 0.5,
        "gold": 0.5,
        "gold_gap": None,
        "chars": 100.0,
        "length_correlation": 0.0,
        "canaries": {"seen": 0, "passed": 0},
    }
    found = [
        {"x": float(step), **plain, **{name: value(step) for name, value in columns.items()}}
        for step in range(steps)
    ]
    return {"by": "step", "columns": found}


def noise(seed: int, size: float) -> Any:
    chance = random.Random(seed)
    return lambda _: chance.gauss(0.1, size)


def since(found: list[Any]) -> dict[str, float]:
    return {one.about: one.since for one in found}


def test_nothing_stands_out_in_a_training_in_which_nothing_happens() -> None:
    assert findings(curves()) == []


@pytest.mark.parametrize("size", [0.02, 0.1, 0.2])
def test_noise_is_no_finding(size: float) -> None:
    said = [seed for seed in range(100) if findings(curves(gold_gap=noise(seed, size)))]
    assert len(said) <= 3


@pytest.mark.parametrize("seed", range(10))
def test_scores_that_leave_the_truth_behind_are_found_where_they_begin_to(seed: int) -> None:
    chance = random.Random(seed)

    def gap(step: int) -> float:
        return chance.gauss(0.0, 0.05) + 0.02 * max(0, step - 40)

    (found,) = findings(curves(gold_gap=gap))
    assert found.about == "sound" and 34 <= found.since <= 46
    assert "gaming the judge" in found.text


def test_a_gap_that_has_always_been_there_or_that_closes_is_none() -> None:
    assert findings(curves(gold_gap=lambda _: 0.4)) == []
    assert findings(curves(gold_gap=lambda step: 0.8 - 0.01 * step)) == []


def test_groups_without_spread_and_missing_scores_are_found_while_they_last() -> None:
    assert since(findings(curves(flat=lambda step: 8 if step >= 70 else 2))) == {"alive": 70}
    assert since(findings(curves(missing=lambda step: 32 if step >= 60 else 0))) == {"lost": 60}
    assert findings(curves(missing=lambda step: 32 if 40 < step < 60 else 0)) == []  # it is over


def test_growing_responses_are_found_where_the_longer_ones_score_higher() -> None:
    def grows(step: int) -> float:
        return 100.0 + 20 * max(0, step - 30)

    (found,) = findings(curves(chars=grows, length_correlation=lambda _: 0.5))
    assert found.about == "length" and 28 <= found.since <= 36
    assert findings(curves(chars=grows)) == []  # reasoning grows too, and may deserve it


def test_canaries_that_pass_are_counted_from_the_first_one_on() -> None:
    passed = curves(canaries=lambda step: {"seen": 2, "passed": int(step >= 50)})
    (found,) = findings(passed)
    assert found.since == 50 and "30 of 60 wrong answers" in found.text


def test_gaps_in_curves_short_trainings_and_times_are_no_trouble() -> None:
    assert findings(curves(steps=5, gold_gap=lambda step: 0.2 * step)) == []
    assert findings({"by": "time", "columns": curves()["columns"]}) == []
    every_third = curves(
        gold_gap=lambda step: None if step % 3 else 0.02 * max(0, step - 40), groups=lambda _: 0
    )
    assert since(findings(every_third)).keys() == {"sound"}
