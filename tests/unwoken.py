"""A signal that wakes no thread that waits, like one that comes just before the wait begins."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Stopped(Exception):
    """What the handler of the signal raises, as Ctrl-C raises KeyboardInterrupt."""


@contextmanager
def signal_beside_a_wait() -> Iterator[None]:
    """Once the main thread waits in plaudit's code, another thread receives a signal.

    It interrupts that other thread, not the wait of the main thread, and Python runs handlers
    on the main thread alone.
    """
    is_over = threading.Event()

    def stop(*_: object) -> None:
        raise Stopped

    def send() -> None:
        before, unchanged = None, 0
        while unchanged < 20 and not is_over.wait(0.005):
            here = _place_of_the_main_thread()
            unchanged = unchanged + 1 if here is not None and here == before else 0
            before = here
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)

    old = signal.signal(signal.SIGUSR1, stop)
    helper = threading.Thread(target=send)
    helper.start()
    try:
        yield
    finally:
        is_over.set()
        helper.join()
        signal.signal(signal.SIGUSR1, old)


def _place_of_the_main_thread() -> tuple[int, int] | None:
    """Where in its code it is; None outside of plaudit."""
    top = frame = sys._current_frames()[threading.main_thread().ident or 0]
    while frame is not None:
        if "/plaudit/" in frame.f_code.co_filename:
            return id(top), top.f_lasti
        frame = frame.f_back  # type: ignore[assignment]
    return None
