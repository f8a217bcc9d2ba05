"""What to say of calls that failed: the cause and the remedy, once per cause."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable

from plaudit.types import Status, Verdict

log = logging.getLogger("plaudit")

CAUSES_KEPT = 1000
OVERLOADED = (
    "give it more slots (OLLAMA_NUM_PARALLEL for Ollama), add a server, use fewer environments, "
    "or raise the deadline"
)


def explain(verdict: Verdict, deadline: float | None) -> str | None:
    """Why there is no reply in this verdict, and what to do; None where there is one."""
    if verdict.status is Status.OK:
        return None
    if verdict.status is Status.DEADLINE:
        within = f"within {deadline:g} s" if deadline is not None else "in time"
        return f"no reply {within}: the server is too slow, or says too many requests; {OVERLOADED}"
    error = verdict.error or f"the call came to nothing ({verdict.status})"
    return f"{error}; {OVERLOADED}" if _TURNED_AWAY in error else error


def report(what: str, errors: Iterable[str | None], instead: str) -> None:
    """Log failures, each cause once: a training of a million steps must not fill the disk."""
    for error, count in Counter(error for error in errors if error).items():
        cause = (what, _NUMBER.sub("#", error))
        if cause in _reported:
            continue
        if len(_reported) >= CAUSES_KEPT:
            _reported.clear()  # bounded: better a line too many than memory without end
        _reported.add(cause)
        times = f" ({count} times)" if count > 1 else ""
        log.warning("%s failed%s, and %s: %s", what, times, instead, error)


def forget_reports() -> None:
    """Report every cause anew, as for a new run in the same process."""
    _reported.clear()


_TURNED_AWAY = "it asks us to slow down"
"""How transports word a 429 or 503 that outlasted the engine's patience."""
_NUMBER = re.compile(r"\d[\d.,]*")
_reported: set[tuple[str, str]] = set()
