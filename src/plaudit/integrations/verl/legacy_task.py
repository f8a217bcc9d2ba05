"""One piece of work on a thread of its own, or, for debugging, done here and now."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


class Task(Generic[T]):
    """Work that has begun. Whoever asks for its result hears of its exceptions too."""

    def __init__(self, work: Callable[[], T], *, use_async_io: bool = True) -> None:
        self._work = work
        self._future: Future[T] = Future()
        self._thread: threading.Thread | None = None
        if use_async_io:
            self._thread = threading.Thread(target=self._run, name="plaudit-rewards", daemon=True)
            self._thread.start()
        else:
            self._future.set_result(work())

    def result(self, timeout: float | None = None) -> T | None:
        """What came of it; None where that takes longer than `timeout` seconds."""
        if self._thread is not None and not self._thread.is_alive() and not self._future.done():
            return self._work()  # a forked child has the task, and not the thread
        try:
            return self._future.result(timeout)
        except TimeoutError:
            if self._future.done():  # it is the work's own
                raise
            return None

    def settle(self) -> None:
        """Wait until it has ended, whatever came of it."""
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            self._future.set_result(self._work())
        except BaseException as error:  # noqa: BLE001 - raised where somebody asks for the result
            self._future.set_exception(error)
