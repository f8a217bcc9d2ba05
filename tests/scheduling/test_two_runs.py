"""Two processes, one verdict file, one endpoint: what is paid is counted at the server."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from loopback import INSTANT, JUDGE, Loopback, loopback, samples, taking
from until import PATIENCE_S

from plaudit import Engine

SCRIPT = Path(__file__).parent.parent / "engine_scripts" / "shared_cache.py"
COUNT = 600
AT_ONCE = 16
SERVER = INSTANT.replace(latency=taking(0.05))


@contextmanager
def runs(server: Loopback, cache: Path, number: int) -> Iterator[list[subprocess.Popen[str]]]:
    command = [sys.executable, str(SCRIPT), server.url, str(cache), str(COUNT), str(AT_ONCE)]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(number)
    ]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def finish(process: subprocess.Popen[str]) -> None:
    """A run that is left alone scores everything, and says nothing else."""
    assert process.communicate(timeout=PATIENCE_S) == (f"{COUNT}\n", "")


def wait_until_asked(server: Loopback, count: int) -> None:
    tick = threading.Event()
    while server.stats.requests < count:
        tick.wait(0.005)


def stop(process: subprocess.Popen[str], cache: Path) -> None:
    """Stop a process, but not in the midst of a write: others would wait for that, leases or no leases."""
    connection = sqlite3.connect(cache, isolation_level=None, timeout=1.0)
    while True:
        os.kill(process.pid, signal.SIGSTOP)
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            os.kill(process.pid, signal.SIGCONT)
        else:
            connection.execute("ROLLBACK")
            connection.close()
            return


def test_the_same_job_in_two_processes_is_paid_for_once(tmp_path: Path) -> None:
    with loopback(SERVER) as server, runs(server, tmp_path / "c.sqlite", 2) as (one, two):
        finish(one)
        finish(two)
        assert COUNT <= server.stats.requests <= 1.1 * COUNT


def test_after_kill_9_the_other_process_does_the_rest(tmp_path: Path) -> None:
    with loopback(SERVER) as server, runs(server, tmp_path / "c.sqlite", 2) as (one, two):
        wait_until_asked(server, COUNT // 3)
        one.kill()
        one.wait()
        finish(two)
        # What was under way in the killed process, or read there and not yet stored, is asked again.
        assert COUNT <= server.stats.requests <= 1.1 * COUNT


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process can be stopped here")
def test_the_leases_of_a_stopped_process_expire_and_it_still_finishes_later(tmp_path: Path) -> None:
    with loopback(SERVER) as server, runs(server, tmp_path / "c.sqlite", 2) as (one, two):
        wait_until_asked(server, COUNT // 3)
        stop(one, tmp_path / "c.sqlite")
        finish(two)
        os.kill(one.pid, signal.SIGCONT)
        finish(one)
        assert COUNT <= server.stats.requests <= 1.1 * COUNT


def test_two_engines_of_one_process_share_a_file_as_two_processes_do(tmp_path: Path) -> None:
    with loopback(SERVER) as server:
        engines = [Engine(server.url, model="m", cache=tmp_path / "c.sqlite") for _ in range(2)]
        pendings = [engine.submit(samples(COUNT), JUDGE) for engine in engines]
        for pending in pendings:
            assert all(verdict.is_valid for verdict in pending.result())
        for engine in engines:
            engine.close()
        assert COUNT <= server.stats.requests <= 1.1 * COUNT


def test_an_engine_that_is_closed_leaves_its_questions_to_the_other(tmp_path: Path) -> None:
    with loopback(SERVER) as server:
        with Engine(server.url, model="m", cache=tmp_path / "c.sqlite", max_concurrent=1) as slow:
            slow.submit(samples(COUNT), JUDGE)
            wait_until_asked(server, 1)
            with Engine(server.url, model="m", cache=tmp_path / "c.sqlite") as engine:
                pending = engine.submit(samples(COUNT), JUDGE)
                slow.close()
                assert all(verdict.is_valid for verdict in pending.result())
        assert COUNT <= server.stats.requests <= 1.1 * COUNT
