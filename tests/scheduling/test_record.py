"""How verdicts look in a cache: whole, readable, and only the good ones."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plaudit.scheduling.record import decode, encode
from plaudit.types import Source, Status, Usage, Verdict


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.text(max_size=20),
    st.integers(min_value=0, max_value=10**6),
)
def test_a_good_verdict_comes_back_as_it_was_free_of_charge(
    score: float, reason: str, model: str, tokens: int
) -> None:
    verdict = Verdict(
        score, Status.OK, reason, model=model, attempts=3, latency_s=1.5, usage=Usage(tokens, 7, 0.25)
    )
    found = decode(encode(verdict))
    assert found is not None
    assert (found.score, found.reason, found.model) == (score, reason, model)
    assert found.status is Status.OK
    assert found.source is Source.CACHE
    assert found.usage == Usage(tokens, 7, 0.0)
    assert (found.attempts, found.latency_s) == (0, 0.0)


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
def test_there_is_no_way_to_write_a_failure(status: Status) -> None:
    with pytest.raises(AssertionError):
        encode(Verdict(None, status))


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"null", b"{}", b"[1]", b"\xff", b'{"score": 7', b'{"score": 7}'),
        *(b'{"score": null, "status": "ok"}', b'{"score": "7", "status": "ok"}'),
        *(b'{"score": 7, "status": "failed"}', b'{"score": 7, "status": "fine"}'),
    ],
)
def test_bytes_that_are_no_verdict_are_none(data: bytes) -> None:
    assert decode(data) is None


def test_an_export_can_be_read_by_a_person() -> None:
    written = msgspec.json.decode(encode(Verdict(7.0, Status.OK, "It is correct.", model="m")))
    assert written | {"score": 7.0, "reason": "It is correct.", "model": "m"} == written


def test_fields_of_a_later_version_are_ignored() -> None:
    found = decode(b'{"score": 7.0, "status": "ok", "reason": "fine", "colour": "blue"}')
    assert found is not None and found.score == 7.0


def test_a_lone_surrogate_in_the_reason_does_not_cost_the_verdict() -> None:
    found = decode(encode(Verdict(7.0, Status.OK, "odd \ud800 words")))
    assert found is not None
    assert found.score == 7.0
    assert found.reason == "odd ? words"
