"""The judge behind a legacy manager: two modes, one time limit, and nothing left running."""

from __future__ import annotations

import functools
import gc
import logging
import os
import pickle
import threading
import time

import pytest
from held import Held
from legacy_rows import RUBRIC
from loopback import HANGING, INSTANT, loopback, samples, taking
from until import until

from plaudit import Endpoint, Engine, Reference, Sample, Status
from plaudit.integrations.verl import LengthPenaltyConfig
from plaudit.integrations.verl.legacy.judge_workers import JudgeWorkers
from plaudit.simulator import Fault
from plaudit.types import Cause, Failure


def workers(
    url: str, *, use_async_io: bool = True, time_limit: float = 30.0, max_concurrent: int | None = None
) -> JudgeWorkers:
    config = LengthPenaltyConfig(model_name="m", api_endpoint=url)
    return JudgeWorkers(
        functools.partial(config.open_engine, config.settings()),
        RUBRIC,
        time_limit=time_limit,
        use_async_io=use_async_io,
        max_concurrent=max_concurrent,
    )


def engines() -> set[threading.Thread]:
    """The threads of engines; other tests of the process may have left one at work."""
    return {thread for thread in threading.enumerate() if thread.name == "plaudit"}


# -- two modes --------------------------------------------------------------------------------------------


def test_sending_returns_at_once_and_waiting_gives_every_verdict_in_order() -> None:
    held = Held()
    endpoint = Endpoint("http://localhost:1/v1", model="m")
    team = JudgeWorkers(
        lambda limit: Engine(endpoints=[endpoint], cache=None, transport=lambda _: held),
        RUBRIC,
        time_limit=30.0,
    )
    flight = team.send(samples(8))  # comes back though nobody has answered yet
    held.all.set()
    verdicts = flight()
    assert [verdict.score for verdict in verdicts] == [0.7] * 8
    assert flight() is verdicts
    team.shutdown()


def test_both_modes_give_the_same_scores() -> None:
    with loopback() as server:
        fast, slow = workers(server.url), workers(server.url, use_async_io=False)
        scores = [verdict.score for verdict in fast.send(samples(12))()]
        assert scores == [verdict.score for verdict in slow.send(samples(12))()]
        assert len(set(scores)) > 3
        assert all(score is not None and 0.0 <= score <= 1.0 for score in scores)
        fast.shutdown()
        slow.shutdown()


def test_the_synchronous_mode_has_one_call_at_a_time_and_is_done_when_send_returns() -> None:
    with loopback(INSTANT.replace(latency=taking(0.002))) as server:
        team = workers(server.url, use_async_io=False, max_concurrent=60)
        flight = team.send(samples(10))
        assert server.stats.answered == 10
        assert server.stats.peak_in_flight == 1
        assert all(verdict.is_valid for verdict in flight())
        team.shutdown()


def test_the_synchronous_mode_retries_as_the_other_one_does() -> None:
    with loopback(INSTANT.replace(faults=(Fault("error", requests=(0, 2)),))) as server:
        team = workers(server.url, use_async_io=False)
        assert all(verdict.is_valid for verdict in team.send(samples(3))())
        team.shutdown()


def test_the_ceiling_on_requests_is_never_crossed() -> None:
    with loopback(INSTANT.replace(latency=taking(0.005))) as server:
        team = workers(server.url, max_concurrent=3)
        team.send(samples(30))()
        assert server.stats.peak_in_flight == 3
        team.shutdown()


# -- time -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("use_async_io", [True, False])
def test_after_the_time_limit_what_is_missing_says_so_once_for_the_batch(
    use_async_io: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with loopback(HANGING) as server:
        team = workers(server.url, use_async_io=use_async_io, time_limit=0.2)
        start = time.monotonic()
        verdicts = team.send(samples(16))()
        assert time.monotonic() - start < 20.0
        assert {(verdict.status, verdict.score) for verdict in verdicts} == {(Status.DEADLINE, None)}
        assert "16 of 16 responses have no verdict (16 deadline)" in caplog.text
        team.shutdown()


# -- starting and stopping --------------------------------------------------------------------------------


def test_the_first_batch_starts_them_and_dropping_them_stops_them() -> None:
    before = engines()
    with loopback() as server:
        team = workers(server.url)
        assert not engines() - before
        team.send(samples(2))()
        assert len(engines() - before) == 1
        del team
        gc.collect()
        until(lambda: not engines() - before)


def test_they_start_and_stop_when_told_to_and_then_start_again_by_themselves() -> None:
    before = engines()
    with loopback() as server:
        team = workers(server.url)
        team.start()
        team.start()
        assert len(engines() - before) == 1
        team.shutdown()
        team.shutdown()
        assert not engines() - before
        assert all(verdict.is_valid for verdict in team.send(samples(2))())
        team.shutdown()


def test_a_pickled_team_is_a_plan_for_the_same() -> None:
    with loopback() as server:
        team = workers(server.url)
        scores = [verdict.score for verdict in team.send(samples(4))()]
        other = pickle.loads(pickle.dumps(team))
        assert [verdict.score for verdict in other.send(samples(4))()] == scores
        assert server.stats.answered == 4  # the second time from the cache that both know
        team.shutdown()
        other.shutdown()


# -- trouble ----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_batch_whose_engine_is_gone_is_judged_again_one_request_at_a_time() -> None:
    with loopback(INSTANT.replace(latency=taking(0.002))) as server:
        team = workers(server.url)
        scores = [verdict.score for verdict in team.send(samples(4))()]
        held = Held()
        endpoint = Endpoint(server.url, model="m")
        opened: list[int | None] = []

        def open_engine(limit: int | None) -> Engine:
            opened.append(limit)
            if len(opened) == 1:
                return Engine(endpoints=[endpoint], cache=None, transport=lambda _: held)
            return Engine(endpoints=[endpoint], cache=None, max_concurrent=limit)

        lost = JudgeWorkers(open_engine, RUBRIC, time_limit=30.0)
        flight = lost.send(samples(4))
        child = os.fork()  # which has no thread of the engine's
        if child == 0:
            status = 1
            try:
                logging.disable()
                is_right = [verdict.score for verdict in flight()] == scores
                status = 0 if is_right and opened == [None, 1] else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert server.stats.answered == 8
        held.all.set()
        assert len(flight()) == 4  # and the parent has lost nothing
        lost.shutdown()
        team.shutdown()


def test_a_sample_that_the_judge_cannot_judge_fails_alone() -> None:
    batch = [Sample("What is 2 and 2?", f"It is {n}.", reference=None if n == 2 else "4") for n in range(5)]
    with loopback() as server:
        config = LengthPenaltyConfig(model_name="m", api_endpoint=server.url)
        team = JudgeWorkers(
            functools.partial(config.open_engine, config.settings()), Reference(), time_limit=30.0
        )
        verdicts = team.send(batch)()
        assert [verdict.is_valid for verdict in verdicts] == [True, True, False, True, True]
        assert verdicts[2].failure == Failure(Cause.INPUT, {"field": "reference"})
        assert server.stats.answered == 4
        team.shutdown()
