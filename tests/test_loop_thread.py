"""The loop in its thread: work crosses in order and in groups, and it ends when told to."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import sys
import threading

import pytest
from until import PATIENCE_S
from unwoken import Stopped, signal_beside_a_wait

from plaudit._loop_thread import LoopThread, result_of
from plaudit.errors import EngineClosed


async def nothing() -> None:
    pass


def end(thread: LoopThread) -> None:
    assert thread.end(nothing, within=PATIENCE_S)


def test_actions_run_in_the_order_of_posting_on_the_loops_own_thread() -> None:
    thread = LoopThread()
    seen: list[tuple[int, bool]] = []
    for number in range(1000):
        thread.post(lambda number=number: seen.append((number, thread.is_current)))
    end(thread)
    assert seen == [(number, True) for number in range(1000)]
    assert not thread.is_current


def test_a_signal_that_interrupts_no_wait_ends_the_wait_for_a_coroutine() -> None:
    thread = LoopThread()
    with signal_beside_a_wait(), pytest.raises(Stopped):
        thread.run(asyncio.Event().wait)
    end(thread)


def test_a_result_that_takes_too_long_is_a_timeout() -> None:
    never: concurrent.futures.Future[None] = concurrent.futures.Future()
    with pytest.raises(TimeoutError):
        result_of(never, timeout=0.01)


def test_what_is_posted_while_the_loop_is_busy_costs_one_turn_of_it() -> None:
    thread = LoopThread()
    is_busy, go_on = threading.Event(), threading.Event()
    turns: list[int] = []
    turn = 0

    def block() -> None:
        is_busy.set()
        go_on.wait()
        asyncio.get_running_loop().call_soon(count)

    def count() -> None:
        nonlocal turn
        turn += 1
        asyncio.get_running_loop().call_soon(count)

    thread.post(block)
    is_busy.wait()
    for _ in range(100):
        thread.post(lambda: turns.append(turn))
    go_on.set()
    end(thread)
    assert len(turns) == 100
    assert len(set(turns)) == 1


def test_an_action_that_fails_costs_no_other_action(caplog: pytest.LogCaptureFixture) -> None:
    thread = LoopThread()
    seen: list[str] = []
    thread.post(lambda: seen.append("before"))
    thread.post(lambda: seen.remove("not there"))
    thread.post(lambda: seen.append("after"))
    end(thread)
    assert seen == ["before", "after"]
    assert "a bug on the engine's thread" in caplog.text


def test_nobody_exits_on_the_loops_thread(caplog: pytest.LogCaptureFixture) -> None:
    thread = LoopThread()
    is_still_there = threading.Event()
    thread.post(lambda: asyncio.get_running_loop().call_soon(sys.exit, 3))
    thread.post(lambda: asyncio.get_running_loop().call_later(0.01, is_still_there.set))
    assert is_still_there.wait(PATIENCE_S)
    end(thread)
    assert "sys.exit" in caplog.text


def test_the_last_coroutine_runs_once_and_what_was_posted_before_it_runs_first() -> None:
    thread = LoopThread()
    seen: list[str] = []

    async def last() -> None:
        seen.append("last")

    thread.post(lambda: seen.append("posted"))
    assert thread.end(last, within=PATIENCE_S)
    assert thread.end(last, within=PATIENCE_S)
    assert seen == ["posted", "last"]
    assert not thread.is_alive
    assert "plaudit" not in [other.name for other in threading.enumerate()]


def test_posting_to_a_loop_that_has_ended_raises() -> None:
    thread = LoopThread()
    end(thread)
    with pytest.raises(EngineClosed, match="closed; open a new one"):
        thread.post(lambda: None)


def test_a_thread_can_end_itself_and_waits_for_nobody() -> None:
    thread = LoopThread()
    ended: list[bool] = []
    thread.post(lambda: ended.append(thread.end(nothing, within=PATIENCE_S)))
    end(thread)
    assert ended == [True]
    assert not thread.is_alive


def test_an_end_that_takes_too_long_is_told() -> None:
    thread = LoopThread()
    go_on = threading.Event()
    thread.post(lambda: go_on.wait())
    assert not thread.end(nothing, within=0.01)
    go_on.set()
    end(thread)


def test_a_bug_in_the_last_coroutine_is_logged_and_the_thread_ends(caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> None:
        raise ZeroDivisionError

    thread = LoopThread()
    with caplog.at_level(logging.ERROR):
        assert thread.end(broken, within=PATIENCE_S)
    assert "a bug while the engine was closed" in caplog.text


def test_threads_of_the_loops_executor_end_with_it() -> None:
    thread = LoopThread()
    before = set(threading.enumerate())
    started = threading.Event()
    thread.post(lambda: asyncio.get_running_loop().run_in_executor(None, started.set))
    assert started.wait(PATIENCE_S)
    end(thread)
    assert set(threading.enumerate()) <= before
