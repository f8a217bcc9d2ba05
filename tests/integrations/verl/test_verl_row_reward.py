"""A row's way to its reward: judge, rule and group, whatever fails on the way."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest
from complaints import about

from plaudit import Group, Monitor, Pairwise, Rubric
from plaudit.errors import BatchFailed, ConfigError, EngineClosed, NoVerdict
from plaudit.integrations.rendezvous import Rendezvous
from plaudit.integrations.verl.batch_row import BatchRow
from plaudit.integrations.verl.reward_settings import read_settings
from plaudit.integrations.verl.row_reward import RowReward
from plaudit.integrations.verl.rule_score import RuleScorer
from plaudit.judges.base import Judge, Panel
from plaudit.policy.fingerprint import sample_id
from plaudit.testing import run
from plaudit.types import Cause, Sample, Status, Verdict

T = TypeVar("T")
JUDGE = Rubric("Is it right?", scale=(0, 10))
DOWN = Verdict(None, Status.FAILED, error="no connection to http://judge")
Outcome = tuple[float, dict[str, float | str | None]]


class FakeEngine:
    """Judges by a function of the sample; groups meet as they do in earnest."""

    def __init__(self, verdict: Callable[[Sample], Verdict | Exception], *, takes: float = 1.0) -> None:
        self._verdict = verdict
        self._takes = takes
        self._meeting = Rendezvous()
        self.asked: list[tuple[str, ...]] = []
        self.judges: list[Judge | Panel] = []
        self.gathered: list[str] = []

    async def ascore(
        self, samples: Sequence[Sample], judge: Judge | Panel, *, deadline: float | None = None
    ) -> list[Verdict]:
        self.asked.append(tuple(sample.text for sample in samples))
        self.judges.append(judge)
        await asyncio.sleep(self._takes)
        verdicts = []
        for sample in samples:
            verdict = self._verdict(sample)
            if isinstance(verdict, Exception):
                raise verdict
            verdicts.append(verdict)
        return verdicts

    def close(self) -> None:
        """Nothing to free."""

    async def gather(self, group: str, member: str, payload: T, *, size: int, timeout: float) -> dict[str, T]:
        self.gathered.append(group)
        return await self._meeting.gather(group, member, payload, size=size, timeout=timeout)


def by_number(sample: Sample) -> Verdict:
    """The response is its score, or the error of a failed call."""
    try:
        return Verdict(float(sample.text), Status.OK, "as it says")
    except ValueError:
        return Verdict(None, Status.FAILED, error=sample.text)


async def right(data_source: str, solution_str: str, ground_truth: Any, extra_info: Any) -> float:
    return float(solution_str == ground_truth)


async def no_rule(**_: Any) -> float:
    raise NotImplementedError("no such data source")


def row(response: str, *, group: str | None = "u1", length: int = 100, **facts: Any) -> BatchRow:
    facts.setdefault("is_validation", False)
    sample = Sample("7 x 8?", response, group=group)
    return BatchRow(sample, length, data_source="own", ground_truth="9", **facts)


def judged(
    engine: FakeEngine,
    *,
    judge: Judge | Panel = JUDGE,
    asks: Callable[..., Any] = no_rule,
    n: int = 1,
    **table: Any,
) -> RowReward:
    settings = read_settings(table, rollouts=n)
    return RowReward(settings, judge, engine, RuleScorer(asks, settings.rule_use))


def score_all(reward: RowReward, rows: Sequence[BatchRow], *, apart: float = 0.0) -> list[Outcome]:
    async def scored() -> list[Outcome]:
        async def later(number: int, one: BatchRow) -> Outcome:
            await asyncio.sleep(apart * number)
            return await reward.score(one)

        return list(await asyncio.gather(*(later(number, one) for number, one in enumerate(rows))))

    return run(scored())


def values(outcomes: Sequence[Outcome]) -> list[float]:
    return [reward for reward, _ in outcomes]


def test_the_judges_score_counts_from_0_to_1_whatever_its_scale() -> None:
    outcomes = score_all(judged(FakeEngine(by_number)), [row("5")])
    assert values(outcomes) == [0.5]
    assert outcomes[0][1]["plaudit/reason"] == "as it says"
    assert outcomes[0][1]["plaudit/record"] == sample_id(row("5").sample)


def test_the_rule_and_the_judge_add_up() -> None:
    reward = judged(FakeEngine(by_number), asks=right, coefficient=0.5, rule_coefficient=2.0)
    assert values(score_all(reward, [row("9")])) == [2.45]


def test_a_plain_rule_and_one_that_only_looks_plain_are_asked_alike() -> None:
    def plain(**_: Any) -> dict[str, Any]:
        return {"score": True, "pred": "9"}

    class Callable_:
        async def __call__(self, **_: Any) -> float:
            return 1.0

    for rule in (plain, Callable_()):
        reward = judged(FakeEngine(by_number, takes=0.0), asks=rule)
        earned, _ = asyncio.run(reward.score(row("10")))
        assert earned == 2.0


def test_without_a_rule_for_its_data_source_the_judge_alone_decides(caplog: pytest.LogCaptureFixture) -> None:
    outcomes = score_all(judged(FakeEngine(by_number)), [row("5"), row("6")])
    assert values(outcomes) == [0.5, 0.6]
    assert outcomes[0][1]["plaudit/rule_valid"] == 0.0
    told = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert len(told) == 1
    assert "verl has no rule for 'own'" in told[0]
    assert "reward.custom_reward_function.path" in told[0]


def test_a_required_rule_that_is_missing_fails_its_row() -> None:
    reward = judged(FakeEngine(by_number), failure=-1.0, rule="require")
    assert values(score_all(reward, [row("5")])) == [-1.0]


@pytest.mark.parametrize("bad", [ZeroDivisionError("oops"), math.nan, None, {"acc": 1}])
def test_a_rule_that_breaks_costs_its_own_row(bad: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def rule(*, solution_str: str, **_: Any) -> Any:
        if solution_str != "8":
            return 1.0
        if isinstance(bad, Exception):
            raise bad
        return bad

    outcomes = score_all(judged(FakeEngine(by_number), asks=rule, n=3), [row("8"), row("0"), row("4")])
    assert values(outcomes) == pytest.approx([1.2, 1.0, 1.4])
    assert "the rule" in caplog.text


def test_v1_leaves_missing_scores_out_of_the_means_of_a_validation() -> None:
    rows = [row(text, is_validation=True, can_be_left_out=True) for text in ("10", "timeout", "4")]
    outcomes = score_all(judged(FakeEngine(by_number), n=8), rows)
    assert [extra["plaudit/judge"] for _, extra in outcomes] == [1.0, None, 0.4]
    assert [extra["score"] is None for _, extra in outcomes] == [False, True, False]
    assert all(isinstance(extra["acc"], float) for _, extra in outcomes)  # of None V1 would make 0.0
    assert len({tuple(extra) for _, extra in outcomes}) == 1


def test_a_failed_row_gets_the_mean_of_its_group_and_no_advantage() -> None:
    engine = FakeEngine(by_number)
    rows = [row("10"), row("timeout"), row("0"), row("2"), row("8", group="u2"), row("8", group="u2")]
    rows += [row("8", group="u2"), row("lost", group="u2")]
    outcomes = score_all(judged(engine, n=4), rows)
    assert values(outcomes) == pytest.approx([1.0, 0.4, 0.0, 0.2, 0.8, 0.8, 0.8, 0.8])
    _, extra = outcomes[1]
    assert (extra["plaudit/valid"], extra["plaudit/status"], extra["plaudit/reason"]) == (
        0.0,
        "failed",
        "timeout",
    )
    assert len({tuple((key, type(value)) for key, value in extra.items()) for _, extra in outcomes}) == 1


def test_a_length_penalty_sees_the_whole_group() -> None:
    rows = [row("10", length=length) for length in (1000, 1000, 1000, 1400)]
    outcomes = score_all(judged(FakeEngine(by_number), n=4, penalty={}), rows)
    assert values(outcomes) == pytest.approx([1.0, 1.0, 1.0, 0.5])
    assert outcomes[3][1]["plaudit/penalty"] == pytest.approx(-0.5)


def test_a_reward_that_needs_no_group_waits_for_none() -> None:
    engine = FakeEngine(by_number)
    score_all(judged(engine, n=8, failure=0.0), [row("1")])
    assert not engine.gathered


def test_validation_waits_for_as_many_as_it_has() -> None:
    engine = FakeEngine(by_number)
    outcomes = score_all(judged(engine, n=8), [row("4", is_validation=True)])
    assert values(outcomes) == [0.4]
    assert not engine.gathered
    two = judged(engine, n=8, val_group_size=2)
    assert values(score_all(two, [row("4", is_validation=True), row("x", is_validation=True)])) == [0.4, 0.4]


def test_a_group_that_never_comes_together_is_those_who_came(caplog: pytest.LogCaptureFixture) -> None:
    async def scored() -> tuple[list[Outcome], float]:
        reward = judged(FakeEngine(by_number), n=4, group_timeout=30.0)
        outcomes = await asyncio.gather(*(reward.score(one) for one in (row("2"), row("4"), row("lost"))))
        return outcomes, asyncio.get_running_loop().time()

    outcomes, seconds = run(scored())
    assert values(outcomes) == pytest.approx([0.2, 0.4, 0.3])
    assert seconds == pytest.approx(31.0)
    assert "3 of the 4 rows" in caplog.text
    assert "reward.plaudit.group_timeout" in caplog.text


def test_a_judged_row_that_may_be_validation_waits_for_nobody() -> None:
    async def scored() -> tuple[list[float], float]:
        reward = judged(FakeEngine(by_number), n=4)
        lone = await reward.score(row("4", is_validation=None))
        return [lone[0]], asyncio.get_running_loop().time()

    assert run(scored()) == ([0.4], 1.0)


def test_a_failed_row_that_may_be_validation_still_finds_the_others_of_its_group() -> None:
    rows = [row(text, is_validation=None) for text in ("2", "4", "9", "lost")]
    assert values(score_all(judged(FakeEngine(by_number), n=4), rows, apart=1.0)) == pytest.approx(
        [0.2, 0.4, 0.9, 0.5]
    )


def test_where_nobody_says_what_a_row_is_a_comparison_waits_less_and_says_how_to_say_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scored() -> float:
        reward = judged(FakeEngine(by_number), n=4, penalty={}, unsure_timeout=20.0)
        await reward.score(row("4", is_validation=None))
        return asyncio.get_running_loop().time()

    assert run(scored()) == pytest.approx(21.0)
    assert 'extra_info["split"]' in caplog.text


def test_a_row_without_uid_is_a_group_of_its_own() -> None:
    outcomes = score_all(judged(FakeEngine(by_number), n=8), [row("4", group=None)])
    assert values(outcomes) == [0.4]


def test_a_lone_row_that_fails_gets_the_mean_so_far_and_says_so() -> None:
    reward = judged(FakeEngine(by_number))
    outcomes = score_all(reward, [row("8"), row("6"), row("lost")], apart=2.0)
    assert values(outcomes) == pytest.approx([0.8, 0.6, 0.7])
    assert outcomes[2][1]["plaudit/valid"] == 0.0


def test_a_group_judge_sees_the_whole_group_from_every_row_alike() -> None:
    engine = FakeEngine(by_number)
    outcomes = score_all(judged(engine, judge=Group("Is it right?"), n=3), [row("1"), row("2"), row("3")])
    assert values(outcomes) == [0.1, 0.2, 0.3]
    assert len(engine.asked) == 3
    assert len(set(engine.asked)) == 1


def test_a_lone_response_is_judged_by_the_criteria_of_the_group_judge() -> None:
    engine = FakeEngine(by_number)
    score_all(judged(engine, judge=Group("Is it right?", (1, 5))), [row("3")])
    assert engine.judges == [Rubric("Is it right?", (1, 5))]


def test_a_lone_response_cannot_be_compared() -> None:
    engine = FakeEngine(by_number)
    outcomes = score_all(judged(engine, judge=Pairwise("Which is right?", against="group")), [row("3")])
    assert not engine.asked
    assert "reward.plaudit.group_size" in str(outcomes[0][1]["plaudit/reason"])


def test_what_the_judge_refuses_to_look_at_is_data() -> None:
    engine = FakeEngine(lambda _: ConfigError("sample 0: there is no reference"))
    outcomes = score_all(judged(engine, failure=-1.0), [row("3")])
    assert values(outcomes) == [-1.0]
    assert outcomes[0][1]["plaudit/reason"] == "sample 0: there is no reference"


def test_a_row_that_cannot_be_read_meets_its_group_all_the_same() -> None:
    async def scored() -> list[Outcome]:
        reward = judged(FakeEngine(by_number), n=3)
        broken = reward.score(row("", broken="responses: the row has no such tensor"))
        return list(await asyncio.gather(reward.score(row("2")), reward.score(row("4")), broken))

    outcomes = run(scored())
    assert values(outcomes) == pytest.approx([0.2, 0.4, 0.3])
    assert outcomes[2][1]["plaudit/reason"] == "responses: the row has no such tensor"


def test_a_row_that_cannot_be_read_keeps_no_group_judge_waiting() -> None:
    async def scored() -> tuple[list[Outcome], float]:
        reward = judged(FakeEngine(by_number), judge=Group("Is it right?"), n=3)
        broken = reward.score(row("", broken="responses: the row has no such tensor"))
        outcomes = await asyncio.gather(reward.score(row("2")), reward.score(row("4")), broken)
        return list(outcomes), asyncio.get_running_loop().time()

    outcomes, seconds = run(scored())
    assert values(outcomes) == pytest.approx([0.2, 0.4, 0.3])
    assert seconds == 1.0


def test_a_meeting_that_breaks_down_costs_no_row() -> None:
    class Broken(FakeEngine):
        async def gather(self, *_: Any, **__: Any) -> Any:
            raise EngineClosed("the engine is closed; open a new one")

    assert values(score_all(judged(Broken(by_number), n=4), [row("4")])) == [0.4]


# -- a judge that is down ------------------------------------------------------------------------------------


def outage(*, until: float, **settings: Any) -> tuple[list[float], float, list[tuple[str, ...]]]:
    """Thirty rows while the judge is down up to a moment: rewards, seconds, what was asked."""

    async def scored() -> tuple[list[float], float, list[tuple[str, ...]]]:
        loop = asyncio.get_running_loop()
        engine = FakeEngine(lambda _: DOWN if loop.time() < until else Verdict(7.0, Status.OK))
        reward = judged(engine, **settings)
        outcomes = await asyncio.gather(*(reward.score(row(str(number))) for number in range(30)))
        return values(outcomes), loop.time(), engine.asked

    return run(scored())


def test_while_the_judge_is_down_rows_wait_for_it() -> None:
    rewards, seconds, _ = outage(until=100.0, patience=600.0)
    assert rewards.count(0.7) >= 25  # the first few failed before it was known to be an outage
    assert 100.0 <= seconds < 130.0


def test_when_patience_is_exhausted_training_goes_on_without_advantage() -> None:
    rewards, seconds, asked = outage(until=math.inf, patience=60.0)
    assert len(set(rewards)) == 1
    assert seconds <= 70.0
    assert len(asked) > 30


def test_without_patience_nobody_asks_again() -> None:
    rewards, seconds, asked = outage(until=math.inf, patience=0.0)
    assert (len(asked), seconds, len(set(rewards))) == (30, 1.0, 1)


def test_nobody_waits_for_a_judge_that_is_only_watched() -> None:
    _, seconds, asked = outage(until=math.inf, patience=600.0, coefficient=0.0)
    assert (len(asked), seconds) == (30, 1.0)


def test_training_may_be_told_to_stop_instead() -> None:
    with pytest.raises(BatchFailed, match=r"rows have no verdict, .*too_many=stop .* error: no connection"):
        outage(until=math.inf, patience=60.0, too_many="stop")


def test_rows_that_fail_for_reasons_of_their_own_are_not_waited_for() -> None:
    """A third of the rows are too long for the judge, and will be for ever; the others are judged."""

    async def scored() -> tuple[float, int]:
        engine = FakeEngine(by_number)
        reward = judged(engine, patience=600.0)
        for _ in range(3):
            rows = [row("too long" if number % 3 == 0 else "5") for number in range(60)]
            await asyncio.gather(*(reward.score(one) for one in rows))
        return asyncio.get_running_loop().time(), len(engine.asked)

    seconds, asked = run(scored())
    assert seconds < 20.0
    assert asked < 250


def test_a_judge_that_demands_what_rows_do_not_have_is_no_outage() -> None:
    engine = FakeEngine(lambda _: ConfigError("sample 0: there is no reference"))
    score_all(judged(engine), [row(str(number)) for number in range(30)])
    assert len(engine.asked) == 30


def test_a_few_failures_are_no_outage() -> None:
    engine = FakeEngine(by_number)
    rows = [row("lost" if number % 10 == 0 else "5") for number in range(100)]
    outcomes = score_all(judged(engine), rows)
    assert len(engine.asked) == 100
    assert sum(extra["plaudit/valid"] == 0.0 for _, extra in outcomes) == 10


def test_a_judge_that_refuses_is_not_asked_again() -> None:
    engine = FakeEngine(lambda _: Verdict(None, Status.REFUSED, error="I would rather not"))
    score_all(judged(engine), [row(str(number)) for number in range(30)])
    assert len(engine.asked) == 30


def test_a_suspicion_is_turned_round_and_may_not_be_turned_again() -> None:
    monitor = Monitor("It cheats.")
    assert values(score_all(judged(FakeEngine(by_number), judge=monitor), [row("0.9")])) == pytest.approx(
        [0.1]
    )
    with pytest.raises(ConfigError, check=about("coefficient", "reward.plaudit.coefficient=-1")):
        judged(FakeEngine(by_number), judge=monitor, coefficient=-1.0)


# -- where verl leaves out what raises (V1) ------------------------------------------------------------------


def left_out_or_values(reward: RowReward, rows: Sequence[BatchRow]) -> list[float | None]:
    """The rewards; None for rows that raise, and so are left out."""

    async def scored() -> list[Any]:
        return await asyncio.gather(*(reward.score(one) for one in rows), return_exceptions=True)

    found = run(scored())
    assert all(isinstance(one, tuple | NoVerdict) for one in found), found
    return [None if isinstance(one, NoVerdict) else one[0] for one in found]


def sessions(*responses: str, **facts: Any) -> list[BatchRow]:
    return [row(response, can_be_left_out=True, **facts) for response in responses]


@pytest.mark.parametrize("lost", [1, 4])
def test_a_row_without_a_verdict_is_left_out_and_its_siblings_keep_their_rewards(lost: int) -> None:
    answers = ["no connection"] * lost + [str(number) for number in range(8 - lost)]
    rewards = left_out_or_values(judged(FakeEngine(by_number), n=8), sessions(*answers))
    assert rewards == [None] * lost + [number / 10 for number in range(8 - lost)]


def test_a_group_with_too_few_verdicts_is_left_out_whole() -> None:
    answers = ["no connection"] * 5 + ["1", "2", "3"]
    assert left_out_or_values(judged(FakeEngine(by_number), n=8), sessions(*answers)) == [None] * 8


def test_rows_are_let_go_as_soon_as_it_is_known_that_too_few_have_a_verdict(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reward = judged(FakeEngine(by_number), n=8, group_timeout=1800)

    async def timed() -> tuple[list[Any], float]:
        rows = sessions("1", "2", *["no connection"] * 5)  # and one that never comes
        found = await asyncio.gather(*(reward.score(one) for one in rows), return_exceptions=True)
        return found, asyncio.get_running_loop().time()

    found, seconds = run(timed())
    assert all(isinstance(one, NoVerdict) for one in found)
    assert seconds < 60
    assert "sync_refill_failed_groups" in caplog.text


def test_a_row_waits_for_half_of_its_group_not_for_a_rollout_that_was_lost() -> None:
    reward = judged(FakeEngine(by_number), n=8, group_timeout=1800)
    loops: list[float] = []

    async def timed() -> list[float]:
        rows = sessions(*(str(number) for number in range(6)))  # two rollouts never come
        found = await asyncio.gather(*(reward.score(one) for one in rows))
        loops.append(asyncio.get_running_loop().time())
        return [value for value, _ in found]

    assert run(timed()) == [number / 10 for number in range(6)]
    assert loops[0] < 10


def test_a_penalty_by_the_median_still_meets_the_whole_group_and_leaves_the_failed_row_out() -> None:
    reward = judged(FakeEngine(by_number), n=4, penalty={"kind": "length"})
    rows = [*sessions("5", "5", "no connection", length=100), *sessions("5", length=1000)]
    assert left_out_or_values(reward, rows) == [0.5, 0.5, None, -0.5]


def test_what_a_failed_row_becomes_can_still_be_chosen() -> None:
    rows = sessions("2", "4", "6", "no connection")
    mean = left_out_or_values(judged(FakeEngine(by_number), n=4, failure="group_mean"), rows)
    assert mean == pytest.approx([0.2, 0.4, 0.6, 0.4])
    number = left_out_or_values(judged(FakeEngine(by_number), n=4, failure=-1.0), rows)
    assert number == pytest.approx([0.2, 0.4, 0.6, -1.0])


def test_a_trainer_that_takes_no_gap_is_given_the_mean_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    reward = judged(FakeEngine(by_number), n=4, failure="mask")
    rows = [row(response) for response in ("2", "4", "6", "no connection")]
    assert values(score_all(reward, rows)) == pytest.approx([0.2, 0.4, 0.6, 0.4])
    assert "reward.plaudit.failure=mask" in caplog.text


def test_validation_reports_every_row_and_waits_for_none_where_it_is_unknown() -> None:
    reward = judged(FakeEngine(by_number), n=4)
    validation = sessions("2", "no connection", is_validation=True)
    assert None not in left_out_or_values(reward, validation)
    unknown = sessions("2", group="u2", is_validation=None)
    assert left_out_or_values(reward, unknown) == [0.2]


def test_a_judge_that_will_never_answer_is_asked_once_and_ends_the_training() -> None:
    refused = Verdict.failed(Cause.REFUSED_KEY, "http://judge answered 401; the key was refused")
    engine = FakeEngine(lambda _: refused)

    async def asked() -> float:
        with pytest.raises(BatchFailed, match="the key was refused"):
            await judged(engine, patience=600.0).score(row("5"))
        return asyncio.get_running_loop().time()

    assert run(asked()) < 10
    assert len(engine.asked) == 1
    watching = judged(FakeEngine(lambda _: refused), coefficient=0.0, failure=0.0)
    assert values(score_all(watching, [row("5")])) == [0.0]


def test_once_the_training_is_to_end_every_row_says_so_without_a_call() -> None:
    refused = Verdict.failed(Cause.UNKNOWN_MODEL, "http://judge answered 404; there is no such model")
    engine = FakeEngine(lambda _: refused)

    async def scored() -> str:
        reward = judged(engine)
        for _ in range(3):
            with pytest.raises(BatchFailed, match="no such model"):
                await reward.score(row("5"))
        return await reward.ended()

    assert "no such model" in run(scored())
    assert len(engine.asked) == 1
