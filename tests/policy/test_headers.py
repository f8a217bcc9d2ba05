"""Rate headers: every form in use is read, and nothing that a server can send raises."""

from __future__ import annotations

import math
from email.utils import formatdate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plaudit.policy.headers import MARKERS, MAX_WAIT, rate_headers, retry_after
from plaudit.types import RateHeaders

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("7", 7.0),
        (" 7 ", 7.0),
        ("0.25", 0.25),
        (formatdate(NOW + 90, usegmt=True), 90.0),
        (formatdate(NOW - 90, usegmt=True), 0.0),
        ("99999999", MAX_WAIT),
    ],
)
def test_retry_after_is_read_in_seconds_or_as_a_date(value: str, seconds: float) -> None:
    assert retry_after({"retry-after": value}, now=NOW) == pytest.approx(seconds)


@pytest.mark.parametrize("value", ["", "soon", "-5", "nan", "inf", "1e9", "٣", "1_0", "1" * 400])
def test_a_retry_after_that_makes_no_sense_counts_as_not_said(value: str) -> None:
    assert retry_after({"retry-after": value}, now=NOW) is None


def test_milliseconds_are_preferred_because_they_are_finer() -> None:
    assert retry_after({"retry-after": "1", "retry-after-ms": "120"}, now=NOW) == 0.12


def test_the_servers_own_date_is_the_clock_that_its_dates_are_read_by() -> None:
    headers = {"retry-after": formatdate(NOW + 500, usegmt=True), "date": formatdate(NOW + 490, usegmt=True)}
    assert retry_after(headers, now=NOW) == pytest.approx(10.0)


def test_a_used_up_allowance_says_when_it_comes_back() -> None:
    headers = {
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "12s",
        "x-ratelimit-remaining-tokens": "90",
        "x-ratelimit-reset-tokens": "6m0s",
    }
    assert retry_after(headers, now=NOW) == 12.0


def test_an_allowance_that_is_not_used_up_asks_for_no_wait() -> None:
    headers = {"x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "12s"}
    assert retry_after(headers, now=NOW) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("6m0s", 360.0),
        ("120ms", 0.12),
        ("1h2m3.5s", 3723.5),
        ("12.3", 12.3),
        ("1d", 86_400.0),
        ("2d", MAX_WAIT),
        ("17.5µs", 17.5e-6),
        (str(int(NOW + 30)), 30.0),
        (str(int((NOW + 30) * 1000)), 30.0),
        ("2027-01-15T08:00:20Z", 20.0),
        ("2027-01-15T10:00:20.500+02:00", 20.5),
        ("2027-01-15T06:00:20-02:00", 20.0),
        ("6m0", None),
        ("m", None),
        ("2027-13-45T08:00:20Z", None),
    ],
)
def test_resets_come_as_durations_numbers_epochs_and_dates(text: str, seconds: float | None) -> None:
    headers = {"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": text}
    rate = rate_headers(headers, now=NOW)
    assert rate is not None
    if seconds is None:
        assert rate.reset_requests is None
    else:
        assert rate.reset_requests == pytest.approx(seconds)


def test_openai_headers_are_read_in_full() -> None:
    headers = {
        "x-ratelimit-limit-requests": "500",
        "x-ratelimit-remaining-requests": "499",
        "x-ratelimit-reset-requests": "120ms",
        "x-ratelimit-limit-tokens": "30000",
        "x-ratelimit-remaining-tokens": "29900",
        "x-ratelimit-reset-tokens": "200ms",
    }
    assert rate_headers(headers, now=NOW) == RateHeaders(
        remaining_requests=499,
        reset_requests=0.12,
        remaining_tokens=29900,
        reset_tokens=0.2,
        limit_requests=500,
        limit_tokens=30000,
    )


def test_anthropic_headers_name_the_unit_first_and_reset_at_an_instant() -> None:
    headers = {
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2027-01-15T08:00:07Z",
    }
    rate = rate_headers(headers, now=NOW)
    assert rate == RateHeaders(remaining_requests=0, reset_requests=7.0, limit_requests=50)


@pytest.mark.parametrize(
    "headers",
    [
        {"x-ratelimit-limit": "100", "x-ratelimit-remaining": "9", "x-ratelimit-reset": str(int(NOW + 5))},
        {"ratelimit-limit": "100, 100;w=60", "ratelimit-remaining": "9", "ratelimit-reset": "5"},
        {"ratelimit": "limit=100, remaining=9, reset=5"},
        {"ratelimit": '"default";q=100;r=9;t=5'},
    ],
)
def test_headers_without_a_unit_count_requests(headers: dict[str, str]) -> None:
    rate = rate_headers(headers, now=NOW)
    assert rate == RateHeaders(remaining_requests=9, reset_requests=5.0, limit_requests=100)


def test_a_reply_without_rate_headers_says_nothing() -> None:
    assert rate_headers({"content-type": "application/json"}, now=NOW) is None
    assert rate_headers({"x-ratelimit-remaining": "many"}, now=NOW) is None


NAMES = [
    *MARKERS,
    "retry-after",
    "retry-after-ms",
    "date",
    "x-ratelimit-reset",
    "x-ratelimit-reset-requests",
    "x-ratelimit-reset-tokens",
    "x-ratelimit-limit-requests",
    "anthropic-ratelimit-requests-reset",
    "ratelimit-reset",
    "ratelimit-limit",
]
UNITS = st.sampled_from(["d", "h", "m", "s", "ms", "µs", "", "x"])
NUMBERS = st.one_of(st.integers(-(10**30), 10**30), st.floats())
VALUES = st.one_of(
    st.text(max_size=30),
    NUMBERS.map(str),
    st.lists(st.tuples(st.integers(0, 10**20), UNITS), max_size=3).map(
        lambda parts: "".join(f"{number}{unit}" for number, unit in parts)
    ),
    st.datetimes().map(lambda at: at.strftime("%a, %d %b %Y %H:%M:%S GMT")),
    st.datetimes().map(lambda at: at.strftime("%a, %d %b %Y %H:%M:%S -0000")),
    st.datetimes().map(lambda at: at.isoformat() + "Z"),
    st.tuples(st.integers(0, 99), st.integers(0, 99)).map(lambda at: f"2027-{at[0]:02}-{at[1]:02}T00:00:00Z"),
    NUMBERS.map(lambda number: f"limit={number}, remaining={number}, reset={number}"),
)


@settings(deadline=None)
@given(
    headers=st.dictionaries(st.sampled_from(NAMES), VALUES),
    now=st.floats(min_value=0, max_value=1e11, allow_nan=False),
)
def test_whatever_the_headers_say_the_answer_is_sane(headers: dict[str, str], now: float) -> None:
    wait = retry_after(headers, now=now)
    assert wait is None or (math.isfinite(wait) and 0.0 <= wait <= MAX_WAIT)
    rate = rate_headers(headers, now=now)
    if rate is None:
        return
    for reset in (rate.reset_requests, rate.reset_tokens):
        assert reset is None or (math.isfinite(reset) and 0.0 <= reset <= MAX_WAIT)
    for count in (rate.remaining_requests, rate.remaining_tokens, rate.limit_requests, rate.limit_tokens):
        assert count is None or count >= 0
