"""What servers say when they refuse: every common shape is read, and none can raise or show a key."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plaudit.transports.complaint import EXCERPT, Complaint, complaint_of, is_about_length, read_complaint


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (
            {"error": {"message": "no", "type": "t", "param": "p", "code": "c"}},
            Complaint("no", code="c t", param="p"),
        ),
        ({"error": "model 'x' not found"}, Complaint("model 'x' not found")),
        ({"object": "error", "message": "no", "code": 400}, Complaint("no", code="400")),
        ({"detail": "Not Found"}, Complaint("Not Found")),
        (
            {"detail": [{"loc": ["body", "a", 0], "msg": "bad", "type": "t", "input": "secret"}]},
            Complaint("a.0: bad", code="t", param="a.0"),
        ),
        (
            [{"error": {"code": 429, "message": "no", "status": "RESOURCE_EXHAUSTED"}}],
            Complaint("no", code="429 RESOURCE_EXHAUSTED"),
        ),
        (
            {"message": {"detail": [{"msg": "bad", "loc": ["body", "x"]}]}},
            Complaint("x: bad", param="x"),
        ),
        ({"error": {"message": None, "code": True}}, Complaint()),
        (7, Complaint()),
    ],
)
def test_error_bodies_come_in_many_shapes(body: object, complaint: Complaint) -> None:
    assert complaint_of(json.dumps(body).encode()) == complaint


def test_a_complaint_ends_where_it_begins_to_quote_the_request() -> None:
    said = Complaint("Unknown parameter: seed, in: tell me that top_p is unknown", code="400", param="seed")
    own = said.before_quoting(["Please tell me that top_p is unknown"])
    assert own == Complaint("Unknown parameter: seed, in:", code="400", param="seed")
    assert said.before_quoting(["unknown", "top_p"]) == said


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html><head><title>502 Bad Gateway</title></head></html>", "502 Bad Gateway"),
        (b"  <p>oh</p>", "a web page"),
        (b"upstream connect error", "upstream connect error"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"", ""),
    ],
)
def test_bodies_that_are_not_json_are_quoted_too(body: bytes, message: str) -> None:
    assert complaint_of(body).message == message


def test_an_excerpt_is_short_and_on_one_line() -> None:
    excerpt = Complaint("a\nb\x00\x1b[31m" + "x" * 1000).excerpt()
    assert len(excerpt) == EXCERPT
    assert excerpt.startswith("a b [31mx") and excerpt.endswith("…")


@pytest.mark.parametrize(
    "text",
    [
        "bad key: my-own-secret",
        "Incorrect API key provided: sk-proj-abcdefgh1234",
        "Authorization: Bearer abc.def",
        "my-own-secretmy-own-secret",
    ],
)
def test_an_excerpt_never_shows_a_key(text: str) -> None:
    excerpt = Complaint(text).excerpt("my-own-secret")
    assert "***" in excerpt
    assert not any(key in excerpt for key in ("my-own-secret", "abcdefgh", "abc.def"))


def test_a_key_is_not_half_shown_by_the_cut() -> None:
    key = "k" * 40
    assert "kkk" not in Complaint("x" * 190 + key).excerpt(key)
    page = f"<html><title>{'x' * 180}{key}</title></html>"
    assert "kkk" not in complaint_of(page.encode()).excerpt(key)


def test_a_status_among_the_codes_is_found() -> None:
    assert Complaint(code="server_error 502").status == 502
    assert Complaint(code="7 42900 1000000000000 ٤٢٩").status is None


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("This model's maximum context length is 4096 tokens.", ""),
        ("no", "context_length_exceeded"),
        ("the request exceeds the available context size", "exceed_context_size_error"),
        ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", ""),
        ("`inputs` must have less than 1024 tokens. Given: 5000", ""),
        ("The input token count (9) exceeds the maximum number of tokens allowed (8).", ""),
        ("prompt is too long: 250000 tokens > 200000 maximum", ""),
    ],
)
def test_a_request_that_is_too_long_is_recognised(message: str, code: str) -> None:
    assert is_about_length(Complaint(message, code=code))
    assert not is_about_length(Complaint("temperature is unsupported"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "message", "detail", "msg", "loc", "type", "code", "param", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@settings(deadline=None)
@given(JSON)
def test_no_decoded_body_can_raise(body: object) -> None:
    complaint = read_complaint(body)
    assert len(complaint.excerpt("key")) <= EXCERPT
    assert complaint.status is None or 400 <= complaint.status < 600


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_can_raise(body: bytes) -> None:
    assert len(complaint_of(body).excerpt()) <= EXCERPT
