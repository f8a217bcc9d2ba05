"""The length penalty: its arithmetic, its identities with published penalties, and refused settings."""

from __future__ import annotations

import math
from typing import Any

import pytest
from complaints import about
from hypothesis import given
from hypothesis import strategies as st

from plaudit.errors import ConfigError
from plaudit.rewards import LengthPenalty, SoftOverlong

LENGTHS = st.lists(st.integers(0, 40_000), min_size=1, max_size=40)


def at(length: float, penalty: LengthPenalty | None = None) -> float:
    penalty = penalty or LengthPenalty(reference="target", target=1000)
    return penalty.penalties([length])[0]


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (400, 1), (500, 1), (550, 0.75), (600, 0.5), (700, 0), (1000, 0), (1300, 0), (1350, 0.25),
        (1400, 0.5), (1500, 1), (3000, 1),
    ],
)  # fmt: skip
def test_the_table_of_a_reference_of_1000(length: int, expected: float) -> None:
    assert at(length) == pytest.approx(expected, abs=1e-12)


def test_the_reference_is_the_median_of_the_group_wherever_its_rows_stand() -> None:
    lengths = [1000, 50, 1000, 1400, 100, 1000]
    groups = ["a", "b", "a", "a", "b", "a"]
    assert LengthPenalty().penalties(lengths, groups) == pytest.approx([0, 1 / 6, 0, 0.5, 1 / 6, 0])


def test_an_even_group_has_the_middle_of_its_two_middle_lengths_as_reference() -> None:
    assert LengthPenalty().penalties([600, 1400], ["g", "g"]) == pytest.approx([0.5, 0.5])


def test_a_group_of_one_and_a_group_of_empty_responses_cost_nothing() -> None:
    assert LengthPenalty().penalties([5, 0, 0, 900], ["one", "empty", "empty", None]) == [0, 0, 0, 0]


def test_a_median_of_zero_costs_even_a_long_response_nothing() -> None:
    assert LengthPenalty().penalties([0, 0, 900], ["g"] * 3) == [0, 0, 0]


def test_rows_without_a_group_are_no_group_together() -> None:
    assert LengthPenalty().penalties([10, 1000], [None, None]) == [0, 0]


def test_a_side_charges_its_side_only() -> None:
    over = LengthPenalty(side="over", reference="target", target=1000)
    under = LengthPenalty(side="under", reference="target", target=1000)
    assert [at(600, over), at(1400, over)] == pytest.approx([0, 0.5])
    assert [at(600, under), at(1400, under)] == pytest.approx([0.5, 0])


def test_the_gate_charges_only_what_earned_something() -> None:
    penalty = LengthPenalty(gate="positive", reference="target", target=1000)
    assert penalty.penalties([1500] * 4, base=[1.0, 0.0, -1.0, None]) == [1, 0, 0, 0]
    above = LengthPenalty(gate="positive", gate_threshold=0.6, reference="target", target=1000)
    assert above.penalties([1500] * 2, base=[0.6, 0.7]) == [0, 1]


def test_scale_and_maximum_multiply() -> None:
    penalty = LengthPenalty(penalty_scale=0.5, max_penalty=0.4, reference="target", target=1000)
    assert at(5000, penalty) == pytest.approx(0.2)
    assert at(1350, penalty) == pytest.approx(0.05)


def test_the_median_puts_no_absolute_pressure_on_lengths() -> None:
    lengths, groups = [100, 180, 260, 900], ["g"] * 4
    doubled = [2 * length for length in lengths]
    assert LengthPenalty().penalties(lengths, groups) == LengthPenalty().penalties(doubled, groups)


@given(LENGTHS)
def test_with_a_budget_it_is_dapos_penalty(lengths: list[int]) -> None:
    ours = LengthPenalty(side="over", peak_ratio=0.2, outer_ratio=0.5, reference="budget", budget=20480)
    dapo = SoftOverlong(max_length=20480, cache=4096)
    for mine, theirs in zip(ours.penalties(lengths), dapo.rewards(lengths), strict=True):
        assert abs(mine + theirs) <= 1e-12


@given(st.integers(0, 40_000), st.floats(0.0, 0.9), st.floats(0.05, 2.0), st.floats(0.1, 3.0))
def test_gated_and_over_it_is_a_capped_charge_for_the_excess(
    length: int, slack: float, width: float, cap: float
) -> None:
    reference = 4000.0
    ours = LengthPenalty(
        max_penalty=cap, peak_ratio=slack, outer_ratio=slack + width, side="over", gate="positive",
        reference="target", target=reference,
    )  # fmt: skip
    beta = cap / (ours.outer_ratio - slack)
    excess = max(0.0, length - reference * (1 + slack))
    assert ours.penalties([length], base=[1.0])[0] == pytest.approx(
        min(cap, beta * excess / reference), abs=1e-9
    )


@given(st.integers(0, 40_000))
def test_times_a_reward_of_one_it_is_the_band_that_multiplies(length: int) -> None:
    ours = LengthPenalty(max_penalty=0.6, side="over", reference="target", target=4000)
    first, last, lowest = 4000 * 1.3, 4000 * 1.5, 0.4
    share = min(max((length - first) / (last - first), 0.0), 1.0)
    assert 1.0 - ours.penalties([length])[0] == pytest.approx(1.0 + share * (lowest - 1.0), abs=1e-9)


@given(st.integers(1, 40_000))
def test_from_the_first_token_off_it_is_proportional_to_the_distance(length: int) -> None:
    ours = LengthPenalty(peak_ratio=0.0, outer_ratio=1.0, reference="target", target=4000)
    assert ours.penalties([length])[0] == pytest.approx(min(abs(4000 - length) / 4000, 1.0), abs=1e-12)


@given(LENGTHS, st.sampled_from(["both", "over", "under"]), st.floats(0, 3), st.floats(0, 3))
def test_it_stays_between_nothing_and_everything(
    lengths: list[int], side: Any, scale: float, top: float
) -> None:
    penalty = LengthPenalty(penalty_scale=scale, max_penalty=top, side=side)
    for charged in penalty.penalties(lengths, ["g"] * len(lengths)):
        assert 0.0 <= charged <= scale * top


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"outer_ratio": 0.3}, "outer_ratio"),
        ({"peak_ratio": 0.6}, "outer_ratio"),
        ({"peak_ratio": -0.1}, "peak_ratio"),
        ({"penalty_scale": -1.0}, "penalty_scale"),
        ({"penalty_scale": math.nan}, "penalty_scale"),
        ({"max_penalty": math.inf}, "max_penalty"),
        ({"outer_ratio": math.nan}, "outer_ratio"),
        ({"side": "left"}, "side"),
        ({"reference": "mean"}, "reference"),
        ({"gate": "negative"}, "gate"),
        ({"gate_threshold": math.nan}, "gate_threshold"),
        ({"reference": "target"}, "target"),
        ({"reference": "budget"}, "budget"),
        ({"reference": "target", "target": 0}, "target"),
        ({"target": 1000}, "target"),
        ({"penalty_scale": "1"}, "penalty_scale"),
    ],
)
def test_bad_settings_are_refused_by_name(settings: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError, check=about(field)):
        LengthPenalty(**settings)


@pytest.mark.parametrize("lengths", [[1, math.nan], [1, -1], [[1, 2]], ["x", "y"]])
def test_bad_lengths_are_refused(lengths: Any) -> None:
    with pytest.raises(ConfigError, check=lambda error: error.setting.startswith("lengths")):
        LengthPenalty().penalties(lengths, ["a", "b"])


def test_groups_and_base_must_be_there_and_fit() -> None:
    with pytest.raises(ConfigError, check=about("groups")):
        LengthPenalty().penalties([1, 2])
    with pytest.raises(ConfigError, check=about("groups")):
        LengthPenalty().penalties([1, 2], ["g"])
    with pytest.raises(ConfigError, check=about("base")):
        LengthPenalty(gate="positive").penalties([1, 2], ["g", "g"])


def test_no_rows_cost_nothing() -> None:
    assert LengthPenalty().penalties([], []) == []
