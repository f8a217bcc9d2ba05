"""A judge of the user's own earns the same reward everywhere, or is refused before the first call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from choosy import Choosy
from complaints import about

from plaudit import Engine, Jury, Rubric
from plaudit.errors import ConfigError
from plaudit.integrations.rendezvous import Rendezvous
from plaudit.integrations.scored import Scored, sample_of
from plaudit.integrations.trl import reward_function
from plaudit.integrations.verl.batch_row import BatchRow
from plaudit.integrations.verl.legacy.judge_workers import JudgeWorkers
from plaudit.integrations.verl.reward_settings import read_settings
from plaudit.integrations.verl.row_reward import RowReward
from plaudit.integrations.verl.rule_score import RuleScorer
from plaudit.judges import Judge
from plaudit.types import ChatRequest, Reply, Sample, Status, Verdict


class Kindness:
    """Written without plaudit's base classes: a version, a scale and two methods."""

    version = "kindness-1"
    scale: Any = (0, 10)

    def render(self, sample: Sample) -> ChatRequest | Verdict:
        return ChatRequest(({"role": "user", "content": sample.text},))

    def parse(self, reply: Reply, sample: Sample) -> Verdict:
        return Verdict(float(reply.text), Status.OK)


class Harm(Kindness):
    """The lower the better."""

    version = "harm-1"
    higher_is_better = False


class Scaleless(Kindness):
    scale = None


class Backwards(Kindness):
    scale = (10, 0)


class Bottomless(Kindness):
    scale = (float("-inf"), 10.0)


class Figures(Choosy):
    """Replies with the bare number."""

    def verdict(self, worth: int) -> str:
        return str(worth)


def through_scored(judge: Judge, transport: Figures, response: str) -> float:
    return float(Scored(judge, **transport.options).rewards([sample_of("Why?", response)])[0])


def through_trl(judge: Judge, transport: Figures, response: str) -> float | None:
    return asyncio.run(reward_function(judge, **transport.options)(["Why?"], [response]))[0]


class Place(Rendezvous):
    """Where verl's rows are judged, in this process."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self.ascore = engine.ascore
        self.close = engine.close


async def no_rule(**_: Any) -> float:
    raise NotImplementedError("no such data source")


def through_verl(judge: Judge, transport: Figures, response: str) -> float:
    settings = read_settings({}, rollouts=1)
    row = BatchRow(Sample("Why?", response), 10, data_source="own", ground_truth=None, is_validation=False)
    with Engine(**transport.options) as engine:
        reward = RowReward(settings, judge, Place(engine), RuleScorer(no_rule, settings.rule_use))
        return asyncio.run(reward.score(row))[0]


def through_legacy_verl(judge: Judge, transport: Figures, response: str) -> float | None:
    workers = JudgeWorkers(lambda _: Engine(**transport.options), judge, time_limit=60.0)
    try:
        return workers.send([Sample("Why?", response)])()[0].score
    finally:
        workers.shutdown()


def through_a_jury(judge: Judge, transport: Figures, response: str) -> float | None:
    jury = Jury({"own": judge, "other": Rubric("Is it right?")}, quorum=1)
    with Engine(**transport.options) as engine:
        return engine.score([Sample("Why?", response)], jury)[0].parts["own"]


Way = Callable[[Judge, Figures, str], float | None]
WAYS: list[Way] = [through_scored, through_trl, through_verl, through_legacy_verl, through_a_jury]
BY_NAME = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)


@BY_NAME
def test_eight_of_ten_earns_0_8(way: Way) -> None:
    assert way(cast(Judge, Kindness()), Figures(), "worth 8") == pytest.approx(0.8)


@BY_NAME
def test_where_lower_is_better_two_of_ten_earns_0_8(way: Way) -> None:
    assert way(cast(Judge, Harm()), Figures(), "worth 2") == pytest.approx(0.8)


@BY_NAME
@pytest.mark.parametrize("judge", [Scaleless(), Backwards(), Bottomless()], ids=lambda j: type(j).__name__)
def test_a_judge_whose_scale_is_not_clear_is_refused_before_the_first_call(way: Way, judge: Any) -> None:
    transport = Figures()
    with pytest.raises(ConfigError) as caught:
        way(judge, transport, "worth 8")
    assert type(judge).__name__ in str(caught.value)
    assert transport.asked == []


@pytest.mark.parametrize("judge", [Scaleless(), Backwards()], ids=lambda j: type(j).__name__)
def test_the_engine_refuses_it_too(judge: Any) -> None:
    transport = Figures()
    with Engine(**transport.options) as engine, pytest.raises(ConfigError, check=about("judge")):
        engine.submit([Sample("Why?", "worth 8")], judge)
    assert transport.asked == []


def test_a_score_off_the_judges_own_scale_is_no_verdict() -> None:
    with Engine(**Figures().options) as engine:
        good, bad = engine.score(
            [Sample("Why?", "worth 10"), Sample("Why?", "worth 11")], cast(Judge, Kindness())
        )
    assert good.score == 10.0
    assert (bad.score, bad.status) == (None, Status.FAILED)
    assert "11" in str(bad.error)
