"""The reward: weighted sums, what a failure becomes, monitors, ties, and refused input."""

from __future__ import annotations

import math
from typing import Any

import pytest
from complaints import about
from hypothesis import given
from hypothesis import strategies as st

from plaudit.errors import BatchFailed, ConfigError
from plaudit.rewards import Component, LengthPenalty, Reward, Rewards, RuleReward, advantages
from plaudit.types import Sample, Status, Verdict

JUDGE = Component("judge")


def ok(score: float) -> Verdict:
    return Verdict(score, Status.OK)


def missing(status: Status = Status.FAILED) -> Verdict:
    return Verdict(None, status, error=f"it {status.value}")


def verdicts_of(scores: list[float | None]) -> list[Verdict]:
    return [missing() if score is None else ok(score) for score in scores]


def combined(scores: list[float | None], groups: str, **settings: Any) -> Rewards:
    settings.setdefault("max_failure_rate", None)
    samples = [Sample("p", "r", group=group) for group in groups]
    return Reward([JUDGE], **settings).combine(samples, verdicts={"judge": verdicts_of(scores)})


# -- the sum ----------------------------------------------------------------------------------------------


def test_rule_plus_weighted_judge_minus_length_penalty() -> None:
    samples = [Sample("p", text, reference="4", group="g") for text in ("4", "5", "4")]
    reward = Reward(
        [
            Component("rule", RuleReward(lambda sample: sample.response == sample.reference)),
            Component("judge", weight=0.5),
            Component("length", LengthPenalty()),
        ]
    )
    verdicts = {"judge": verdicts_of([0.8, 0.4, 1.0])}
    rewards = reward.combine(samples, verdicts=verdicts, lengths=[1000, 1000, 1400])
    assert rewards.values == pytest.approx([1.4, 0.2, 1.0], abs=1e-12)
    last = rewards.rows[2]
    assert last.raw == pytest.approx({"rule": 1.0, "judge": 1.0, "length": -0.5})
    assert last.weighted == pytest.approx({"rule": 1.0, "judge": 0.5, "length": -0.5})


def test_every_row_has_the_same_numbers_whatever_failed() -> None:
    samples = [Sample("p", "r", group="g")] * 4
    verdicts = {"judge": [ok(1.0), missing(), missing(Status.REFUSED), ok(0.0)]}
    reward = Reward([JUDGE, Component("length", LengthPenalty())], max_failure_rate=None)
    rows = reward.combine(samples, verdicts=verdicts, lengths=[10, 10, 10, 30]).rows
    flat = [row.flat() for row in rows]
    assert len({tuple(row) for row in flat}) == 1
    assert all(math.isfinite(value) for row in flat for value in row.values())
    assert [row["judge_valid"] for row in flat] == [1, 0, 0, 1]
    assert [row["reward_valid"] for row in flat] == [1, 0, 0, 1]
    assert [row.status for row in rows] == ["ok", "failed", "refused", "ok"]


def test_a_gate_sees_the_sum_of_the_others_wherever_it_stands_in_the_list() -> None:
    samples = [Sample("p", "r", group="g")] * 2
    parts = [
        Component("length", LengthPenalty(gate="positive", reference="target", target=10)),
        Component("judge", weight=2.0),
    ]
    for components in (parts, parts[::-1]):
        rewards = Reward(components).combine(
            samples, verdicts={"judge": verdicts_of([1.0, 0.0])}, lengths=[99, 99]
        )
        assert rewards.values == [1.0, 0.0]


def test_two_components_may_read_the_same_verdicts() -> None:
    parts = [Component("seen", "judge", use="observe"), Component("counted", "judge", weight=3.0)]
    rewards = Reward(parts).combine([Sample("p", "r")], verdicts={"judge": [ok(2.0)]})
    assert rewards.values == [6.0]
    assert rewards.rows[0].weighted == {"seen": 0.0, "counted": 6.0}


def test_an_empty_response_settled_by_rule_counts_as_judged() -> None:
    rewards = Reward([JUDGE]).combine([Sample("p", "")], verdicts={"judge": [Verdict(0.0, Status.EMPTY)]})
    assert rewards.values == [0.0]
    assert not rewards.failures


def test_a_verdict_that_is_nan_is_no_verdict() -> None:
    rewards = combined([1.0, 0.5, 0.0, math.nan], "gggg")
    assert rewards.values == [1.0, 0.5, 0.0, None]
    assert rewards.failures == {"unreadable": 1}


# -- failures ---------------------------------------------------------------------------------------------


def test_masked_by_default() -> None:
    assert combined([0.5, None, 1.0], "ggg").values == [0.5, None, 1.0]


def test_the_groups_mean_gives_a_failure_no_advantage() -> None:
    rewards = combined([0.5, None, 1.0, 3.0, 5.0], "ggghh", on_failure="group_mean")
    assert rewards.values == [0.5, 0.75, 1.0, 3.0, 5.0]
    assert advantages(rewards.values, rewards.groups)[1] == 0.0
    assert [row.valid for row in rewards.rows] == [True, False, True, True, True]


def test_a_number_of_the_users_is_taken() -> None:
    assert combined([0.5, None, None], "ggg", on_failure=-1.0).values == [0.5, -1.0, -1.0]


def test_raise_raises_for_a_single_failure() -> None:
    with pytest.raises(BatchFailed, match=r'1 of 3 samples have no verdict .* "it failed"'):
        combined([0.5, None, 1.0], "ggg", on_failure="raise")
    assert combined([0.5, 1.0], "gg", on_failure="raise").values == [0.5, 1.0]


@pytest.mark.parametrize(
    ("scores", "is_masked"),
    [
        ([1.0, None], True),
        ([1.0, 2.0, None], False),
        ([1.0, 2.0, None, None], False),
        ([1.0, 2.0, None, None, None], True),
        ([1.0, 2.0, 3.0, None, None], False),
        ([1.0], False),
        ([None], True),
        ([1.0, 2.0], False),
    ],
)
def test_a_group_with_fewer_than_two_or_half_is_masked_whole(
    scores: list[float | None], is_masked: bool
) -> None:
    rewards = combined(scores, "g" * len(scores))
    assert rewards.groups_masked == is_masked
    assert rewards.values == ([None] * len(scores) if is_masked else scores)
    assert all(row.status != "ok" for row in rewards.rows) or not is_masked


def test_a_thin_group_gets_one_number_where_the_framework_cannot_mask() -> None:
    rewards = combined([1.0, None, None, None, 5.0, 7.0], "gggghh", on_failure="group_mean")
    assert rewards.values == [1.0, 1.0, 1.0, 1.0, 5.0, 7.0]
    assert [row.valid for row in rewards.rows] == [False] * 4 + [True] * 2
    assert rewards.rows[0].status == "thin_group"


def test_a_group_without_any_verdict_gets_the_mean_of_the_batch() -> None:
    assert combined([None, None, 5.0, 7.0], "gghh", on_failure="group_mean").values == [6, 6, 5, 7]
    assert combined([None, None], "gg", on_failure="group_mean").values == [0.0, 0.0]


def test_over_a_fifth_of_failures_raises_and_says_why() -> None:
    settings: dict[str, Any] = {"max_failure_rate": 0.2}
    assert combined([1.0, 0.0, 1.0, 0.0, None], "ggggg", **settings).failures == {"failed": 1}
    with pytest.raises(BatchFailed, match=r"2 of 9 .*2 failed.*20%.*it failed"):
        combined([1.0] * 7 + [None] * 2, "g" * 9, **settings)


def test_nobody_raises_where_any_rate_is_allowed() -> None:
    assert combined([None] * 4, "gggg").values == [None] * 4


def test_what_the_response_can_bring_about_may_cost_it_the_floor() -> None:
    samples = [Sample("p", "r", group="g")] * 5
    given = [ok(7.0), missing(Status.REFUSED), missing(Status.UNREADABLE), missing(Status.FLAGGED), missing()]
    reward = Reward(
        [Component("judge", weight=0.1, floor=1.0)], on_content_failure="floor", max_failure_rate=None
    )
    rewards = reward.combine(samples, verdicts={"judge": given})
    assert rewards.values == pytest.approx([0.7, 0.1, 0.1, 0.1, None])
    assert rewards.failures == {"refused": 1, "unreadable": 1, "flagged": 1, "failed": 1}
    masked = Reward([JUDGE], max_failure_rate=None).combine(samples, verdicts={"judge": given})
    assert masked.values == [None] * 5


@given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.floats(-5, 5)), max_size=30))
def test_the_groups_mean_never_moves_a_failed_row(rows: list[tuple[str, float | None]]) -> None:
    rewards = combined([r[1] for r in rows], "".join(r[0] for r in rows), on_failure="group_mean")
    moved = advantages(rewards.values, rewards.groups)
    for row, advantage in zip(rewards.rows, moved, strict=True):
        assert row.reward is not None
        assert math.isfinite(row.reward)
        if not row.valid:
            assert abs(advantage) < 1e-9


# -- monitors ---------------------------------------------------------------------------------------------


def monitored(use: Any, suspicion: list[float | None], **settings: Any) -> Rewards:
    components = [JUDGE, Component("monitor", use=use, weight=0.5)]
    verdicts = {"judge": verdicts_of([1.0, 0.5, 0.0]), "monitor": verdicts_of(suspicion)}
    samples = [Sample("p", "r", group="g")] * 3
    return Reward(components, max_failure_rate=None, **settings).combine(samples, verdicts=verdicts)


def test_an_observed_monitor_changes_nothing_even_where_it_fails() -> None:
    rewards = monitored("observe", [1.0, None, 0.0])
    assert rewards.values == [1.0, 0.5, 0.0]
    assert [row.raw["monitor"] for row in rewards.rows] == [1.0, None, 0.0]
    assert not rewards.failures


def test_a_screening_monitor_leaves_the_row_out() -> None:
    rewards = monitored("screen", [0.5, 0.4, 0.0])
    assert rewards.values == [None, 0.5, 0.0]
    assert rewards.rows[0].status == "screened"
    assert not rewards.failures
    assert monitored("screen", [1.0, 0.0, 0.0], on_failure="group_mean").values == [0.25, 0.5, 0.0]
    assert monitored("screen", [1.0, None, 0.0], on_failure=-9.0).values == [0.0, -9.0, 0.0]


def test_a_penalising_monitor_subtracts_its_weight() -> None:
    assert monitored("penalise", [1.0, 0.0, 0.5]).values == [0.5, 0.5, -0.25]


def test_a_monitor_that_failed_has_not_acquitted_anybody() -> None:
    assert monitored("screen", [0.0, None, 0.0]).values == [1.0, None, 0.0]
    assert monitored("penalise", [0.0, None, 0.0]).values == [1.0, None, 0.0]


# -- ties -------------------------------------------------------------------------------------------------


def test_a_hundredth_in_a_tied_group_is_no_advantage_where_ties_are_wide_enough() -> None:
    scores: list[float | None] = [*[1.0] * 7, 0.99]
    tied = combined(scores, "g" * 8, tie_eps=0.02)
    assert tied.values == pytest.approx([0.99875] * 8)
    assert advantages(tied.values, tied.groups) == [0.0] * 8
    assert tied.groups_zero_spread == 1
    plain = combined(scores, "g" * 8)
    assert advantages(plain.values, plain.groups)[-1] == pytest.approx(-2.47, abs=0.01)
    assert plain.groups_zero_spread == 0


def test_a_tie_is_judged_among_the_rows_that_are_there() -> None:
    rewards = combined([1.0, 0.99, None], "ggg", tie_eps=0.02, on_failure="group_mean")
    assert rewards.values == pytest.approx([0.995] * 3)


# -- bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "setting"),
    [
        (lambda: Reward([]), "components"),
        (lambda: Reward([JUDGE, JUDGE]), "components"),
        (lambda: Component("judge", weight=math.nan), "weight of 'judge'"),
        (lambda: Component("judge", threshold=math.inf), "threshold of 'judge'"),
        (lambda: Component(""), "name"),
        (lambda: Component("judge", use="ignore"), "use"),  # type: ignore[arg-type]
        (lambda: Component("judge", source=3), "source"),  # type: ignore[arg-type]
        (lambda: Component("judge", source=LengthPenalty), "source"),  # type: ignore[arg-type]
        (lambda: Reward([JUDGE], on_failure="zero"), "on_failure"),  # type: ignore[arg-type]
        (lambda: Reward([JUDGE], on_failure=math.nan), "on_failure"),
        (lambda: Reward([JUDGE], on_content_failure="zero"), "on_content_failure"),  # type: ignore[arg-type]
        (lambda: Reward([JUDGE], on_content_failure="floor"), "floor"),
        (lambda: Reward([JUDGE], max_failure_rate=-0.1), "max_failure_rate"),
        (lambda: Reward([JUDGE], tie_eps=math.nan), "tie_eps"),
    ],
)
def test_bad_settings_are_refused_by_name(build: Any, setting: str) -> None:
    with pytest.raises(ConfigError, check=about(setting)):
        build()


def test_a_batch_that_does_not_fit_is_refused_by_name() -> None:
    sample, verdicts = [Sample("p", "r")], {"judge": [ok(1.0)]}
    with pytest.raises(ConfigError, check=about("groups")):
        Reward([JUDGE]).combine(sample, verdicts=verdicts, groups=["a", "b"])
    with pytest.raises(ConfigError, check=about("verdicts['judge']", "judge")):
        Reward([JUDGE]).combine(sample)
    with pytest.raises(ConfigError, check=about("verdicts['judge']", "judge")):
        Reward([JUDGE]).combine(sample, verdicts={"judge": []})
    with pytest.raises(ConfigError, check=about("lengths")):
        Reward([Component("length", LengthPenalty())]).combine(sample)
    with pytest.raises(ConfigError, check=about("lengths")):
        Reward([JUDGE]).combine(sample, verdicts=verdicts, lengths=[1, 2])


def test_no_samples_give_no_rewards() -> None:
    assert Reward([JUDGE]).combine([], verdicts={"judge": []}).values == []
