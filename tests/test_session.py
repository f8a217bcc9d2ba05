"""An engine's life: it ends when closed, forgotten, interrupted or forked, and leaves nothing behind."""

from __future__ import annotations

import errno
import gc
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from held import GOOD, Held
from loopback import HANGING, INSTANT, JUDGE, Loopback, loopback, samples, taking
from until import PATIENCE_S, until

from plaudit import Endpoint, Engine, Pending, Source, Status
from plaudit.errors import EngineClosed
from plaudit.events import BatchFinished, Event
from plaudit.observers.log import Log
from plaudit.simulator import Fault
from plaudit.testing import ScriptedTransport

SCRIPTS = Path(__file__).parent / "engine_scripts"
SOME_HANG = INSTANT.replace(faults=(Fault("hang", requests=(20, 1_000_000)),))


@contextmanager
def nothing_left_behind(
    server: Loopback, caplog: pytest.LogCaptureFixture, *, sockets: bool = True
) -> Iterator[None]:
    """No thread, no socket, no task, and nobody who complains of one."""
    port = int(server.url.split(":")[2].split("/")[0])
    before = set(threading.enumerate())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
        gc.collect()
    assert [str(warning.message) for warning in caught] == []
    assert set(threading.enumerate()) <= before
    connections = psutil.Process().net_connections(kind="inet")
    is_open = any(found.raddr and found.raddr.port == port for found in connections)
    assert not (sockets and is_open)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("client", ["httptools", "aiohttp", "pyreqwest"])
def test_closing_in_the_middle_ends_every_batch_and_leaves_nothing(
    client: str, caplog: pytest.LogCaptureFixture
) -> None:
    # A call of pyreqwest's cannot be cancelled: its socket stays open until the timeout.
    with loopback(SOME_HANG) as server, nothing_left_behind(server, caplog, sockets=client != "pyreqwest"):
        engine = Engine(server.url, model="m", client=client, timeout=3.0 if client == "pyreqwest" else 1e6)
        pendings = [engine.submit(samples(3000, word), JUDGE) for word in ("Paris", "Rome")]
        finished = [index for index, _ in zip(range(20), pendings[0].as_completed(), strict=False)]
        assert len(finished) == 20
        start = time.monotonic()
        engine.close()
        assert time.monotonic() - start < PATIENCE_S
        verdicts = pendings[0].result() + pendings[1].result()
        assert len(verdicts) == 6000
        good = [verdict for verdict in verdicts if verdict.status is Status.OK]
        others = {(v.status, v.score, v.error) for v in verdicts if v.status is not Status.OK}
        assert len(good) == 20
        assert {(status, score) for status, score, _ in others} == {(Status.FAILED, None)}
        assert all("closed" in str(error) for _, _, error in others)
        del engine, pendings


def test_what_was_finished_before_the_end_is_stored() -> None:
    with loopback(SOME_HANG) as server:
        engine = Engine(server.url, model="m")
        pending = engine.submit(samples(100), JUDGE)
        stream = pending.as_completed()
        indices = [next(stream)[0] for _ in range(20)]
        engine.close()
        with Engine(server.url, model="m") as engine:
            again = engine.score([samples(100)[index] for index in indices], JUDGE)
        assert {verdict.source for verdict in again} == {Source.CACHE}


def test_closing_twice_is_fine_and_use_after_it_says_so() -> None:
    held = Held()
    held.all.set()
    engine = Engine("http://held/v1", model="m", cache=None, transport=lambda _: held)
    engine.score(samples(2), JUDGE)
    engine.close()
    engine.close()
    for use in (engine.submit, engine.score):
        with pytest.raises(EngineClosed, match="the engine is closed; open a new one"):
            use(samples(1), JUDGE)


def test_an_engine_that_is_never_used_starts_nothing() -> None:
    before = set(threading.enumerate())
    with Engine("http://nowhere/v1", model="m"):
        assert set(threading.enumerate()) == before


def test_threads_that_close_and_submit_at_once_lose_no_sample() -> None:
    """Each submit either raises, or every sample of it has its outcome."""
    for _ in range(20):
        engine = Engine(
            "http://scripted/v1", model="m", cache=None, transport=lambda _: ScriptedTransport([GOOD])
        )
        outcomes: list[int | EngineClosed] = []
        barrier = threading.Barrier(5)

        def work(engine: Engine = engine, outcomes: list[int | EngineClosed] = outcomes) -> None:
            barrier.wait()  # noqa: B023
            for _ in range(5):
                try:
                    outcomes.append(len(engine.submit(samples(3), JUDGE).result()))
                except EngineClosed as error:
                    outcomes.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        barrier.wait()
        engine.close()
        for thread in threads:
            thread.join(timeout=PATIENCE_S)
        assert len(outcomes) == 20
        assert {outcome for outcome in outcomes if isinstance(outcome, int)} <= {3}


def test_closing_waits_for_a_batch_that_is_just_being_handed_over() -> None:
    is_starting, closing = threading.Event(), threading.Event()
    pendings: list[Pending] = []

    def slow(_: Endpoint) -> Held:
        is_starting.set()
        closing.wait(timeout=PATIENCE_S)
        return Held()

    engine = Engine("http://held/v1", model="m", cache=None, transport=slow)
    thread = threading.Thread(target=lambda: pendings.append(engine.submit(samples(3), JUDGE)))
    thread.start()
    is_starting.wait()
    closer = threading.Thread(target=engine.close)
    closer.start()
    closing.set()
    closer.join()
    thread.join()
    assert {verdict.status for verdict in pendings[0].result()} == {Status.FAILED}
    assert "plaudit" not in [thread.name for thread in threading.enumerate()]


def test_an_observer_may_close_the_engine(caplog: pytest.LogCaptureFixture) -> None:
    engines: list[Engine] = []

    def close(event: Event) -> None:
        if isinstance(event, BatchFinished):
            engines[0].close()

    engine = Engine(
        "http://scripted/v1",
        model="m",
        cache=None,
        observers=[close],
        transport=lambda _: ScriptedTransport([GOOD]),
    )
    engines.append(engine)
    assert len(engine.score(samples(3), JUDGE)) == 3
    engine.close()
    with pytest.raises(EngineClosed):
        engine.submit(samples(1), JUDGE)
    assert caplog.text == ""
    assert "plaudit" not in [thread.name for thread in threading.enumerate()]


def test_an_engine_that_is_forgotten_ends_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    with loopback() as server, nothing_left_behind(server, caplog):
        assert Engine(server.url, model="m").score(samples(3), JUDGE)[0].is_valid
        gc.collect()
        until(lambda: not any(thread.name.startswith("plaudit") for thread in threading.enumerate()))


def test_a_batch_outlives_the_last_mention_of_its_engine() -> None:
    with loopback(INSTANT.replace(latency=taking(0.05))) as server:
        pending = Engine(server.url, model="m").submit(samples(3), JUDGE)
        gc.collect()
        assert {verdict.status for verdict in pending.result()} == {Status.OK}


def test_a_transport_that_cannot_be_made_is_told_at_once() -> None:
    def broken(endpoint: Endpoint) -> ScriptedTransport:
        raise RuntimeError(f"no way to {endpoint.url}")

    with (
        Engine("http://a/v1", model="m", cache=None, transport=broken) as engine,
        pytest.raises(RuntimeError, match="no way to http://a/v1"),
    ):
        engine.submit(samples(1), JUDGE)


# -- processes --------------------------------------------------------------------------------------------


def start(script: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "always::ResourceWarning", str(SCRIPTS / script), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process: subprocess.Popen[str], *, within: float = PATIENCE_S) -> tuple[str, str]:
    try:
        output, errors = process.communicate(timeout=within)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return output, errors


@pytest.mark.parametrize("client", ["httptools", "aiohttp", "pyreqwest"])
def test_a_process_may_leave_without_closing(client: str) -> None:
    with loopback(SOME_HANG) as server:
        process = start("leave.py", server.url, client)
        assert process.stdout is not None
        assert process.stdout.readline() == "leaving\n"
        assert end(process, within=PATIENCE_S) == ("", "")
        assert process.returncode == 0


def test_ctrl_c_interrupts_whoever_waits_and_the_engine_closes() -> None:
    with loopback(HANGING) as server:
        process = start("wait.py", server.url)
        assert process.stdout is not None
        for _ in range(4):
            assert process.stdout.readline() == "waiting\n"
            until(lambda: server.stats.in_flight >= 30)
            interrupted = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "closed ['MainThread']\n"
            assert time.monotonic() - interrupted < PATIENCE_S
            until(lambda: not server.stats.in_flight)
        assert end(process) == ("", "")
        assert process.returncode == 0


def test_a_second_process_finds_the_verdicts_of_the_first() -> None:
    with loopback() as server:
        with Engine(server.url, model="m", hedge=False) as engine:
            engine.score(samples(3), JUDGE)
        assert end(start("score_once.py", server.url)) == ("cache cache cache\n", "")
        assert server.stats.requests == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_starts_afresh_and_the_parent_is_unharmed() -> None:
    with loopback(INSTANT.replace(latency=taking(0.2))) as server:
        process = start("fork.py", server.url)
        assert end(process) == ("fine\n", "")
        assert process.returncode == 0
        assert server.stats.duplicates == 0


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_pool_have_engines_of_their_own(method: str) -> None:
    with loopback() as server:
        process = start("workers.py", server.url, method)
        assert end(process) == ("fine\n", "")
        assert process.returncode == 0


def test_a_log_handler_that_raises_ends_no_run() -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError(errno.ENOSPC, record.getMessage())

    logger, handler = logging.getLogger("plaudit"), Broken()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        with Engine(
            "http://scripted/v1",
            model="m",
            cache=None,
            observers=[Log()],
            transport=lambda _: ScriptedTransport([GOOD]),
        ) as engine:
            verdicts = engine.submit(samples(3), JUDGE).result()
        assert {verdict.status for verdict in verdicts} == {Status.OK}
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
