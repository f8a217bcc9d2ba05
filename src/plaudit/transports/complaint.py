"""What a server said went wrong, taken out of the many shapes of error bodies.

Pure. Only the fields that servers write themselves are read: some echo the whole request (`input`), and the
judged text in it must not pass for a message of the server's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec

EXCERPT = 200
"""Characters of a server's message that an error quotes."""
QUOTE = 16
"""Characters in a row that a message has from the request: fewer may be the same by chance."""
LONGEST_SAID = 1000
"""Characters of a message in which a parameter is named."""
_LONGEST_BODY = 1 << 20
_KEY_LIKE = re.compile(r"\b(?:sk|pk|rk|gsk|hf|nvapi|xai|key|AIza)[-_][A-Za-z0-9_\-]{8,}|(?i:bearer)\s+\S+")
_UNPRINTABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_TOO_LONG = (
    "context length",
    "context_length",
    "context window",
    "context size",
    "context_size",
    "maximum context",
    "maximum model length",
    "maximum input length",
    "maximum number of tokens",
    "prompt is too long",
    "input is too long",
    "input too long",
    "too many tokens",
    "string_above_max_length",
    "must have less than",
)
"""How servers say that a request does not fit: nearly every one in words of its own."""
_NO_IMAGES = (
    *("support", "is not a multi", "at most 0", "missing data required", "unknown variant"),
    *("must be a string", "valid string", "expected string", "expected a string"),
)
"""How servers say that a model cannot see, beside the word image (or content, which must be text)."""
_THIS_IMAGE = ("format", "mime", "media", "unsupported image", "resolution", "dimension", "pixel")
"""How they say what is wrong with one picture."""
_TITLE = re.compile(rb"<title[^>]*>([^<]{1,1000})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Complaint:
    """A server's error message with the codes around it. All of it is text from outside."""

    message: str = ""
    code: str = ""
    """The server's codes and types, space-separated: `insufficient_quota`, `model_not_found`, `429`."""
    param: str = ""
    """The parameter the server names, if it names one."""

    def excerpt(self, *secrets: str) -> str:
        """A short, one-line quotation of the message, without the secrets."""
        text = _UNPRINTABLE.sub(" ", self.message).strip()
        for secret in secrets:
            text = text.replace(secret, "***")
        text = _KEY_LIKE.sub("***", text)
        return text if len(text) <= EXCERPT else text[: EXCERPT - 1] + "…"

    def before_quoting(self, texts: Iterable[str]) -> Complaint:
        """The complaint without what follows from where its message repeats a part of these texts.

        A judged text that says which parameters are not supported must not pass for the server's words.
        """
        message, whole = self.message[:LONGEST_SAID], "\n".join(texts)
        starts = range(len(message) - QUOTE + 1)
        start = next((one for one in starts if message[one : one + QUOTE] in whole), len(message))
        return replace(self, message=message[:start])

    @property
    def status(self) -> int | None:
        """An HTTP status among the codes: some gateways put it there and answer 200."""
        for word in self.code.split():
            if word.isascii() and word.isdigit() and 400 <= int(word[:4]) < 600:
                return int(word)
        return None


def complaint_of(body: bytes) -> Complaint:
    """Read an error body: JSON in one of its usual shapes, a web page, or plain text."""
    if len(body) <= _LONGEST_BODY:
        try:
            return read_complaint(msgspec.json.decode(body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
    if title := _TITLE.search(body[:4096]):
        return Complaint(message=title[1].decode("utf-8", "replace"))
    if body.lstrip()[:1] == b"<":
        return Complaint(message="a web page")
    return Complaint(message=body[:1000].decode("utf-8", "replace"))


def read_complaint(found: Any) -> Complaint:
    """The complaint in a decoded error body."""
    for _ in range(4):  # {"error": {...}}, [{"error": {...}}], {"message": {"detail": [...]}}
        if isinstance(found, list) and found and isinstance(found[0], dict) and "msg" not in found[0]:
            found = found[0]
        elif isinstance(found, dict):
            inner = (found.get(name) for name in ("error", "message", "detail"))
            found = next((part for part in inner if isinstance(part, dict | list)), found)
    if isinstance(found, list):
        return _of_fields(found)
    if not isinstance(found, dict):
        return Complaint(message=found if isinstance(found, str) else "")
    message = next(_texts(found, "message", "error", "detail", "msg"), "")
    return Complaint(
        message=message,
        code=" ".join(_texts(found, "code", "type", "status")),
        param=next(_texts(found, "param"), ""),
    )


def is_about_length(complaint: Complaint) -> bool:
    """Whether the request was too long for the model's context."""
    text = f"{complaint.message} {complaint.code}".lower()
    return any(sign in text for sign in _TOO_LONG)


def is_about_images(status: int, complaint: Complaint) -> bool:
    """Whether a request was refused because the model takes no pictures."""
    text = f"{complaint.message} {complaint.code} {complaint.param}".lower()
    is_refusal = status in (400, 404, 415, 422, 500, 501) and not any(sign in text for sign in _THIS_IMAGE)
    is_about = any(word in text for word in ("image", "vision", "multimodal", "multi-modal", "content"))
    return is_refusal and is_about and any(sign in text for sign in _NO_IMAGES)


def _of_fields(problems: list[Any]) -> Complaint:
    """FastAPI's form: a list of {"loc": [...], "msg": ..., "type": ...}."""
    fields = [problem for problem in problems if isinstance(problem, dict)]
    where = [_place(problem.get("loc")) for problem in fields]
    messages = [next(_texts(problem, "msg", "message"), "") for problem in fields]
    return Complaint(
        message="; ".join(
            f"{place}: {message}" if place else message
            for place, message in zip(where, messages, strict=True)
        ),
        code=" ".join(text for problem in fields for text in _texts(problem, "type")),
        param=" ".join(where),
    )


def _place(loc: Any) -> str:
    return ".".join(str(part) for part in loc if part != "body") if isinstance(loc, list) else ""


def _texts(found: dict[str, Any], *names: str) -> Iterator[str]:
    for name in names:
        value = found.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            yield str(value)
