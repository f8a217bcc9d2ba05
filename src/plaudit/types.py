"""The nouns of plaudit: Sample, Request, Reply, Verdict."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NotRequired, TypedDict

from plaudit.turns import field_of, turns_of


class Message(TypedDict):
    """One turn of a conversation, as chat endpoints take it."""

    role: str
    content: str
    tool_calls: NotRequired[Sequence[Mapping[str, Any]]]
    """What the assistant calls, as `{"id": ..., "function": {"name": ..., "arguments": ...}}`."""
    tool_call_id: NotRequired[str]
    """Of a tool's result: the call that it answers."""
    name: NotRequired[str]
    images: NotRequired[Sequence[str]]
    """Pictures of this turn, each as a `data:image/...` or `https://...` URL."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One response to be judged, with its prompt and other information for the judge."""

    prompt: str | Sequence[Message]
    response: str | Sequence[Message]
    """Text, or the turns of a trajectory: the assistant's, with its tool calls, and the tools' results."""
    reference: str | None = None
    group: str | None = None
    """Samples of one group answer the same prompt (a GRPO group, verl's `uid`)."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    tools: Sequence[Mapping[str, Any]] = field(default=(), kw_only=True)
    """The tools that the assistant had, as chat endpoints take them."""

    @property
    def text(self) -> str:
        """The response as one text; of a trajectory, its turns with their roles."""
        if isinstance(self.response, str):
            return self.response
        return "\n\n".join(_turn_text(turn) for whole in self.response for turn in turns_of(whole))


def _turn_text(turn: Any) -> str:
    calls, content = field_of(turn, "tool_calls"), field_of(turn, "content") or ""
    made = f"\n[tool calls] {json.dumps(calls, ensure_ascii=False, default=str)}" if calls else ""
    if isinstance(content, list | tuple):
        content = "".join(part if isinstance(part, str) else field_of(part, "text") or "" for part in content)
    return f"[{field_of(turn, 'role')}]\n{content}{made}"


ROOM = 2048
"""Tokens that a reply may have by default: a verdict takes a hundred, the reasoning before it the rest."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What a judge asks: a conversation to be continued. The default kind of request."""

    messages: tuple[Message, ...]
    max_tokens: int = ROOM
    """Tokens that the reply may have, its reasoning included."""
    temperature: float = 0.0
    schema: Mapping[str, Any] | None = None
    """JSON schema the reply should follow, where the endpoint can enforce one."""
    top_logprobs: int = 0
    """How many alternatives per token the reply should carry; 0 for none (20 at most on OpenAI)."""
    top_p: float | None = None
    seed: int | None = None
    reasoning_effort: str | None = None
    """`low`, `medium`, `high`, or what else the model takes."""
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """More fields of the request's body, like `chat_template_kwargs`."""
    images: tuple[str, ...] = ()
    """Pictures (and PDF files) that go with the last message, as `data:...` or `https://...` URLs."""
    is_fixed: bool = False
    """Whether it is sent as it is: without the engine's own options, and never with more tokens."""


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """A plain text to be continued, without a chat template."""

    prompt: str
    max_tokens: int = 512
    temperature: float = 0.0


@dataclass(frozen=True, slots=True)
class LikelihoodRequest:
    """The log-probability of a text after a prompt is asked for; the reply's `tokens` are the text's."""

    prompt: str
    text: str


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """Texts to be embedded in one call."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RawRequest:
    """A request as a client of the OpenAI API wrote it: sent on byte for byte, answered by `Reply.body`."""

    route: str
    """Below the endpoint's URL, like `/chat/completions`."""
    body: bytes
    identity: bytes
    """Equal for requests that may share one reply; part of the cache key in place of the body."""
    max_tokens: int
    """The most tokens that the reply can have, for budgets and token limits."""
    is_draw: bool = False
    """Whether its reply is one of many that it could have. The faster of two would be the shorter one, as a
    rule: so it gets no twin, unless it hangs."""
    on_chunk: Callable[[bytes], None] | None = field(default=None, compare=False, repr=False)
    """Called with each piece of a successful reply's body as it comes, on the engine's thread. Once it was,
    the request is not sent again."""


Request = ChatRequest | GenerateRequest | LikelihoodRequest | EmbedRequest | RawRequest


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as counted by the endpoint, and their cost if the endpoint reports it."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    """US dollars, from the reply (some gateways report it) or from the endpoint's price."""
    cached_tokens: int = 0
    """Of the prompt's: those that the endpoint had in its cache, and may charge less for."""
    reasoning_tokens: int = 0
    """Of the completion's: those of reasoning, where the endpoint counts them."""

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            sum(costs) if costs else None,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )


@dataclass(frozen=True, slots=True)
class TokenChoice:
    """One generated token with the log-probabilities of what stood in its place."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class RateHeaders:
    """What the reply's headers said of the remaining allowance. None: not said."""

    remaining_requests: int | None = None
    reset_requests: float | None = None
    """Seconds until the request allowance is full again."""
    remaining_tokens: int | None = None
    reset_tokens: float | None = None
    limit_requests: int | None = None
    limit_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What an endpoint answered: text (or vectors), and the facts around it."""

    text: str
    model: str = ""
    finish_reason: str = "stop"
    """`stop`, `length` (truncated), `content_filter` (refused), or what the endpoint said."""
    refusal: str | None = None
    """The endpoint's own refusal field, where it has one."""
    reasoning: str = ""
    """What the model thought before it answered, where the endpoint gives it apart from the text."""
    usage: Usage = Usage()
    tokens: tuple[TokenChoice, ...] = ()
    vectors: tuple[tuple[float, ...], ...] = ()
    rate: RateHeaders | None = None
    body: bytes = b""
    """Of a RawRequest: the answer as it came."""


class Status(StrEnum):
    """The outcome of a sample. Only `ok` and `empty` have a score."""

    OK = "ok"
    EMPTY = "empty"
    """Settled by rule, without a call: nothing there to judge."""
    FAILED = "failed"
    DEADLINE = "deadline"
    UNREADABLE = "unreadable"
    REFUSED = "refused"
    FLAGGED = "flagged"


class Source(StrEnum):
    """Where a verdict came from."""

    CALL = "call"
    CACHE = "cache"
    SHARED = "shared"
    """An identical request was already in flight: one call served both."""
    RULE = "rule"
    """No call was needed."""


class Cause(StrEnum):
    """Why a sample has no score, for programs; error messages are for people."""

    RATE_LIMITED = "rate_limited"
    """The endpoint answered 429 (or 503, 529) until the time was up."""
    TIMED_OUT = "timed_out"
    UNREACHABLE = "unreachable"
    """No connection came about."""
    SERVER_ERROR = "server_error"
    """5xx, a connection that broke, or an answer that is no reply."""
    REFUSED_KEY = "refused_key"
    UNKNOWN_MODEL = "unknown_model"
    ENDPOINT_REFUSED = "endpoint_refused"
    """It refuses every request alike: no credit, a redirect, no API at that URL."""
    REQUEST_REFUSED = "request_refused"
    """It refuses this request for what it contains: too long, say."""
    OUT_OF_FILES = "out_of_files"
    """This process has no file descriptor left for a connection."""
    UNREADABLE = "unreadable"
    CUT_OFF = "cut_off"
    """The reply reached its token limit before the verdict."""
    DECLINED = "declined"
    """The judge would not judge."""
    FLAGGED = "flagged"
    """The response tries to sway the judge."""
    DEADLINE = "deadline"
    CANCELLED = "cancelled"
    CLOSED = "closed"
    """The engine was closed."""
    BUDGET = "budget"
    INPUT = "input"
    """The judge cannot judge this sample: it lacks a reference, say."""
    CODE = "code"
    """Code failed: of a judge, of a rule, or plaudit's own."""
    UNKNOWN = "unknown"
    """A judge of the user's own gave no score and said no cause."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no score, as data."""

    cause: Cause
    facts: Mapping[str, str | int | float] = field(default_factory=dict, hash=False)
    """What is known of it, like `endpoint`, `http_status`, `retry_after_s`."""


_STATUS_OF = {
    Cause.CUT_OFF: Status.UNREADABLE,
    Cause.UNREADABLE: Status.UNREADABLE,
    Cause.DECLINED: Status.REFUSED,
    Cause.FLAGGED: Status.FLAGGED,
    Cause.DEADLINE: Status.DEADLINE,
}
"""Every other cause is `failed`. A status by itself stands for its last cause here."""
_FAILURE_OF = {status: Failure(cause) for cause, status in _STATUS_OF.items()}
_FAILURE_OF[Status.FAILED] = Failure(Cause.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one sample. `score` is None if there is no verdict, never a stand-in."""

    score: float | None
    status: Status
    reason: str = ""
    error: str | None = None
    """Why there is no score, and what to do about it, for people."""
    model: str = ""
    attempts: int = 0
    latency_s: float = 0.0
    source: Source = Source.CALL
    usage: Usage = Usage()
    parts: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Named components of the score: criteria of a checklist, members of a jury, how sure a judge was."""
    failure: Failure | None = None
    """Why there is no score, for programs; where it is left out, what the status says."""

    def __post_init__(self) -> None:
        if self.score is None and self.failure is None:
            object.__setattr__(self, "failure", _FAILURE_OF.get(self.status))

    @classmethod
    def of(
        cls, reply: Reply, score: float | None, reason: str = "", parts: Mapping[str, float] | None = None
    ) -> Verdict:
        """What a judge reads in a reply."""
        model, usage = reply.model, reply.usage
        return cls(score, Status.OK, reason, None, model, 0, 0.0, Source.CALL, usage, parts or {})

    @classmethod
    def failed(
        cls, failure: Failure | Cause, error: str, *, source: Source = Source.CALL, usage: Usage | None = None
    ) -> Verdict:
        """A verdict without a score; its status follows from the cause."""
        if isinstance(failure, Cause):
            failure = Failure(failure)
        status = _STATUS_OF.get(failure.cause, Status.FAILED)
        return cls(None, status, error=error, source=source, usage=usage or Usage(), failure=failure)

    @property
    def cause(self) -> Cause | None:
        """Why there is no score; None where there is one."""
        return self.failure.cause if self.failure else None

    @property
    def is_valid(self) -> bool:
        """Whether there is a score to train on."""
        return self.score is not None
