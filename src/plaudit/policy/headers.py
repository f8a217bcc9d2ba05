"""What a reply's headers say about rate: how long to wait, and how much allowance is left.

Pure, and forgiving: headers are other people's text, so nonsense, negative or absurd values count as not
said. `headers` is a mapping that ignores case, or has lower-case names. `now` is the wall clock in epoch
seconds; the reply's own `Date` is preferred to it, so that a wrong clock on either side does not matter.
"""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from plaudit.types import RateHeaders

MAX_WAIT = 86_400.0
"""Seconds: what is asked for beyond a day is cut to a day."""
MAX_COUNT = 10**12
LONGEST_VALUE = 200
"""Characters: no honest value is longer."""

MARKERS = (
    "x-ratelimit-remaining-requests",
    "x-ratelimit-remaining-tokens",
    "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-tokens-remaining",
    "x-ratelimit-remaining",
    "ratelimit-remaining",
    "ratelimit",
)
"""One lookup each tells a reply without rate headers, which is nearly every reply, from one with them."""

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_COUNT = re.compile(r"([0-9]+)\s*(?:[,;].*)?")
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:d|h|ms|us|µs|ns|m|s))+")
_PART = re.compile(r"([0-9.]+)(d|h|ms|us|µs|ns|m|s)")
_SECONDS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)
_PAIR = re.compile(r"\b(limit|remaining|reset|r|t|q)\s*=\s*([0-9]+)")
_EPOCH = 1e9
"""A plain number from here on is a date, not a duration: nobody waits thirty years."""


def _names(pattern: str) -> dict[str, str]:
    return {
        f"{field}_{unit}": pattern.format(field=field, unit=unit)
        for field in ("remaining", "reset", "limit")
        for unit in ("requests", "tokens")
    }


_OPENAI = _names("x-ratelimit-{field}-{unit}")
_ANTHROPIC = _names("anthropic-ratelimit-{unit}-{field}")


def retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """Seconds the endpoint asks us to wait, or None when it does not say.

    Without a Retry-After of any kind, an allowance that is used up says when it comes back.
    """
    text = headers.get("retry-after-ms")
    if text is not None and (number := _number(text)) is not None:
        return min(number / 1000.0, MAX_WAIT)
    text = headers.get("retry-after")
    if text is not None and (wait := _wait(text, headers, now)) is not None:
        return wait
    rate = rate_headers(headers, now=now)
    if rate is None:
        return None
    used_up = [
        reset
        for remaining, reset in (
            (rate.remaining_requests, rate.reset_requests),
            (rate.remaining_tokens, rate.reset_tokens),
        )
        if remaining == 0 and reset is not None
    ]
    return max(used_up, default=None)


def rate_headers(headers: Mapping[str, str], *, now: float) -> RateHeaders | None:
    """The remaining allowance, or None when the reply says nothing of it."""
    for marker in MARKERS:
        if marker in headers:
            break
    else:
        return None
    found = (
        _by_unit(_OPENAI, headers, now) or _by_unit(_ANTHROPIC, headers, now) or _in_one_unit(headers, now)
    )
    return found if found != RateHeaders() else None


def _by_unit(names: Mapping[str, str], headers: Mapping[str, str], now: float) -> RateHeaders | None:
    """Requests and tokens apart, as OpenAI and Anthropic count them."""
    if names["remaining_requests"] not in headers and names["remaining_tokens"] not in headers:
        return None
    return RateHeaders(
        remaining_requests=_count(headers.get(names["remaining_requests"])),
        reset_requests=_wait(headers.get(names["reset_requests"]), headers, now),
        remaining_tokens=_count(headers.get(names["remaining_tokens"])),
        reset_tokens=_wait(headers.get(names["reset_tokens"]), headers, now),
        limit_requests=_count(headers.get(names["limit_requests"])),
        limit_tokens=_count(headers.get(names["limit_tokens"])),
    )


def _in_one_unit(headers: Mapping[str, str], now: float) -> RateHeaders:
    """`RateLimit-Remaining`, `X-RateLimit-Remaining`, or one `RateLimit` header with everything in it."""
    for prefix in ("x-ratelimit-", "ratelimit-"):
        if prefix + "remaining" in headers:
            return RateHeaders(
                remaining_requests=_count(headers.get(prefix + "remaining")),
                reset_requests=_wait(headers.get(prefix + "reset"), headers, now),
                limit_requests=_count(headers.get(prefix + "limit")),
            )
    text = headers.get("ratelimit", "")
    pairs = dict(_PAIR.findall(text)) if len(text) <= LONGEST_VALUE else {}
    return RateHeaders(
        remaining_requests=_count(pairs.get("remaining", pairs.get("r"))),
        reset_requests=_wait(pairs.get("reset", pairs.get("t")), headers, now),
        limit_requests=_count(pairs.get("limit", pairs.get("q"))),
    )


def _count(text: str | None) -> int | None:
    if text is None or len(text) > LONGEST_VALUE:
        return None
    match = _COUNT.fullmatch(text.strip())
    if match is None or len(match[1]) > 15:
        return None
    count = int(match[1])
    return count if count <= MAX_COUNT else None


def _number(text: str) -> float | None:
    text = text.strip()
    if len(text) > LONGEST_VALUE or _NUMBER.fullmatch(text) is None:
        return None
    return float(text)


def _wait(text: str | None, headers: Mapping[str, str], now: float) -> float | None:
    """Seconds from now: a number, an epoch, a duration like `6m0s`, or a date."""
    if text is None or len(text) > LONGEST_VALUE:
        return None
    text = text.strip()
    number = _number(text)
    if number is not None and number < _EPOCH:
        return min(number, MAX_WAIT)
    if _DURATION.fullmatch(text):
        return min(sum(_seconds(value, unit) for value, unit in _PART.findall(text)), MAX_WAIT)
    if number is not None:
        instant: float | None = number if number < _EPOCH * 1000 else number / 1000.0
    else:
        instant = _instant(text)
    if instant is None:
        return None
    server_now = _instant(headers.get("date", ""))
    return min(max(instant - (now if server_now is None else server_now), 0.0), MAX_WAIT)


def _seconds(value: str, unit: str) -> float:
    return float(value) * _SECONDS[unit]


def _instant(text: str) -> float | None:
    """Epoch seconds of an HTTP date or an RFC 3339 timestamp."""
    if not text or len(text) > LONGEST_VALUE:
        return None
    match = _RFC3339.fullmatch(text)
    try:
        if match is None:
            return parsedate_to_datetime(text).timestamp()
        year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
        instant = timegm((year, month, day, hour, minute, second)) + float(match[7] or 0)
    except (ValueError, OverflowError, OSError):
        return None
    if match[8] is None:
        return instant
    shift = int(match[9]) * 3600 + int(match[10]) * 60
    return instant - shift if match[8] == "+" else instant + shift
