"""A process's side of the shared engine, for any of its threads: the courier's thread, and its end."""

from __future__ import annotations

import atexit
import ctypes
import functools
import logging
import os
import weakref
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from typing import Any

from plaudit.blocking import LoopThread
from plaudit.errors import EngineClosed
from plaudit.integrations.ray.courier import Courier, Wire
from plaudit.integrations.ray.errand import Asked, Joined
from plaudit.scheduling.batch import Batch
from plaudit.types import Status

log = logging.getLogger("plaudit")

CLOSE_WITHIN = 15.0


class Client:
    """The callers' end. Ended by `close`, or once neither a SharedEngine nor a batch refers to it."""

    def __init__(self, wire: Wire) -> None:
        self._courier = Courier(wire)
        self._thread = LoopThread("plaudit-ray")
        weakref.finalize(self, self._thread.end, self._courier.close, within=0.0).atexit = False
        _clients.add(self)

    @property
    def is_alive(self) -> bool:
        """Whether it runs, and in this process."""
        return self._thread.is_alive

    @property
    def is_current(self) -> bool:
        """Whether the caller is on the client's own thread."""
        return self._thread.is_current

    def connect(self) -> None:
        """Find or start the engine now, and raise what is wrong."""
        self._wait_for(self._courier.connect)

    def call(self, action: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Do something else over the wire, and wait for what it gives."""
        return self._wait_for(functools.partial(self._courier.call, action))

    def start(self, batch: Batch, asks: Iterable[Asked]) -> None:
        self._thread.post(functools.partial(self._courier.start, batch, list(asks)))

    def join(self, joined: Joined) -> None:
        self._thread.post(functools.partial(self._courier.join, joined))

    def expire(self, batch: Batch) -> None:
        self._thread.post(functools.partial(self._courier.end, batch, Status.DEADLINE, "deadline"))

    def cancel(self, batch: Batch) -> None:
        self._thread.post(functools.partial(self._courier.end, batch, Status.FAILED, "cancelled"))

    def close(self) -> None:
        """Fail what has no outcome, leave the engine, end the thread. Safe to call twice."""
        if not self._thread.end(self._courier.close, within=CLOSE_WITHIN):
            log.warning("the way to the shared engine did not close within %g s", CLOSE_WITHIN)

    def _wait_for(self, action: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        if self.is_current:
            raise EngineClosed("waiting on the client's own thread would be for ever; wait on another one")
        done: Future[Any] = Future()
        self._thread.post(functools.partial(self._courier.run, action, done))
        return done.result()


_clients: weakref.WeakSet[Client] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for client in list(_clients):
        client.close()


def _keep_for_ever() -> None:
    """Never free the parent's clients in a forked child: the two share what the event loop watches."""
    for client in list(_clients):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(client))
    _clients.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep_for_ever)
