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

    def __init_subclass__(cls, *, cause: Cause | None = None) -> None:
        cls.cause = cause or cls.cause

    def with_facts(self, **facts: str | int | float | None) -> Self:
        """The same error with what is known of it, as `Failure.facts` has it; None: not known."""
        self.facts = {name: value for name, value in facts.items() if value is not None}
        return self

    @property
    def failure(self) -> Failure:
        """The error as data."""
        return Failure(self.cause, dict(self.facts))  # a plain dict, which can be pickled


class ConfigError(PlauditError, ValueError, cause=Cause.INPUT):
    """A setting or an input the caller has to fix; nothing was sent.

    The text of an error with a setting begins with that setting, as it is written where the user is: `rpm=0`
    in Python, `--rpm 0` on the command line, `PLAUDIT_RPM=0` in the environment. The message follows.

    Args:
        message: What is wrong and what to do instead; with a setting, without naming it again.
        setting: The setting's name in Python and in configurations, like `rpm`; empty: none is at fault.
        value: What it was set to, if it was.
        spelled: The setting and its value as the user wrote them, where that is known already.
    """

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


class TransientError(PlauditError, cause=Cause.SERVER_ERROR):
    """A failure that may pass: the scheduler decides whether and when to try again.

    `retry_after` is what the endpoint asked for, in seconds, or None when it said nothing.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RateLimited(TransientError, cause=Cause.RATE_LIMITED):
    """The endpoint answered 429, or 503 or 529: too much load, or too many requests.

    `rate` is what its headers said of the allowance; `is_quota`, that it was a 429: a request that is refused
    may count like one that is let in.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        rate: RateHeaders | None = None,
        is_quota: bool = True,
    ) -> None:
        super().__init__(message, retry_after=retry_after)
        self.rate = rate
        self.is_quota = is_quota


class SendAgain(TransientError):
    """Nothing is wrong with the request or the endpoint: send it once more, counted like every other request.

    `is_answered`: the endpoint read it and answered (an unknown parameter), so that nothing was billed;
    otherwise it met a connection that the server had closed meanwhile, and it is unknown.
    """

    def __init__(self, message: str, *, is_answered: bool = False) -> None:
        super().__init__(message)
        self.is_answered = is_answered


class OutOfFiles(SendAgain, cause=Cause.OUT_OF_FILES):
    """This process may open no more files or sockets for the moment. Nothing was sent."""


class TransportFailed(TransientError):
    """The call broke: timeout, reset, 5xx, or a body that is not a reply."""

    is_dropped = False
    """Whether the connection was closed before the first byte of an answer."""


class TimedOut(TransportFailed, cause=Cause.TIMED_OUT):
    """No reply in time. The request may be read, and billed, at any later moment."""


class Unreachable(TransportFailed, cause=Cause.UNREACHABLE):
    """No connection came about, so nothing was sent and nothing was paid."""


class EndpointRefused(PlauditError, cause=Cause.ENDPOINT_REFUSED):
    """The endpoint will refuse every call alike; one message serves the whole batch."""


class KeyRefused(EndpointRefused, cause=Cause.REFUSED_KEY):
    """401 or 403: the key is missing or wrong."""


class ModelNotFound(EndpointRefused, cause=Cause.UNKNOWN_MODEL):
    """404: the endpoint has no such model, or the URL no such route."""


class RequestRefused(PlauditError, cause=Cause.REQUEST_REFUSED):
    """This request is refused for what it contains; its neighbours may well pass."""


class Unsendable(RequestRefused, cause=Cause.INPUT):
    """The request cannot be written as JSON, so it was never sent."""


class JudgeError(PlauditError, cause=Cause.UNREADABLE):
    """The judge's reply gives no verdict for this sample."""


class UnreadableVerdict(JudgeError):
    """A reply came, but it holds no single legal verdict."""


class CutOff(UnreadableVerdict, cause=Cause.CUT_OFF):
    """The reply ends at its token limit, before the verdict."""


def cut_off(usage: Usage, *, max_tokens: int) -> CutOff:
    """The error for a reply that ended at its token limit although it had more room than at first."""
    tokens, thought = usage.completion_tokens or max_tokens, usage.reasoning_tokens
    reasoning = f", {thought:,} of them reasoning" if thought else ""
    return CutOff(
        f"the reply was cut off after {tokens:,} tokens{reasoning}; raise max_tokens above {max_tokens:,}, "
        "or lower reasoning_effort"
    ).with_facts(tokens=tokens, reasoning_tokens=thought, max_tokens=max_tokens)


class Declined(JudgeError, cause=Cause.DECLINED):
    """The judge declined to judge."""


class NoVerdict(JudgeError):
    """A row without a verdict, raised for a trainer that leaves out what raises."""


class BatchFailed(PlauditError):
    """Too large a share of a batch has no verdict. What was scored is stored: scoring again is cheap."""


class BudgetSpent(PlauditError, cause=Cause.BUDGET):
    """The spending limit leaves no room for this call."""


class CacheError(PlauditError):
    """A cache file that cannot be read or written; the message says what was done about it."""


class JournalError(PlauditError):
    """A journal that cannot be read or written."""


class EngineClosed(PlauditError, cause=Cause.CLOSED):
    """The engine is closed, or was started by the parent of this forked process."""
