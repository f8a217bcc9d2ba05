"""The engine's contract and promises, over a real server on this machine or a simulated one in memory."""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import logging
import pickle
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from complaints import about
from held import GOOD, Held
from loopback import HANGING, INSTANT, JUDGE, PROMPT, loopback, reserved_port, samples, taking
from until import PATIENCE_S, until

import plaudit
from plaudit import Endpoint, Engine, Pending, Price, Rubric, Sample, Source, Status, Verdict
from plaudit.caches import SqliteCache
from plaudit.config import EngineConfig, home
from plaudit.errors import ConfigError, EngineClosed
from plaudit.events import (
    BatchFinished,
    BatchStarted,
    BreakerChanged,
    CallStarted,
    CauseCount,
    Event,
    VerdictsReady,
)
from plaudit.judges import Judge
from plaudit.simulator import Fault, Reject, SimulatedServer, SimulatedTransport
from plaudit.testing import ScriptedTransport
from plaudit.types import Cause, ChatRequest, Reply

KEY = "sk-very-secret-0123456789"
ONE_TO_TEN = Rubric("Is it correct and brief?", scale=(1, 10))
"""0.0 is no score here, so that a failure turned into one cannot hide."""


def simulated(cache: str | None = None) -> Engine:
    """An engine over a server in this process, which answers at once."""
    return Engine(
        "http://simulated/v1", model="m", cache=cache, transport=lambda _: SimulatedTransport(INSTANT)
    )


def scores(verdicts: list[Verdict]) -> list[float | None]:
    return [verdict.score for verdict in verdicts]


def statuses(verdicts: list[Verdict]) -> set[Status]:
    return {verdict.status for verdict in verdicts}


# -- the contract -----------------------------------------------------------------------------------------


def test_a_coroutine_can_be_run_where_the_engine_works() -> None:
    async def main() -> tuple[list[Verdict], threading.Thread]:
        return await engine.ascore(samples(20), JUDGE), threading.current_thread()

    with simulated() as engine:
        verdicts, where = engine.run(main)
        assert all(verdict.is_valid for verdict in verdicts) and where is not threading.main_thread()
        with pytest.raises(ZeroDivisionError):
            engine.run(failing)
        assert all(verdict.is_valid for verdict in engine.score(samples(3), JUDGE))


async def failing() -> float:
    return 1 / 0


def test_verdicts_come_in_the_order_of_the_samples() -> None:
    with loopback() as server, Engine(server.url, model="m", cache=None) as engine:
        forwards = engine.score(samples(100), JUDGE)
        backwards = engine.submit(samples(100)[::-1], JUDGE).result()
        assert scores(forwards) == scores(backwards)[::-1]
        assert len(set(scores(forwards))) > 5
        assert statuses(forwards) == {Status.OK}
        assert forwards[0].model == "m"


def test_a_batch_may_be_empty_or_come_from_a_generator() -> None:
    with simulated() as engine:
        assert engine.score([], JUDGE) == []
        pending = engine.submit([], JUDGE)
        assert pending.done()
        assert list(pending.as_completed()) == []
        assert len(engine.score((sample for sample in samples(5)), JUDGE)) == 5


def test_rows_and_a_text_serve_as_samples_and_rubric() -> None:
    with loopback() as server, Engine(base_url=server.url, model="m", cache=None) as engine:
        [verdict] = engine.score({"question": "1 + 1?", "answer": "2"}, "Is it correct?")
        assert [verdict.score] == scores(engine.score([Sample("1 + 1?", "2")], Rubric("Is it correct?")))


def test_two_urls_for_one_engine_are_an_error() -> None:
    with pytest.raises(ConfigError, check=about("base_url", "http://b/v1")):
        Engine("http://a/v1", base_url="http://b/v1", model="m")


def test_a_thousand_submits_of_one_sample_give_what_one_batch_gives() -> None:
    batch = samples(1000)
    with simulated() as engine:
        whole = engine.score(batch, JUDGE)
    with simulated() as engine:
        pendings = [engine.submit([sample], JUDGE) for sample in batch]
        single = [pending.result()[0] for pending in pendings]
    assert scores(single) == scores(whole)


def test_threads_share_an_engine() -> None:
    with simulated() as engine:
        expected = {
            word: scores(engine.score(samples(50, word), JUDGE)) for word in ("Paris", "Rome", "Oslo")
        }
    with simulated() as engine:
        found: dict[str, list[float | None]] = {}
        barrier = threading.Barrier(3)

        def work(word: str) -> None:
            barrier.wait()  # the first batch of all three: only one of them starts the thread
            found[word] = scores(engine.score(samples(50, word), JUDGE))

        threads = [threading.Thread(target=work, args=(word,)) for word in expected]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [thread.name for thread in threading.enumerate()].count("plaudit") == 1
    assert found == expected


def test_submit_only_copies_the_list() -> None:
    """Rendering, hashing and sending happen on the engine's thread, which is held here meanwhile."""
    go_on = threading.Event()
    rendered = 0

    class Counting(Judge):
        version = "1"
        scale = (0.0, 1.0)

        def render(self, sample: Sample) -> ChatRequest | Verdict:
            nonlocal rendered
            rendered += 1
            return Verdict(1.0, Status.EMPTY, source=Source.RULE)

        def parse(self, reply: Reply, sample: Sample) -> Verdict:
            raise AssertionError("no call was needed")

    def hold(event: Event) -> None:
        if isinstance(event, BatchStarted):
            go_on.wait()

    with Engine(
        "http://held/v1", model="m", cache=None, observers=[hold], transport=lambda _: Held()
    ) as engine:
        batch = [Sample(PROMPT, "x")] * 100_000
        pending = engine.submit(batch, Counting())
        batch.clear()  # the caller's list is the caller's again
        assert rendered == 0
        go_on.set()
        assert len(pending.result()) == 100_000
        assert rendered == 100_000


def test_several_endpoints_share_the_work_and_are_made_on_first_use() -> None:
    asked: list[Endpoint] = []
    servers = {"http://a/v1": SimulatedServer(INSTANT), "http://b/v1": SimulatedServer(INSTANT)}

    def make(endpoint: Endpoint) -> SimulatedTransport:
        asked.append(endpoint)
        return SimulatedTransport(servers[endpoint.url])

    endpoints = [Endpoint(url, model="m") for url in servers]
    with Engine(endpoints=endpoints, cache=None, transport=make) as engine:
        assert asked == []
        assert statuses(engine.score(samples(200), JUDGE)) == {Status.OK}
    assert asked == endpoints
    assert all(server.stats.requests > 20 for server in servers.values())


def test_whoever_is_interrupted_while_scoring_pays_for_nothing_more() -> None:
    held = Held()
    finished: list[Event] = []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it

    def interrupt() -> None:
        until(lambda: len(held.sent) >= 2)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with Engine(
        "http://held/v1",
        model="m",
        cache=None,
        max_concurrent=2,
        observers=[finished.append],
        transport=lambda _: held,
    ) as engine:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            engine.score(samples(50), JUDGE)
        signal.signal(signal.SIGINT, before)
        held.all.set()
        engine.score(samples(1, "Rome"), JUDGE)
        assert len(held.sent) == 3
    assert [event.summary.causes for event in finished if isinstance(event, BatchFinished)] == [
        (CauseCount(Cause.CANCELLED, 50, "cancelled"),),
        (),
    ]


# -- async callers ----------------------------------------------------------------------------------------


def test_the_same_engine_serves_one_event_loop_after_another() -> None:
    with simulated() as engine:
        first = asyncio.run(engine.ascore(samples(20), JUDGE))
        second = asyncio.run(engine.ascore(samples(20), JUDGE))
    assert scores(first) == scores(second)


def test_two_event_loops_use_an_engine_at_once() -> None:
    held = Held()
    with Engine("http://held/v1", model="m", cache=None, transport=lambda _: held) as engine:
        found: list[list[Verdict]] = []
        threads = [
            threading.Thread(
                target=lambda word=word: found.append(asyncio.run(engine.ascore(samples(5, word), JUDGE)))
            )
            for word in ("Paris", "Rome")
        ]
        for thread in threads:
            thread.start()
        until(lambda: len(held.sent) >= 10)
        held.all.set()
        for thread in threads:
            thread.join()
    assert [statuses(verdicts) for verdicts in found] == [{Status.OK}] * 2


def test_cancelling_the_caller_calls_the_batch_off() -> None:
    held = Held()
    finished: list[BatchFinished] = []

    def note(event: Event) -> None:
        if isinstance(event, BatchFinished):
            finished.append(event)

    async def main(engine: Engine) -> None:
        task = asyncio.create_task(engine.ascore(samples(50), JUDGE))
        await asyncio.to_thread(until, lambda: len(held.sent) >= 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with Engine(
        "http://held/v1", model="m", cache=None, max_concurrent=2, observers=[note], transport=lambda _: held
    ) as engine:
        asyncio.run(main(engine))
        held.all.set()
        assert statuses(engine.score(samples(1, "Rome"), JUDGE)) == {Status.OK}
        assert len(held.sent) == 3
    assert finished[0].summary.causes == (CauseCount(Cause.CANCELLED, 50, "cancelled"),)


# -- settings ---------------------------------------------------------------------------------------------


def test_what_is_left_out_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback(INSTANT.replace(api_key=KEY, latency=taking(0.01))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("PLAUDIT_MODEL", "m")
        monkeypatch.setenv("PLAUDIT_MAX_CONCURRENT", "3")
        monkeypatch.setenv("PLAUDIT_CACHE", "off")
        with Engine() as engine:
            assert statuses(engine.score(samples(20), JUDGE)) == {Status.OK}
        assert server.stats.peak_in_flight == 3
        assert not (home() / "verdicts.sqlite").exists()
        with Engine(max_concurrent=5) as engine:  # an argument wins
            engine.score(samples(20), JUDGE)
        assert server.stats.peak_in_flight == 5


LIMITS = ("max_concurrent", "rpm", "tpm")


def test_none_means_no_limit_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LIMITS:
        monkeypatch.setenv(f"PLAUDIT_{name.upper()}", "7")
    left_out = Engine("http://host/v1", model="m", cache=None)
    said = Engine("http://host/v1", model="m", cache=None, max_concurrent=None, rpm=None, tpm=None)
    assert [getattr(left_out.config, name) for name in LIMITS] == [7, 7, 7]
    assert [getattr(said.config, name) for name in LIMITS] == [None, None, None]


def test_an_engine_from_a_configuration_is_that_configuration(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = EngineConfig(endpoints=(Endpoint("http://host/v1", model="m"),))
    monkeypatch.setenv("PLAUDIT_RPM", "7")
    monkeypatch.setenv("PLAUDIT_TIMEOUT", "not even a number")
    monkeypatch.setenv("PLAUDIT_CONFIG", str(tmp_path / "missing.toml"))
    assert Engine.from_config(config).config == config


def test_an_option_that_does_not_exist_is_named_with_the_one_that_does() -> None:
    with pytest.raises(ConfigError, check=about("max_concurent")):
        Engine("http://host/v1", model="m", max_concurent=3)  # type: ignore[call-arg]


def test_a_configuration_without_endpoints_opens_no_engine() -> None:
    with pytest.raises(ConfigError, check=about("endpoints")):
        Engine.from_config(EngineConfig())


def test_what_is_left_out_comes_from_the_file_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plaudit.toml").write_text('base_url = "http://somewhere/v1"\nmodel = "m"\nrpm = 7\n')
    monkeypatch.chdir(tmp_path)
    engine = Engine()
    assert [endpoint.name for endpoint in engine.endpoints] == ["http://somewhere/v1 m"]
    assert repr(engine) == "Engine(http://somewhere/v1, model='m')"


@pytest.mark.parametrize(
    ("arguments", "setting"),
    [
        ({"url": None}, "url"),
        ({"url": "localhost:8000"}, "url"),
        ({"endpoints": [Endpoint("http://a")]}, "endpoints"),
        ({"max_concurrent": 0}, "max_concurrent"),
        ({"rpm": -1}, "rpm"),
        ({"timeout": 0.0}, "timeout"),
        ({"budget": 5.0}, "budget"),
        ({"budget": -1.0}, "budget"),
        ({"client": "requests"}, "client"),
        ({"api_key": "sk-schlüssel"}, "api_key"),
    ],
    ids=str,
)
def test_a_setting_that_cannot_be_is_refused_before_anything_starts(
    arguments: dict[str, object], setting: str
) -> None:
    with pytest.raises(ConfigError, check=about(setting)) as caught:
        Engine(**{"url": "http://a/v1", "model": "m", **arguments})  # type: ignore[arg-type]
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize("deadline", [0.0, -1.0, float("nan")])
def test_a_deadline_in_the_past_is_refused(deadline: float) -> None:
    with simulated() as engine, pytest.raises(ConfigError, check=about("deadline")):
        engine.submit(samples(1), JUDGE, deadline=deadline)


def test_a_key_shows_nowhere() -> None:
    with loopback(INSTANT.replace(api_key="another")) as server:
        engine = Engine(server.url, model="m", api_key=KEY, cache=None)
        (verdict,) = engine.score(samples(1), JUDGE)
        engine.close()
    shown = [repr(engine), repr(vars(engine)), repr(copy.deepcopy(engine.endpoints)), repr(verdict)]
    assert not any(KEY in text for text in shown)


def test_an_engine_says_why_it_cannot_be_pickled_or_copied() -> None:
    engine = simulated()
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="open one in each process"):
            attempt(engine)


# -- 1, 2, 3: one outcome each, no failure as a number, nothing paid twice --------------------------------

FAULTS = (
    Fault("error", probability=0.02, status=500),
    Fault("error", probability=0.02, status=503, retry_after=0.01),
    Fault("reset", probability=0.01),
    Fault("cut", probability=0.01),
    Fault("bad_json", probability=0.01),
    Fault("html", probability=0.01),
    Fault("babble", probability=0.01),
    Fault("refusal", probability=0.02),
)


def test_with_a_tenth_of_calls_failing_each_sample_has_its_own_true_verdict_or_none() -> None:
    batch = samples(200)
    sound = INSTANT.replace(seed=1)
    with loopback(sound) as server, Engine(server.url, model="m", cache=None) as engine:
        truth = scores(engine.score(batch, ONE_TO_TEN))
    with loopback(sound.replace(faults=FAULTS)) as server:
        with Engine(server.url, model="m") as engine:
            pending = engine.submit(batch, ONE_TO_TEN)
            verdicts = pending.result()
        stats = server.stats
        assert len(verdicts) == 200
        for verdict, expected in zip(verdicts, truth, strict=True):
            assert verdict.score in (expected, None)
            assert verdict.is_valid is (verdict.status is Status.OK)
            assert bool(verdict.error) is not verdict.is_valid
        failed = [verdict for verdict in verdicts if not verdict.is_valid]
        assert 0 < len(failed) == pending.summary.failures
        assert {verdict.status for verdict in failed} <= {Status.REFUSED, Status.UNREADABLE}
        assert stats.unique == 200
        # Whatever was asked for twice was asked for again because the first reply was lost.
        assert stats.duplicates <= sum(stats.faults.values()) - len(failed) + pending.summary.hedges

        paid = stats.requests
        with Engine(server.url, model="m") as engine:
            again = engine.score(batch, ONE_TO_TEN)
        by_source = [verdict.source for verdict in again]
        assert by_source.count(Source.CACHE) == 200 - len(failed)  # all that was good, and no failure
        assert len(failed) <= stats.requests - paid <= 5 * len(failed)


def test_requests_in_flight_are_shared_between_batches_and_threads() -> None:
    held = Held()
    with Engine("http://held/v1", model="m", cache=None, transport=lambda _: held) as engine:
        first, second = engine.submit(samples(10), JUDGE), engine.submit(samples(10), JUDGE)
        until(lambda: len(held.sent) >= 10)
        held.all.set()
        assert scores(first.result()) == scores(second.result())
        assert {verdict.source for verdict in second.result()} == {Source.SHARED}
        assert len(held.sent) == 10


def test_a_second_engine_finds_the_verdicts_of_the_first_in_the_users_file() -> None:
    with loopback() as server:
        with Engine(server.url, model="m", hedge=False) as engine:
            first = engine.score(samples(50), JUDGE)
        assert (home() / "verdicts.sqlite").exists()
        with Engine(server.url, model="m") as engine:
            second = engine.score(samples(50), JUDGE)
        assert scores(first) == scores(second)
        assert {verdict.source for verdict in second} == {Source.CACHE}
        assert server.stats.requests == 50
        with Engine(server.url, model="another") as engine:  # another model is another question
            assert {verdict.source for verdict in engine.score(samples(5), JUDGE)} == {Source.CALL}


def test_a_cache_of_the_callers_stays_open(tmp_path: Path) -> None:
    cache = SqliteCache(tmp_path / "mine.sqlite")
    with loopback() as server:
        for expected in (Source.CALL, Source.CACHE):
            with Engine(server.url, model="m", cache=cache) as engine:
                assert {verdict.source for verdict in engine.score(samples(5), JUDGE)} == {expected}
    asyncio.run(cache.close())


def test_a_home_that_cannot_be_written_costs_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("PLAUDIT_HOME", str(tmp_path / "file" / "home"))
    with loopback() as server, Engine(server.url, model="m") as engine:
        assert statuses(engine.score(samples(20), JUDGE)) == {Status.OK}
        assert statuses(engine.score(samples(20), JUDGE)) == {Status.OK}
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert "going on without the cache" in warnings[0]


# -- what bad input gets ----------------------------------------------------------------------------------


def test_a_wrong_key_gets_one_message_and_few_calls() -> None:
    with loopback(INSTANT.replace(api_key="right")) as server:
        with Engine(server.url, model="m", api_key=KEY) as engine:
            pending = engine.submit(samples(1024), JUDGE)
            verdicts = pending.result()
        ((cause, message),) = ((one.cause, one.error) for one in pending.summary.causes)
        assert cause is Cause.REFUSED_KEY
        assert "api_key" in message
        assert KEY not in message
        assert {verdict.error for verdict in verdicts} == {message}
        assert scores(verdicts) == [None] * 1024
        assert server.stats.requests <= 128


def test_an_unknown_model_is_named() -> None:
    with loopback() as server, Engine(server.url, model="missing") as engine:
        verdicts = engine.score(samples(100), JUDGE)
        assert statuses(verdicts) == {Status.FAILED}
        assert "model 'missing' does not exist" in str(verdicts[0].error)
        assert server.stats.requests <= 128


def test_a_server_that_starts_late_is_waited_for_and_told_of_with_its_url_and_a_remedy() -> None:
    told: list[BreakerChanged] = []
    is_told = threading.Event()

    def observe(event: Event) -> None:
        if isinstance(event, BreakerChanged) and event.state == "open":
            told.append(event)
            is_told.set()

    with (
        reserved_port() as port,
        Engine(f"http://127.0.0.1:{port}/v1", model="m", observers=[observe]) as engine,
    ):
        pending = engine.submit(samples(100), JUDGE)
        assert is_told.wait(PATIENCE_S)
        with loopback(port=port):
            assert statuses(pending.result()) == {Status.OK}
    assert f"no connection to http://127.0.0.1:{port}/v1" in str(told[0].error)
    assert "plaudit simulate" in str(told[0].error)
    assert told[0].waits_s == 60.0


def test_odd_responses_harm_no_neighbour() -> None:
    huge = Rubric("Is it brief?", max_chars=20_000_000)
    odd = [
        Sample(PROMPT, "Paris"),
        Sample(PROMPT, "a lone surrogate: \ud800"),
        Sample(PROMPT, "ten megabytes: " + "x" * 10_000_000),
        Sample(PROMPT, None),  # type: ignore[arg-type]
        Sample(PROMPT, ""),
        Sample(PROMPT, "Rome"),
    ]
    scenario = INSTANT.replace(max_context=100_000)
    with loopback(scenario) as server, Engine(server.url, model="m") as engine:
        verdicts = engine.score(odd, huge)
    assert [verdict.status for verdict in verdicts] == [
        Status.OK,
        Status.OK,
        Status.FAILED,
        Status.FAILED,
        Status.EMPTY,
        Status.OK,
    ]
    assert "longer than the model's context" in str(verdicts[2].error)
    assert "NoneType" in str(verdicts[3].error)


# -- 4: limits --------------------------------------------------------------------------------------------


def test_max_concurrent_is_never_crossed_at_the_server() -> None:
    with loopback(INSTANT.replace(latency=taking(0.005))) as server:
        local = server.url.replace("127.0.0.1", "localhost")
        both = [Endpoint(server.url, model="m"), Endpoint(local, model="m")]
        with Engine(endpoints=both, max_concurrent=7, cache=None) as engine:
            pendings = [engine.submit(samples(60, word), JUDGE) for word in ("Paris", "Rome")]
            assert [statuses(pending.result()) for pending in pendings] == [{Status.OK}] * 2
        assert server.stats.peak_in_flight == 7


def test_requests_a_minute_are_never_crossed_at_the_server() -> None:
    with loopback() as server, Engine(server.url, model="m", rpm=20, cache=None) as engine:
        pending = engine.submit(samples(50), JUDGE)
        until(lambda: pending.remaining <= 30)
        verdicts = pending.result(timeout=0.1)
        assert [verdict.status for verdict in verdicts].count(Status.OK) == 20
        assert server.stats.requests == 20


def test_a_budget_is_never_crossed() -> None:
    price = Price(prompt=1.0, completion=1.0)
    with loopback() as server:
        endpoint = Endpoint(server.url, model="m", price=price)
        with Engine(endpoints=[endpoint], budget=0.05, cache=None) as engine:
            pending = engine.submit(samples(200), JUDGE)
            verdicts = pending.result()
    assert 0 < pending.summary.by_status["ok"] < 200
    assert pending.summary.cost is not None
    assert pending.summary.cost <= 0.05
    assert "raise it to go on" in str(next(verdict.error for verdict in verdicts if verdict.error))


def test_the_limit_that_was_learned_outlives_the_engine() -> None:
    server = SimulatedServer(INSTANT.replace(latency=taking(0.05), capacity=Reject(slots=8)))

    def refused_in_a_run() -> int:
        before = server.stats.rejects[429]
        with Engine(
            "http://simulated/v1", model="m", cache=None, transport=lambda _: SimulatedTransport(server)
        ) as engine:
            engine.score(samples(100), JUDGE)
        return server.stats.rejects[429] - before

    cold = refused_in_a_run()
    learned = json.loads((home() / "limits.json").read_text())
    assert 6 <= learned["http://simulated/v1 m"]["limit"] <= 10
    warm = refused_in_a_run()
    assert cold >= 20
    assert warm < cold / 2


def test_streaming_samples_one_by_one_does_not_write_the_limits_each_time() -> None:
    with loopback(INSTANT.replace(latency=taking(0.01))) as server:
        with Engine(server.url, model="m", cache=None) as engine:
            rounds = itertools.count()

            def is_written() -> (
                bool
            ):  # after a batch in which the limit grows; a busy machine may need several
                engine.score(samples(200, f"Paris {next(rounds)}"), JUDGE)
                return (home() / "limits.json").exists()

            until(is_written)
            written = (home() / "limits.json").stat().st_mtime_ns
            for sample in samples(20, "Rome"):
                engine.score([sample], JUDGE)
            assert (home() / "limits.json").stat().st_mtime_ns == written
        assert (home() / "limits.json").stat().st_mtime_ns > written


# -- 5: deadlines -----------------------------------------------------------------------------------------


def test_deadlines_hold_though_the_server_hangs() -> None:
    with loopback(HANGING) as server, Engine(server.url, model="m", timeout=1e6) as engine:
        start = time.monotonic()
        by_deadline = engine.score(samples(200), JUDGE, deadline=0.2)
        assert 0.15 < time.monotonic() - start < PATIENCE_S
        start = time.monotonic()
        by_timeout = engine.submit(samples(200), JUDGE).result(timeout=0.2)
        assert 0.15 < time.monotonic() - start < PATIENCE_S
        start = time.monotonic()
    assert time.monotonic() - start < PATIENCE_S  # closing does not wait for the server either
    assert {(v.status, v.score) for v in by_deadline + by_timeout} == {(Status.DEADLINE, None)}


def test_replies_that_come_too_late_fill_the_cache() -> None:
    held = Held()
    with Engine("http://held/v1", model="m", hedge=False, transport=lambda _: held) as engine:
        pending = engine.submit(samples(10), JUDGE)
        until(lambda: len(held.sent) >= 10)
        assert statuses(pending.result(timeout=0.05)) == {Status.DEADLINE}
        held.all.set()
        again = engine.score(samples(10), JUDGE)
        assert statuses(again) == {Status.OK}
        assert len(held.sent) == 10
    with loopback() as nobody, Engine(nobody.url, model="m") as engine:
        once_more = engine.score(samples(10), JUDGE)  # another server, the same model: the same question
        assert {verdict.source for verdict in once_more} == {Source.CACHE}


def test_one_call_is_given_up_after_its_timeout_and_tried_again() -> None:
    first_hangs = INSTANT.replace(faults=(Fault("hang", requests=(0, 1)),))
    with loopback(first_hangs) as server, Engine(server.url, model="m", timeout=0.3) as engine:
        (verdict,) = engine.score(samples(1), JUDGE)
        assert verdict.status is Status.OK
        assert verdict.attempts >= 2  # a busy machine may be slow to answer the second one, too


# -- 7: observers -----------------------------------------------------------------------------------------


def test_an_observer_that_fails_is_dropped_with_a_log_and_the_batch_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[Event] = []
    calls = 0

    def failing(event: Event) -> None:
        nonlocal calls
        calls += 1
        raise SystemExit if isinstance(event, CallStarted) else ValueError

    def failing_later(event: Event) -> None:
        if isinstance(event, CallStarted):
            raise SystemExit

    with Engine(
        "http://scripted/v1",
        model="m",
        cache=None,
        observers=[failing, failing_later, seen.append],
        transport=lambda _: ScriptedTransport([GOOD]),
    ) as engine:
        assert statuses(engine.score(samples(20), JUDGE)) == {Status.OK}
    assert calls == 1
    assert ".failing failed and is dropped: ValueError()" in caplog.text
    assert ".failing_later failed and is dropped: SystemExit()" in caplog.text
    assert isinstance(seen[-1], BatchFinished)


def test_an_observer_may_submit_but_not_wait() -> None:
    follow_ups: list[Pending] = []
    refused: list[EngineClosed] = []

    def on_finished(event: Event) -> None:
        if isinstance(event, BatchFinished) and not follow_ups:
            follow_ups.append(pending := engine.submit(samples(3, "Rome"), JUDGE))
            for wait in (pending.result, pending.as_completed, lambda: engine.score(samples(1), JUDGE)):
                with pytest.raises(EngineClosed, match="engine's own thread") as caught:
                    wait()
                refused.append(caught.value)

    with Engine(
        "http://scripted/v1",
        model="m",
        cache=None,
        observers=[on_finished],
        transport=lambda _: ScriptedTransport([GOOD]),
    ) as engine:
        engine.score(samples(3), JUDGE)
        until(lambda: len(refused) >= 3)
        (pending,) = follow_ups
        assert statuses(pending.result()) == {Status.OK}


def test_a_large_batch_that_needs_no_call_does_not_hold_up_a_small_one() -> None:
    finished: list[int] = []
    small: list[Pending] = []

    def follow(event: Event) -> None:
        if isinstance(event, VerdictsReady) and not small:
            small.append(engine.submit(samples(1), JUDGE))
        elif isinstance(event, BatchFinished):
            finished.append(event.summary.samples)

    with Engine(
        "http://scripted/v1",
        model="m",
        cache=None,
        observers=[follow],
        transport=lambda _: ScriptedTransport([GOOD]),
    ) as engine:
        engine.score([Sample(PROMPT, " ")] * 5_000, JUDGE)
        small[0].result()
    assert finished == [1, 5_000]


def test_a_judge_that_exits_costs_its_own_sample_only(caplog: pytest.LogCaptureFixture) -> None:
    class Exiting(Judge):
        version = "1"
        scale = (0.0, 10.0)

        def render(self, sample: Sample) -> ChatRequest | Verdict:
            if sample.response == "Paris 1":
                raise SystemExit(1)
            return JUDGE.render(sample)

        def parse(self, reply: Reply, sample: Sample) -> Verdict:
            if sample.response == "Paris 2":
                raise SystemExit(2)
            return JUDGE.parse(reply, sample)

    with simulated() as engine:
        verdicts = engine.score(samples(4), Exiting())
    assert [verdict.status for verdict in verdicts] == [Status.OK, Status.FAILED, Status.FAILED, Status.OK]


@pytest.fixture(autouse=True)
def no_engine_is_left_behind() -> Iterator[None]:
    yield
    assert "plaudit" not in [thread.name for thread in threading.enumerate()]


def test_an_async_with_block_closes_the_engine_without_holding_up_its_loop() -> None:
    async def score() -> tuple[Verdict, Engine]:
        transport = ScriptedTransport([Reply('{"reason": "", "score": 7}')])
        async with Engine("http://x/v1", model="m", cache=None, transport=lambda _: transport) as engine:
            return (await engine.ascore([Sample("q", "a")], JUDGE))[0], engine

    verdict, engine = asyncio.run(score())
    assert verdict.score == 7
    with pytest.raises(EngineClosed):
        engine.submit([Sample("q", "a")], JUDGE)


def test_a_misspelt_name_of_the_front_door_gets_the_interpreters_suggestion() -> None:
    with pytest.raises(AttributeError) as caught:
        plaudit.Rubic  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("Rubic", plaudit)
