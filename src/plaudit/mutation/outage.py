"""Whether the servers of a training are gone: its calls fail, and none succeeds.

A step that needs a server which is gone takes minutes to fail, because the engine waits for the server; and
steps that the cache answers succeed meanwhile. So an outage is looked for in the engines' calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from plaudit.events import CallFinished, EndpointLost, Event, Observer
from plaudit.value_check import check_number

FAILED_IN_A_ROW = 8
"""Calls of one engine that fail with no success between them, from which on its servers count as gone.

A request that is refused says nothing: once the cache answers most of them, only refused ones may be left. An
endpoint that will refuse every request (`EndpointLost`) is gone at once.
"""


class OutageWatch:
    """Watches the engines of a training: `Engine(url, observers=[watch.observer()])` for each of them."""

    def __init__(self, patience: float = 300.0, *, pause: Callable[[float], None] = time.sleep) -> None:
        """`patience`: seconds that an outage may last; `pause` waits so many between two rollouts in it."""
        check_number("patience", patience, low=0)
        self.patience = patience
        self.pause = pause
        self._engines: list[_EngineCalls] = []
        self._on_outage: Callable[[str], None] | None = None

    def observer(self) -> Observer:
        """An observer for one engine; each engine needs its own."""
        calls = _EngineCalls(self._on_failure)
        self._engines.append(calls)
        return calls

    @property
    def error(self) -> str:
        """Why calls fail at present; empty while no engine's servers are gone."""
        return next((calls.error for calls in self._engines if calls.failed >= FAILED_IN_A_ROW), "")

    @property
    def is_suspected(self) -> bool:
        """Whether the last call of an engine failed: an outage may just have begun."""
        return any(calls.failed for calls in self._engines)

    def begin(self, on_outage: Callable[[str], None]) -> None:
        """Call `on_outage` with the cause, on an engine's thread, once an outage has lasted too long."""
        self._on_outage = on_outage

    def end(self) -> None:
        """Call it no more."""
        self._on_outage = None

    def _on_failure(self, calls: _EngineCalls, seconds: float) -> None:
        on_outage = self._on_outage
        if on_outage is not None and seconds >= self.patience and calls.failed >= FAILED_IN_A_ROW:
            self.end()
            on_outage(calls.error)


class _EngineCalls:
    """The calls of one engine: how many have failed since the last that was answered."""

    def __init__(self, on_failure: Callable[[_EngineCalls, float], None]) -> None:
        self.failed = 0
        self.error = ""
        self._since = 0.0
        self._on_failure = on_failure

    def __call__(self, event: Event) -> None:
        match event:
            case EndpointLost():
                self._fail(event.at, FAILED_IN_A_ROW, event.error)
            case CallFinished(outcome="failed"):
                self._fail(event.at, 1, event.error or event.outcome)
            case CallFinished(outcome="ok" | "rate_limited"):
                self.failed = 0

    def _fail(self, at: float, count: int, error: str) -> None:
        if not self.failed:
            self._since = at
        self.failed += count
        self.error = error
        self._on_failure(self, at - self._since)
