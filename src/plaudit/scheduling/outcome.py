"""What a call came to: in the words of events, in what it cost, and in when the server read it."""

from __future__ import annotations

from plaudit.errors import (
    ConfigError,
    EndpointRefused,
    OutOfFiles,
    RateLimited,
    RequestRefused,
    SendAgain,
    TimedOut,
    TransientError,
    TransportFailed,
    Unreachable,
    Unsendable,
)
from plaudit.policy.arrival import Heard
from plaudit.scheduling.call import Outcome
from plaudit.types import Reply

MAX_RESENDS = 6
"""Free sends in a row: four parameters that may be unknown, and a stale connection or two."""
MAX_WITHOUT_FILES = 60
"""The same where this process is out of file descriptors, with a pause before each."""
FILES_WAIT = 1.0
"""Seconds of that pause."""


def resend_wait(error: SendAgain, *, resends: int) -> float | None:
    """Seconds before a call goes to the front of the queue again; None: from now on it is a failure."""
    if isinstance(error, OutOfFiles):
        return FILES_WAIT if resends <= MAX_WITHOUT_FILES else None
    return 0.0 if resends <= MAX_RESENDS else None


def kind_of(outcome: Outcome | None) -> str:
    """As CallFinished has it. None: the call was cancelled."""
    match outcome:
        case None:
            return "cancelled"
        case Reply():
            return "ok"
        case RateLimited():
            return "rate_limited"
        case TransientError():
            return "failed"
        case _:
            return "refused"


def is_free(outcome: Outcome | None) -> bool:
    """Whether it is certain that no token was used: it was rate limited or refused, or never sent."""
    match outcome:
        case RateLimited() | Unreachable() | EndpointRefused() | RequestRefused() | ConfigError():
            return True
        case OutOfFiles() | SendAgain(is_answered=True):
            return True
        case _:
            return False


def heard_of(outcome: Outcome | None) -> Heard:
    """What came back from the server, which tells when it had read its requests."""
    match outcome:
        case Reply():
            return Heard.REPLY
        case Unsendable() | OutOfFiles() | ConfigError():
            return Heard.NOT_SENT
        case TransportFailed(is_dropped=True) | Unreachable() | SendAgain(is_answered=False):
            return Heard.DROPPED
        case None | TimedOut():
            return Heard.NOTHING
        case RateLimited() | SendAgain() | EndpointRefused() | RequestRefused() | TransportFailed():
            return Heard.ANSWER
        case _:
            return Heard.NOTHING
