"""Chains started in any order and handed back as they finish, on a thread or on a loop of the caller's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest
from simulated_mutation import LoopRunner
from until import PATIENCE_S
from unwoken import Stopped, signal_beside_a_wait

from plaudit.errors import EngineClosed
from plaudit.mutation.async_env import ChainRunner, ThreadRunner
from plaudit.testing import VirtualLoop


@contextmanager
def on_a_thread() -> Iterator[ChainRunner]:
    runner = ThreadRunner()
    with closing(runner):
        yield runner


@contextmanager
def on_a_loop() -> Iterator[ChainRunner]:
    with closing(VirtualLoop()) as loop:
        runner = LoopRunner(loop)
        with closing(runner):
            yield runner


MAKERS = pytest.mark.parametrize("make", [on_a_thread, on_a_loop])


async def after(seconds: float, result: str) -> str:
    await asyncio.sleep(seconds)
    return result


def result_of(runner: ChainRunner) -> tuple[int, object]:
    number, outcome = runner.finished()
    return number, outcome.result()


async def broken() -> None:
    raise ValueError("a bug")


@MAKERS
def test_whoever_finishes_first_is_handed_back_first(make: Callable[[], Iterator[ChainRunner]]) -> None:
    with make() as runner:  # type: ignore[attr-defined]
        runner.start(0, after(0.03, "slow"))
        runner.start(1, after(0.0, "fast"))
        assert result_of(runner) == (1, "fast")
        assert result_of(runner) == (0, "slow")


def test_a_signal_that_interrupts_no_wait_ends_the_wait_for_a_chain() -> None:
    with on_a_thread() as runner:
        runner.start(0, after(60.0, "late"))
        with signal_beside_a_wait(), pytest.raises(Stopped):
            runner.finished()


@MAKERS
def test_a_bug_in_a_chain_reaches_whoever_waits(make: Callable[[], Iterator[ChainRunner]]) -> None:
    with make() as runner:  # type: ignore[attr-defined]
        runner.start(0, broken())
        with pytest.raises(ValueError, match="a bug"):
            result_of(runner)
        runner.start(0, after(0.0, "goes on"))
        assert result_of(runner) == (0, "goes on")


@MAKERS
def test_closing_calls_off_what_is_under_way(make: Callable[[], Iterator[ChainRunner]]) -> None:
    ended: list[str] = []

    async def long() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("called off")

    async def short() -> None:
        await asyncio.sleep(0)

    with make() as runner:  # type: ignore[attr-defined]
        runner.start(0, long())
        runner.start(1, short())
        assert runner.finished()[0] == 1
        runner.close()
        runner.close()
    assert ended == ["called off"]


def test_what_a_chain_has_begun_ahead_ends_with_it() -> None:
    ended: list[str] = []
    begun: list[asyncio.Task[None]] = []

    async def ahead() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("called off")

    async def chain() -> None:
        begun.append(asyncio.ensure_future(ahead()))
        await asyncio.sleep(0)

    with on_a_thread() as runner:
        runner.start(0, chain())
        runner.finished()
    assert ended == ["called off"] and begun[0].cancelled()


def test_on_a_thread_chains_go_on_while_the_caller_computes() -> None:
    went_on = threading.Event()

    async def chain() -> None:
        went_on.set()

    with on_a_thread() as runner:
        runner.start(0, chain())
        assert went_on.wait(PATIENCE_S)  # and nobody has asked for its result


def test_on_a_loop_to_wait_for_nothing_is_an_error_and_no_hang() -> None:
    with on_a_loop() as runner, pytest.raises(EngineClosed, match="start one first"):
        runner.finished()
