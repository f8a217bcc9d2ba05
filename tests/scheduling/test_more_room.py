"""Judges that reason before they answer: room for their replies, found once and remembered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dispatching import Asked, FakeServer
from scoring import Desk, Marks, samples

from plaudit import Endpoint, Engine, Price, Rubric, Sample
from plaudit.config import EngineConfig
from plaudit.errors import RequestRefused
from plaudit.scheduling.lane import ROOMY
from plaudit.scheduling.learned_limits import Learned, load, save
from plaudit.simulator.scenario import Latency, Scenario
from plaudit.simulator.server import SimulatedServer
from plaudit.simulator.simulated_transport import SimulatedTransport
from plaudit.testing import run
from plaudit.types import Cause, ChatRequest, Reply, Usage, Verdict

FIRST, SECOND = Sample("What is 2 + 2?", "4"), Sample("What is 3 + 3?", "6")
AT_ONCE = Latency(mean_tokens=100, sigma=0, seconds_per_token=0, first_token=0, round_trip=0)
NOW = 1_700_000_000.0
SMALL = Rubric("Is it right?", max_tokens=512)


@pytest.fixture
def reasoning() -> SimulatedServer:
    return SimulatedServer(Scenario(reasoning_tokens=900, latency=AT_ONCE))


@pytest.fixture
def engine(reasoning: SimulatedServer) -> Iterator[Engine]:
    endpoint = Endpoint("http://judge/v1", model="thinker", price=Price(1.0, 2.0))
    with Engine(
        endpoints=[endpoint], cache=None, transport=lambda _: SimulatedTransport(reasoning)
    ) as opened:
        yield opened


def test_900_hidden_tokens_take_two_calls_for_the_first_sample_and_one_for_the_second(
    engine: Engine, reasoning: SimulatedServer
) -> None:
    (first,) = engine.score([FIRST], SMALL)
    assert first.is_valid
    assert reasoning.stats.requests == 2
    (second,) = engine.score([SECOND], SMALL)
    assert second.is_valid
    assert reasoning.stats.requests == 3


def test_by_default_900_hidden_tokens_fit(engine: Engine, reasoning: SimulatedServer) -> None:
    (verdict,) = engine.score([FIRST], Rubric("Is it right?"))
    assert verdict.is_valid
    assert reasoning.stats.requests == 1
    assert verdict.usage.reasoning_tokens == 900
    assert verdict.usage.completion_tokens == 1000


def test_what_is_cut_off_again_says_how_many_tokens_went_into_reasoning(
    engine: Engine, reasoning: SimulatedServer
) -> None:
    (verdict,) = engine.score([FIRST], Rubric("Is it right?", max_tokens=100))
    assert verdict.cause is Cause.CUT_OFF
    assert verdict.failure is not None
    assert verdict.failure.facts == {"tokens": 400, "reasoning_tokens": 400, "max_tokens": 400}
    assert reasoning.stats.requests == 2, "and not a third time"
    assert "cut off after 400 tokens, 400 of them reasoning" in (verdict.error or "")


def test_both_calls_are_paid_for(engine: Engine) -> None:
    (verdict,) = engine.score([FIRST], SMALL)
    assert verdict.usage.completion_tokens == 512 + 1000
    assert verdict.usage.reasoning_tokens == 512 + 900


def test_calls_that_wait_already_leave_with_more_room() -> None:
    asked: list[int] = []

    def think(call: Asked) -> Reply:
        asked.append(call.max_tokens)
        is_enough = call.max_tokens > 3000
        return Reply("7", usage=Usage(9, 9)) if is_enough else Reply("", finish_reason="length")

    async def scene() -> None:
        config = EngineConfig(max_concurrent=1)
        async with Desk(FakeServer(think), config=config) as desk:
            verdicts = await desk.score(samples(20), Marks())
            assert [verdict.score for verdict in verdicts] == [7.0] * 20

    run(scene())
    assert len(asked) == 21
    assert asked.count(2048) == 1


@pytest.mark.parametrize(
    ("context", "room"), [(5000, 4096), (3000, 2048)], ids=["half of it fits", "none of it fits"]
)
def test_an_endpoint_that_refuses_more_room_is_asked_for_less(context: int, room: int) -> None:
    asked: list[int] = []

    def think(call: Asked) -> Reply:
        asked.append(call.max_tokens)
        if call.max_tokens > context:
            raise RequestRefused("max_tokens is too large")
        is_enough = call.max_tokens > 3000
        return Reply("7", usage=Usage(9, 9)) if is_enough else Reply("", finish_reason="length")

    async def scene() -> list[Verdict]:
        async with Desk(FakeServer(think), config=EngineConfig(max_concurrent=1)) as desk:
            return list(await desk.score(samples(20), Marks()))

    verdicts = run(scene())
    assert asked.count(8192) <= 2, "and not for every sample"
    assert asked.count(room) >= 20
    assert {verdict.cause for verdict in verdicts} == {None if room > 3000 else Cause.CUT_OFF}


def test_the_next_run_gives_room_from_its_first_call(reasoning: SimulatedServer) -> None:
    def score_one(sample: Sample) -> None:
        endpoint = Endpoint("http://judge/v1", model="thinker")
        with Engine(
            endpoints=[endpoint], cache=None, transport=lambda _: SimulatedTransport(reasoning)
        ) as engine:
            assert engine.score([sample], SMALL)[0].is_valid

    score_one(FIRST)
    assert reasoning.stats.requests == 2
    score_one(SECOND)
    assert reasoning.stats.requests == 3


def test_only_the_endpoint_that_was_cut_off_gets_more_room() -> None:
    def think(call: Asked) -> Reply:
        if call.max_tokens > 3000:
            return Reply("7", usage=Usage(9, 3000))
        return Reply("", finish_reason="length")

    async def scene() -> None:
        reasons, answers = FakeServer(think), FakeServer(lambda _: Reply("7", usage=Usage(9, 9)))
        async with Desk(reasons, answers, config=EngineConfig(max_concurrent=2)) as desk:
            verdicts = await desk.score(samples(60), Marks())
        assert [verdict.score for verdict in verdicts] == [7.0] * 60
        assert [call.max_tokens for call in reasons.asked].count(8192) > 10
        assert [call.max_tokens for call in answers.asked].count(2048) > 10
        assert [call.max_tokens for call in answers.asked].count(8192) <= 1, "but for the one asked again"

    run(scene())


def test_room_that_no_reply_needs_any_more_is_taken_back() -> None:
    replies = [Reply("", finish_reason="length"), *[Reply("7", usage=Usage(9, 9))] * (ROOMY + 20)]

    async def scene() -> None:
        server = FakeServer(lambda call: replies[call.arrival])
        async with Desk(server, config=EngineConfig(max_concurrent=1, hedge=False)) as desk:
            await desk.score(samples(ROOMY + 10), Marks())
        asked = [call.max_tokens for call in server.asked]
        assert asked[0] == 2048
        assert set(asked[1 : ROOMY + 1]) == {8192}
        assert asked[ROOMY + 1 :].count(8192) == 1, "the one that was asked again"
        assert asked[ROOMY + 1 :].count(2048) == 9

    run(scene())


def test_that_replies_need_room_is_kept_beside_the_limit_that_is_known(tmp_path: Path) -> None:
    path = tmp_path / "limits.json"
    save(path, {"a": Learned(at=NOW, limit=64)}, now=NOW)
    save(path, {"a": Learned(at=NOW + 5, needs_room=True)}, now=NOW + 5)
    assert load(path, now=NOW + 9) == {"a": Learned(at=NOW, limit=64, needs_room=True)}
    save(path, {"a": Learned(at=NOW + 7, limit=32)}, now=NOW + 7)
    assert load(path, now=NOW + 9) == {"a": Learned(at=NOW + 7, limit=32)}


def test_a_reply_of_one_word_or_of_a_fixed_length_is_not_asked_for_with_more_room() -> None:
    class Fixed(Marks):
        def render(self, sample: Sample) -> ChatRequest:
            return ChatRequest(({"role": "user", "content": sample.text},), max_tokens=4, is_fixed=True)

    async def scene() -> None:
        server = FakeServer(lambda _: Reply("", finish_reason="length"))
        async with Desk(server) as desk:
            (verdict,) = await desk.score(samples(1), Fixed())
            assert verdict.cause is Cause.UNREADABLE
        assert {call.max_tokens for call in server.asked} == {4}

    run(scene())
