"""One unique request on its way to a reply: what was tried for it, and what each attempt came to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from plaudit.errors import (
    ConfigError,
    EndpointRefused,
    OutOfFiles,
    PlauditError,
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
from plaudit.policy.budget import token_bound
from plaudit.types import ChatRequest, Reply, Request

MORE_ROOM = 4
"""How many times as many tokens a reply may have once one was cut off."""
Outcome = Reply | PlauditError
_GATEWAY_TIMEOUTS = (408, 504, 524)
"""Statuses with which gateways give up a call that takes too long."""


class Call:
    """A request with its history. `on_done` is called exactly once, with the reply or the error."""

    __slots__ = (
        "_bound",
        "answered_on",
        "attempts",
        "failed_on",
        "finished",
        "first_sent",
        "has_hung",
        "has_more_room",
        "is_wanted",
        "job",
        "key",
        "last_sent",
        "latency",
        "on_done",
        "rejections",
        "request",
        "resends",
        "room",
        "sends",
        "streamed_by",
        "twin_at",
        "twins",
    )

    def __init__(
        self,
        request: Request,
        *,
        key: bytes,
        on_done: Callable[[Call, Outcome], None],
        is_wanted: Callable[[Call], bool] | None = None,
        job: str = "",
    ) -> None:
        self.request = request
        self.key = key
        self.on_done = on_done
        self.is_wanted = is_wanted
        self.job = job
        """Who it is for: calls of different jobs take turns."""
        self.attempts = 0
        """Tries that were not merely rate limited."""
        self.sends = 0
        """Everything sent for it: attempts, rejections, hedges."""
        self.rejections = 0
        self.twins = 0
        """Sent beside it because it took too long."""
        self.twin_at: float | None = None
        """When another may leave, if it hangs, since the last one came back without a reply."""
        self.resends = 0
        """How often in a row it had to be sent again through no fault of its own."""
        self.finished = False
        self.streamed_by: int | None = None
        """The flight whose reply is being handed on as it comes: nothing may follow a part of it."""
        self.failed_on: str | None = None
        """The endpoint that it is kept away from, where there is another."""
        self.has_hung = False
        """Whether its last try ran out of time."""
        self.answered_on: str | None = None
        """The endpoint that the reply came from."""
        self.first_sent: float | None = None
        self.last_sent = 0.0
        self.latency = 0.0
        self.has_more_room = False
        """Whether its reply was given more tokens than its judge asked for, be it for a while."""
        self.room = 1
        """How many times as many it may have now."""
        self._bound: tuple[int, int] | None = None

    @property
    def is_hedged(self) -> bool:
        return self.twins > 0

    @property
    def can_grow(self) -> bool:
        """Whether more tokens help where its reply is cut off: not where one word is wanted."""
        request = self.request
        return isinstance(request, ChatRequest) and not (request.is_fixed or request.top_logprobs)

    def grow(self, times: int = MORE_ROOM) -> bool:
        """Give the reply more room, once; the answer is whether that changed anything."""
        if self.has_more_room or not self.can_grow or times == 1:
            return False
        self.has_more_room = True
        self._resize(times)
        return True

    def shrink(self) -> bool:
        """Take back half of the room that it was given; the answer is whether there was any."""
        if self.room == 1:
            return False
        self._resize(self.room // 2)
        return True

    def _resize(self, times: int) -> None:
        assert isinstance(self.request, ChatRequest)
        self.request = replace(self.request, max_tokens=self.request.max_tokens * times // self.room)
        self.room = times
        self._bound = None

    @property
    def token_bound(self) -> tuple[int, int]:
        """Upper bounds for its prompt and completion tokens, computed when first needed."""
        if self._bound is None:
            self._bound = token_bound(self.request)
        return self._bound


# -- what an attempt came to ------------------------------------------------------------------------------

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
        case SendAgain():
            return "sent_again"
        case TransientError():
            return "failed"
        case _:
            return "refused"


def ran_out_of_time(error: PlauditError) -> bool:
    """Whether a call broke because a time limit was reached, ours or a gateway's."""
    return isinstance(error, TimedOut) or error.facts.get("http_status") in _GATEWAY_TIMEOUTS


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
