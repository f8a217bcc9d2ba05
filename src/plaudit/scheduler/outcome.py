"""What a call came to, in the words of events, and what is known of the tokens it used."""

from __future__ import annotations

from plaudit.errors import EndpointRefused, RateLimited, RequestRefused, TransientError, Unreachable
from plaudit.scheduler.call import Outcome
from plaudit.types import Reply, Usage


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


def known_usage(outcome: Outcome | None) -> Usage | None:
    """The tokens that a call used; None where nobody can tell: cut off, timed out, or no count given."""
    match outcome:
        case Reply(usage=usage):
            return usage if usage.prompt_tokens or usage.completion_tokens or usage.cost else None
        case RateLimited() | Unreachable() | EndpointRefused() | RequestRefused():
            return Usage()
        case _:
            return None
