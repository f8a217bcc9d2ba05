"""What can go wrong, and who acts on it.

PlauditError
├── ConfigError             the caller fixes it; raised before any call is made
├── TransientError          the scheduler retries it
│   ├── RateLimited             429, or 503 or 529: too many requests, or too much load
│   ├── SendAgain               an unknown parameter, a stale connection: costs no attempt
│   │   └── OutOfFiles              no file descriptor is left for a connection; nothing was sent
│   └── TransportFailed         timeout, reset, 5xx, a reply that is no reply
│       ├── TimedOut                nothing, or no whole reply, came in time
│       └── Unreachable             no connection: refused, unknown host, TLS failure
├── EndpointRefused         this endpoint will refuse every call until its settings change
│   ├── KeyRefused              401 or 403
│   └── ModelNotFound           404
├── RequestRefused          this one request will never pass (400, 413, 422: too long, malformed)
│   └── Unsendable              it has no JSON form; nothing was sent
├── JudgeError              this sample has no verdict; recorded, never retried for ever
│   ├── UnreadableVerdict       a reply came, but not a verdict
│   │   └── CutOff                  the reply ended at its token limit, before the verdict
│   ├── Declined                the judge declined
│   └── NoVerdict               a row without a verdict, for trainers that leave out what raises
├── BatchFailed             too many samples have no verdict to train on; the trainer stops
├── BudgetSpent             the spending limit leaves no room for this call
├── CacheError              a cache file that cannot be used
├── JournalError            a journal that cannot be read or written
└── EngineClosed            the engine was closed, or belongs to the parent of this forked process
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import ClassVar, Final, Self

from plaudit.types import Cause, Failure, RateHeaders, Usage


class _NoValue(enum.Enum):
    NO_VALUE = enum.auto()


NO_VALUE: Final = _NoValue.NO_VALUE
"""The setting's value is not part of the trouble: it is missing, say."""

Spell = Callable[[str, object], str]
"""How a front end writes a setting and its value: empty and NO_VALUE for an error about no setting."""


MAX_VALUE = 300
"""Characters of a value in a message."""


def as_argument(setting: str, value: object) -> str:
    """A setting as Python writes it: `rpm=0`; of a long value, its beginning."""
    if value is NO_VALUE:
        return setting
    text = repr(value)
    return f"{setting}={text if len(text) <= MAX_VALUE else f'{text[: MAX_VALUE // 2]}...'}"


class PlauditError(Exception):
    """Base of everything plaudit raises on purpose."""

    cause: ClassVar[Cause] = Cause.CODE
    """What a sample that has no score for this error is said to have failed by."""
    facts: Mapping[str, str | int | float] = MappingProxyType({})

    def with_facts(self, **facts: str | int | float | None) -> Self:
        """The same error with what is known of it, as `Failure.facts` has it; None: not known."""
        self.facts = {name: value for name, value in facts.items() if value is not None}
        return self

    @property
    def failure(self) -> Failure:
        """The error as data."""
        return Failure(self.cause, dict(self.facts))  # a plain dict, which can be pickled


class ConfigError(PlauditError, ValueError):
    """A setting or an input the caller has to fix; nothing was sent.

    The text of an error with a setting begins with that setting, as it is written where the user is: `rpm=0`
    in Python, `--rpm 0` on the command line, `PLAUDIT_RPM=0` in the environment. The message follows.

    Args:
        message: What is wrong and what to do instead; with a setting, without naming it again.
        setting: The setting's name in Python and in configurations, like `rpm`; empty: none is at fault.
        value: What it was set to, if it was.
        spelled: The setting and its value as the user wrote them, where that is known already.
    """

    cause = Cause.INPUT

    def __init__(
        self, message: str, *, setting: str = "", value: object = NO_VALUE, spelled: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.setting = setting
        self.value = value
        self.spelled = spelled

    def __str__(self) -> str:
        start = self.spelled or as_argument(self.setting, self.value)
        return f"{start} {self.message}" if start else self.message

    def named(self, spell: Spell) -> Self:
        """The same error with its setting as users of a front end write it, unless that is known already."""
        self.spelled = self.spelled or spell(self.setting, self.value)
        return self

    def at(self, place: str) -> Self:
        """The same error, found at a place: a line of a file, one of many samples."""
        self.spelled = f"{place}: {self.spelled or as_argument(self.setting, self.value)}".strip()
        return self

    def __reduce__(self) -> tuple[object, ...]:
        is_plain = isinstance(self.value, str | int | float | tuple | list | None | _NoValue)
        value = self.value if is_plain else NO_VALUE
        spelled = self.spelled if is_plain else self.spelled or as_argument(self.setting, self.value)
        return type(self), (self.message,), {**self.__dict__, "value": value, "spelled": spelled}


@contextlib.contextmanager
def spelling(spell: Spell) -> Iterator[None]:
    """Let each ConfigError raised inside name its setting as users of this front end write it."""
    try:
        yield
    except ConfigError as error:
        error.named(spell)
        raise


class TransientError(PlauditError):
    """A failure that may pass: the scheduler decides whether and when to try again."""

    cause = Cause.SERVER_ERROR


class RateLimited(TransientError):
    """The endpoint answered 429, or 503 or 529: too much load, or too many requests.

    `retry_after` is what the endpoint asked for, in seconds, or None when it said nothing; `rate` what its
    headers said of the allowance.
    """

    cause = Cause.RATE_LIMITED

    def __init__(
        self, message: str, *, retry_after: float | None = None, rate: RateHeaders | None = None
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.rate = rate


class SendAgain(TransientError):
    """Nothing is wrong with the request or the endpoint: send it once more, counted like every other request.

    `is_answered`: the endpoint read it and answered (an unknown parameter), so that nothing was billed;
    otherwise it met a connection that the server had closed meanwhile, and it is unknown.
    """

    def __init__(self, message: str, *, is_answered: bool) -> None:
        super().__init__(message)
        self.is_answered = is_answered


class OutOfFiles(SendAgain):
    """This process may open no more files or sockets for the moment. Nothing was sent."""

    cause = Cause.OUT_OF_FILES

    def __init__(self, message: str) -> None:
        super().__init__(message, is_answered=False)


class TransportFailed(TransientError):
    """The call broke: timeout, reset, 5xx, or a body that is not a reply.

    `retry_after` as in RateLimited: some gateways send it with a 5xx.
    """

    is_dropped = False
    """Whether the connection was closed before the first byte of an answer."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TimedOut(TransportFailed):
    """No reply in time. The request may be read, and billed, at any later moment."""

    cause = Cause.TIMED_OUT


class Unreachable(TransportFailed):
    """No connection came about, so nothing was sent and nothing was paid."""

    cause = Cause.UNREACHABLE


class EndpointRefused(PlauditError):
    """The endpoint will refuse every call alike; one message serves the whole batch."""

    cause = Cause.ENDPOINT_REFUSED


class KeyRefused(EndpointRefused):
    """401 or 403: the key is missing or wrong."""

    cause = Cause.REFUSED_KEY


class ModelNotFound(EndpointRefused):
    """404: the endpoint has no such model, or the URL no such route."""

    cause = Cause.UNKNOWN_MODEL


class RequestRefused(PlauditError):
    """This request is refused for what it contains; its neighbours may well pass."""

    cause = Cause.REQUEST_REFUSED


class Unsendable(RequestRefused):
    """The request cannot be written as JSON, so it was never sent."""

    cause = Cause.INPUT


class JudgeError(PlauditError):
    """The judge's reply gives no verdict for this sample."""

    cause = Cause.UNREADABLE


class UnreadableVerdict(JudgeError):
    """A reply came, but it holds no single legal verdict."""


class CutOff(UnreadableVerdict):
    """The reply ends at its token limit, before the verdict."""

    cause = Cause.CUT_OFF


def cut_off(usage: Usage, *, max_tokens: int) -> CutOff:
    """The error for a reply that ended at its token limit although it had more room than at first."""
    tokens, thought = usage.completion_tokens or max_tokens, usage.reasoning_tokens
    reasoning = f", {thought:,} of them reasoning" if thought else ""
    return CutOff(
        f"the reply was cut off after {tokens:,} tokens{reasoning}; raise max_tokens above {max_tokens:,}, "
        "or lower reasoning_effort"
    ).with_facts(tokens=tokens, reasoning_tokens=thought, max_tokens=max_tokens)


class Declined(JudgeError):
    """The judge declined to judge."""

    cause = Cause.DECLINED


class NoVerdict(JudgeError):
    """A row without a verdict, raised for a trainer that leaves out what raises."""


class BatchFailed(PlauditError):
    """Too large a share of a batch has no verdict. What was scored is stored: scoring again is cheap."""


class BudgetSpent(PlauditError):
    """The spending limit leaves no room for this call."""

    cause = Cause.BUDGET


class CacheError(PlauditError):
    """A cache file that cannot be read or written; the message says what was done about it."""


class JournalError(PlauditError):
    """A journal that cannot be read or written."""


class EngineClosed(PlauditError):
    """The engine is closed, or was started by the parent of this forked process."""

    cause = Cause.CLOSED
