"""A task: on a thread or at once, with its result, its exception or its delay heard by whoever asks."""

from __future__ import annotations

import os
import threading

import pytest
from until import PATIENCE_S

from plaudit.integrations.verl.legacy.handover import Task


def test_work_goes_on_while_nobody_waits() -> None:
    go = threading.Event()
    task = Task(lambda: go.wait(PATIENCE_S) and 42)
    go.set()
    assert task.result() == 42
    assert task.result() == 42


def test_for_debugging_it_is_done_before_anybody_asks_and_raises_at_once() -> None:
    seen: list[str] = []
    task = Task(lambda: seen.append(threading.current_thread().name), use_async_io=False)
    assert seen == [threading.current_thread().name]
    task.settle()
    with pytest.raises(ZeroDivisionError):
        Task(lambda: 1 / 0, use_async_io=False)


def test_an_exception_is_raised_where_the_result_is_asked_for() -> None:
    task = Task(lambda: 1 / 0)
    task.settle()
    with pytest.raises(ZeroDivisionError):
        task.result()


def test_what_takes_too_long_is_told_from_a_timeout_of_its_own() -> None:
    go = threading.Event()
    late = Task(lambda: go.wait(PATIENCE_S))
    assert late.result(timeout=0.01) is None
    go.set()
    assert late.result() is True

    def impatient() -> None:
        raise TimeoutError("no answer from the table")

    with pytest.raises(TimeoutError, match="no answer from the table"):
        Task(impatient).result(timeout=PATIENCE_S)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_does_the_work_that_its_parents_thread_was_at() -> None:
    parent, go = os.getpid(), threading.Event()

    def work() -> int:
        if os.getpid() == parent:
            go.wait(PATIENCE_S)
        return os.getpid()

    task = Task(work)
    child = os.fork()
    if child == 0:
        os._exit(0 if task.result() == os.getpid() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    go.set()
    assert task.result() == parent
