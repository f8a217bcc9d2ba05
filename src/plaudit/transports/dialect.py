"""What a dialect is: how requests and replies are written for one kind of endpoint.

Pure: bytes out, bytes in. Sending them is an HTTP client's work.

Which optional parameters an endpoint takes is learned from its own refusals (`Shape`). One that does not
know a parameter says so in a 400 or 422: the transport leaves the parameter out (or calls it by its newer
name), sends again, and keeps the lesson for every later request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeVar

import msgspec

from plaudit.config import Price
from plaudit.errors import Unsendable
from plaudit.transports.complaint import Complaint, is_about_length, read_complaint
from plaudit.types import RateHeaders, Reply, Request, TokenChoice, Usage

T = TypeVar("T")
MOST_TOKENS = 10**9
MOST_DOLLARS = 10_000.0
"""What one request can use and cost at the most: what is beyond is a mistake, and not believed."""


class BadReply(ValueError):
    """The body is no reply. The message says why, without quoting it."""


class ErrorReply(Exception):
    """The body is an error, though the status said success. Some gateways do that."""

    def __init__(self, complaint: Complaint) -> None:
        super().__init__(complaint.message)
        self.complaint = complaint


class Dialect(Protocol):
    """One way of writing requests and replies, with what it has learned of the endpoint."""

    def encode(self, request: Request) -> tuple[str, bytes]:
        """The route below the endpoint's URL, and the body. Raises Unsendable if it has no JSON form."""
        ...

    def decode(self, request: Request, body: bytes, rate: RateHeaders | None) -> Reply:
        """Read a successful reply. Raises BadReply or ErrorReply."""
        ...

    def adapted(self, complaint: Complaint) -> Self | None:
        """The dialect without what the endpoint complains of, or None when that would not help."""
        ...


_UNKNOWN = (
    "unsupported",
    "not support",
    "n't support",
    "not available",
    "unavailable",
    "unknown",
    "unrecognized",
    "unrecognised",
    "unexpected",
    "extra inputs",
    "extra fields",
    "extra_forbidden",
    "not permitted",
    "not allowed",
    "not implemented",
    "not enabled",
    "cannot unmarshal",
    "no such parameter",
    "invalid parameter",
)
_NAMES = {
    "has_schema": ("response_format", "json_schema", "request.format", "guided", "structured output"),
    "has_temperature": ("temperature",),
    "has_logprobs": ("logprobs",),
    "has_echo": ("echo",),
}
"""How servers name what can be left out."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The parameters that requests to one endpoint carry. It starts with all of them."""

    limit_name: str = "max_tokens"
    """What the limit on the reply's length is called; newer OpenAI models want `max_completion_tokens`."""
    has_schema: bool = True
    """Without it, the reply's format is asked for by the prompt alone."""
    has_temperature: bool = True
    has_logprobs: bool = True
    has_echo: bool = True
    """Whether completions repeat the prompt with its log-probabilities; llama.cpp takes a grammar instead."""

    def adapted(self, complaint: Complaint) -> Shape | None:
        """The shape without the parameter that is complained of, or None when it is about something else.

        Every adaptation takes something away, so that adapting ends.
        """
        if is_about_length(complaint):
            return None  # it may well name max_tokens, but a new name would not make the prompt shorter
        text = f"{complaint.message} {complaint.code}".lower()
        if not any(word in text for word in _UNKNOWN):
            return None
        return self._without(complaint.param.lower()) or self._without(text)

    def _without(self, named: str) -> Shape | None:
        if self.limit_name == "max_tokens" and "max_tokens" in named:
            return replace(self, limit_name="max_completion_tokens")
        for part, names in _NAMES.items():
            if getattr(self, part) and any(name in named for name in names):
                less: dict[str, Any] = {part: False}
                return replace(self, **less)
        return None


FULL = Shape()
"""What an endpoint is taken to know until it says otherwise."""


class TopToken(msgspec.Struct, gc=False):
    """One alternative at a token's place."""

    token: str = ""
    logprob: float | None = 0.0
    """None, in JSON, is what servers make of minus infinity: this token cannot stand here."""


class Token(msgspec.Struct, gc=False):
    """A generated token. OpenAI and Ollama write it alike."""

    token: str = ""
    logprob: float = 0.0
    top_logprobs: list[TopToken] | None = None


def encode_json(body: Mapping[str, Any]) -> bytes:
    """The body as JSON."""
    try:
        return _encode(body)
    except UnicodeEncodeError as error:
        text = error.object
        trouble = f"the request contains a lone surrogate ({text[error.start]!a}); remove it"
    except (TypeError, RecursionError) as error:
        trouble = f"the request has no JSON form ({error}); use plain dicts, lists, strings and numbers"
    raise Unsendable(trouble)


def error_in(found: Any, otherwise: str = "", body: bytes = b"null") -> BadReply | ErrorReply:
    """What a body's `error` field means, or else what it says beside any, or why it is no reply."""
    complaint = read_complaint({"error": found} if found else decode_json(_anything, body))
    return ErrorReply(complaint) if found or complaint.message else BadReply(otherwise)


def check_vectors(vectors: tuple[tuple[float, ...], ...], *, expected: int) -> None:
    """Embeddings are matched by position: one too few would shift all that follow."""
    if len(vectors) != expected:
        raise BadReply(f"it holds {len(vectors)} embeddings for {expected} texts")


def choices_of(tokens: list[Token]) -> tuple[TokenChoice, ...]:
    """Tokens with their alternatives, as judges read them."""
    return tuple(
        TokenChoice(
            token=token.token,
            logprob=token.logprob,
            top=tuple(
                (top.token, top.logprob) for top in token.top_logprobs or () if top.logprob is not None
            ),
        )
        for token in tokens
    )


def decode_json(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """A body as the decoder's type, also where it has what JSON has not, but Python's servers write.

    Numbers like NaN are null; half a character (a surrogate without its other half) stays what it is.
    """
    try:
        return decoder.decode(body)
    except msgspec.DecodeError as error:
        is_odd = any(word in body for word in (b"NaN", b"Infinity", b"\\ud", b"\\uD"))
        if not is_odd and "out of range" not in str(error):
            raise
        try:
            found = json.loads(body, parse_constant=lambda _: None)
        except ValueError:
            found = None
        if found is None:
            raise
    return msgspec.convert(found, decoder.type)


def usage_of(
    prompt_tokens: object,
    completion_tokens: object,
    *,
    cost: object,
    price: Price | None,
    cached: object = None,
    reasoning: object = None,
) -> Usage:
    """Tokens as counted by the endpoint; 0 where it gave no believable count, in whatever form.

    The cost it states is believed, if it is a sum of money; else the price tells it. Nothing is free that has
    a price.
    """
    prompt, completion = _count(prompt_tokens), _count(completion_tokens)
    of_prompt = min(_count(cached), prompt) if cached else 0
    of_completion = min(_count(reasoning), completion) if reasoning else 0
    dollars = None if cost is None else _number(cost)
    if dollars is not None and not 0 <= dollars <= MOST_DOLLARS:
        dollars = None
    if not dollars and price is not None:
        is_counted = prompt or completion
        by_price = price.cost(prompt_tokens=prompt, completion_tokens=completion, cached_tokens=of_prompt)
        dollars = by_price if is_counted else None
    return Usage(prompt, completion, dollars, of_prompt, of_completion)


def _count(found: object) -> int:
    number = found if type(found) is int else _number(found)
    return int(number) if 0 <= number <= MOST_TOKENS else 0


def _number(found: object) -> float:
    """A number, also in a text; less than nothing where there is none."""
    if found is None:
        return 0
    if isinstance(found, int | float) and not isinstance(found, bool):
        return found
    try:
        return float(found) if isinstance(found, str) else -1
    except ValueError:
        return -1


_encode = msgspec.json.Encoder().encode
_anything = msgspec.json.Decoder()
