"""HTTP/1.1 as bytes: requests are the same however they are cut into packets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaudit.simulator.protocol import MAX_BODY, MAX_HEAD, BadRequest, HttpRequest, RequestReader, Response
from simulator.asking import QUICK

SIMPLE = b"POST /v1/x?y=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nAuthorization: Bearer Key\r\n\r\nhello"
CHUNKED = (
    b"POST /chunked HTTP/1.1\r\nTRANSFER-ENCODING: Chunked\r\n\r\n3\r\nhel\r\n2;note=1\r\nlo\r\n0\r\n\r\n"
)
BARE = b"GET /stats HTTP/1.1\r\n\r\n"


def read(reader: RequestReader) -> list[HttpRequest]:
    found = []
    while (request := reader.next_request()) is not None:
        found.append(request)
    return found


@QUICK
@given(st.lists(st.integers(0, 400), max_size=20))
def test_pipelined_requests_are_read_whole_and_in_order(cuts: list[int]) -> None:
    data = SIMPLE + CHUNKED + BARE + SIMPLE
    reader, requests, before = RequestReader(), list[HttpRequest](), 0
    for cut in sorted({min(cut, len(data)) for cut in cuts} | {len(data)}):
        reader.feed(data[before:cut])
        requests += read(reader)
        before = cut
    assert [(request.method, request.path, request.body) for request in requests] == [
        ("POST", "/v1/x", b"hello"),
        ("POST", "/chunked", b"hello"),
        ("GET", "/stats", b""),
        ("POST", "/v1/x", b"hello"),
    ]
    assert requests[0].headers[b"authorization"] == b"Bearer Key"
    assert b"authorization" not in requests[2].headers
    assert len(reader) == 0


@pytest.mark.parametrize(
    ("head", "keeps_alive"),
    [
        (b"GET / HTTP/1.1\r\n", True),
        (b"GET / HTTP/1.1\r\nConnection: close\r\n", False),
        (b"GET / HTTP/1.0\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n", True),
    ],
)
def test_connections_are_kept_as_the_client_asks(head: bytes, keeps_alive: bool) -> None:
    reader = RequestReader()
    reader.feed(head + b"\r\n")
    (request,) = read(reader)
    assert request.keeps_alive is keeps_alive


def test_continue_is_asked_for_once() -> None:
    reader = RequestReader()
    reader.feed(b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
    assert reader.next_request() is None
    assert [reader.take_continue(), reader.take_continue()] == [True, False]
    reader.feed(b"bo")
    assert reader.next_request() is None
    assert not reader.take_continue()
    reader.feed(b"dy")
    assert [request.body for request in read(reader)] == [b"body"]


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY + 1), 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * MAX_HEAD, 431),
    ],
)
def test_what_is_no_http_is_refused(data: bytes, status: int) -> None:
    reader = RequestReader()
    reader.feed(data)
    with pytest.raises(BadRequest) as refusal:
        reader.next_request()
    assert refusal.value.status == status


def test_a_response_says_how_long_it_is() -> None:
    response = Response(429, b"{}", headers=(("retry-after", "2"),))
    assert response.encode() == (
        b"HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
        b"retry-after: 2\r\n\r\n{}"
    )
    assert b"\r\nConnection: close\r\n" in response.encode(keeps_alive=False)
