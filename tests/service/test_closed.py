"""What strangers and broken clients get: nothing, in bounded time and memory."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import cast

import aiohttp
import pytest
from service_client import CHAT, KEY, QUESTION, Client, ScriptedClient, scripted, served
from wire_server import Exchange, answer, good_body, reply

from plaudit.config import Secret
from plaudit.service import app as service_server
from plaudit.service import connections
from plaudit.service.access import Access


async def dialogue(url: str, data: bytes) -> bytes:
    """Everything that the server says to these bytes, until it closes the connection."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    try:
        return await reader.read()
    finally:
        writer.close()


def test_no_header_of_a_client_goes_upstream() -> None:
    sent = {
        "Authorization": "Bearer sk-of-the-client-1234",
        "Cookie": "session=1",
        "Proxy-Authorization": "Basic eDp5",
        "X-Api-Key": "sk-of-the-client-1234",
        "X-Forwarded-For": "10.0.0.1",
        "TE": "trailers",
    }

    async def test(client: ScriptedClient) -> None:
        url = f"{client.url}/v1/chat/completions"
        async with client.session.post(url, json=QUESTION, headers=sent) as response:
            assert response.status == 200
        (request,) = client.endpoint.requests
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert not {name.lower() for name in sent} - {"authorization"} & request.headers.keys()
        assert "sk-of-the-client-1234" not in str(request.headers)

    scripted(test, reply("7"))


def test_no_header_of_the_endpoint_comes_down() -> None:
    async def forward(exchange: Exchange) -> None:
        upstream = {
            "Set-Cookie": "a=1",
            "Keep-Alive": "timeout=5",
            "Proxy-Authenticate": "Basic",
            "X-Own": KEY,
        }
        await exchange.answer(200, good_body(exchange.request, "7"), upstream)

    async def test(client: ScriptedClient) -> None:
        async with client.session.post(f"{client.url}/v1/chat/completions", json=QUESTION) as response:
            assert response.status == 200
            assert not {"Set-Cookie", "Keep-Alive", "Proxy-Authenticate", "X-Own"} & response.headers.keys()

    scripted(test, forward)


def test_a_request_head_that_trickles_in_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_WITHIN", 0.05)

    async def test(client: Client) -> None:
        assert await dialogue(client.url, b"POST /score HTTP/1.1\r\nHost: 127") == b""

    served(test)


@pytest.mark.parametrize("is_kept", [False, True])
def test_connections_are_bounded_and_more_clients_wait_for_their_turn(
    monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 2)
    monkeypatch.setattr(connections, "HEAD_WITHIN", 0.05)
    under_way = most = 0

    async def step(exchange: Exchange) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        await reply("7")(exchange)

    async def test(client: ScriptedClient) -> None:
        async def one(number: int) -> list[int]:
            connector = aiohttp.TCPConnector(force_close=not is_kept)
            async with aiohttp.ClientSession(connector=connector) as session:
                found = []
                for turn in range(3):
                    asked = {**QUESTION, "seed": f"{number} {turn}"}
                    async with session.post(f"{client.url}/v1/chat/completions", json=asked) as response:
                        found.append(response.status)
                return found

        assert await asyncio.gather(*(one(number) for number in range(8))) == [[200] * 3] * 8

    scripted(test, step)
    assert 0 < most <= 2


def test_requests_that_wait_are_bounded_and_turned_away_with_leave_to_try_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service_server, "MOST_WAITING", 1)

    async def endless(exchange: Exchange) -> None:
        await exchange.until_client_leaves()

    async def test(client: ScriptedClient) -> None:
        asked = client.asking(CHAT)
        await client.endpoint.until(lambda: len(client.endpoint.requests) == 1)
        async with client.session.get(f"{client.url}/v1/models") as response:
            assert (response.status, response.headers["x-should-retry"]) == (503, "true")
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)

    scripted(test, endless)


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_client_that_never_reads_its_reply_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, is_stream: bool
) -> None:
    monkeypatch.setattr(connections, "UNREAD_WITHIN", 0.05)
    monkeypatch.setattr(connections, "LEAST_RATE", 1 << 30)
    event = b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n' % (b"x" * 100_000)

    async def long_answer(exchange: Exchange) -> None:
        head = {"Content-Type": "text/event-stream"} if is_stream else {}
        body = (
            event * 100 + b"data: [DONE]\n\n" if is_stream else good_body(exchange.request, "x" * 10_000_000)
        )
        await exchange.answer(200, body, head)

    async def test(client: ScriptedClient) -> None:
        body = json.dumps({**CHAT, "stream": is_stream}).encode()
        host, port = client.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        transport = cast("asyncio.Transport", writer.transport)
        transport.pause_reading()
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        await client.endpoint.until(lambda: len(client.endpoint.requests) == 1)
        await client.until_waiting(0)
        transport.resume_reading()
        got = b""
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(1 << 20):
                got += piece
        assert len(got) < 10_000_000
        writer.close()

    scripted(test, long_answer)


@pytest.mark.parametrize("depth", [10, 500, 900, 990, 1000, 5000, 100_000])
def test_json_of_any_depth_is_passed_on_or_refused(depth: int) -> None:
    async def test(client: Client) -> None:
        nested = b'{"model": "m", "temperature": 0, "x": ' + b"[" * depth + b"]" * depth + b"}"
        status, _, body = await client.post("/v1/chat/completions", nested)
        assert status == 200 or (status == 400 and json.loads(body)["error"]["message"])

    served(test)


@pytest.mark.parametrize(
    "path", ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/v1/%00", "/run/../v1/x"]
)
def test_no_path_leads_to_a_file(path: str) -> None:
    async def test(client: Client) -> None:
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        said = await dialogue(client.url, head.encode())
        assert said.startswith((b"HTTP/1.1 404", b"HTTP/1.1 400"))
        assert b"root:" not in said

    served(test)


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(client: Client) -> None:
        head = (
            b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Connection: close\r\nContent-Length: 9999999999\r\n\r\n"
        )
        host, port = client.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(head)
        assert b" 413 " in await reader.readline()
        writer.close()

    served(test)


def test_what_is_wrong_is_logged_in_one_line_without_a_word_of_the_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="plaudit")

    async def test(client: ScriptedClient) -> None:
        private = {**QUESTION, "messages": [{"role": "user", "content": "a-private-text"}]}
        assert (await client.asking(private))[0] == 400
        assert (await client.asking({"samples": [{"prompt": "a-private-text"}]}, "/score"))[0] == 400

    scripted(test, answer(400, {"error": {"message": "cannot take: a-private-text"}}))
    lines = [record.getMessage() for record in caplog.records if "answered 400" in record.getMessage()]
    assert len(lines) == 2
    assert "a-private-text" not in caplog.text and KEY not in caplog.text


@pytest.mark.parametrize(
    "data",
    [
        b"POST /x?token=SECRET HTTP/9.9 zzz\r\n\r\n",
        b"POST /score HTTP/1.1\r\nHost: localhost\r\nAuthorization Bearer SECRET\r\n\r\n",
        b"POST /score HTTP/1.1\nHost: localhost\n\nSECRET",
        b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n"
        b"Transfer-Encoding: chunked\r\n\r\nSECRET",
        b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\nContent-Length: 7\r\n\r\nSECRET",
        b"POST /score HTTP/1.1\r\nHost: localhost\r\nX: " + b"SECRET" * 20_000 + b"\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused_and_logged_in_one_line_without_a_word_of_it(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(client: Client) -> None:
        assert b" 400 " in await dialogue(client.url, data)

    with caplog.at_level("INFO"):
        served(test)
    lines = [line for line in caplog.text.splitlines() if "HTTP" in line]
    assert len(lines) == 1 and "SECRET" not in caplog.text and "Traceback" not in caplog.text


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
def test_a_packed_body_is_refused_without_a_look_into_it(
    encoding: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(client: Client) -> None:
        head = "POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += f"Connection: close\r\nContent-Encoding: {encoding}\r\nContent-Length: 6000\r\n\r\n"
        assert b" 415 " in await dialogue(client.url, head.encode() + b"SECRET" * 1000)

    with caplog.at_level("INFO"):
        served(test)
    assert "SECRET" not in caplog.text and "Traceback" not in caplog.text


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"Host: evil.example\r\nContent-Length: 9\r\n", b"HTTP/1.1 400 "),
        (b"Host: localhost\r\nContent-Length: 999999999\r\n", b"HTTP/1.1 413 "),
        (b"Host: localhost\r\nContent-Length: 2\r\n", b"HTTP/1.1 100 "),
    ],
)
def test_a_client_that_asks_first_is_told_to_send_only_what_is_wanted(head: bytes, expected: bytes) -> None:
    async def test(client: Client) -> None:
        host, port = client.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        asks = b"Expect: 100-continue\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
        writer.write(b"POST /score HTTP/1.1\r\n" + head + asks)
        assert (await reader.readline()).startswith(expected)
        if b" 100 " in expected:
            writer.write(b"{}")
            assert b"HTTP/1.1 400 " in await reader.read()
        writer.close()

    served(test)


def test_a_token_that_is_no_text_is_a_wrong_one() -> None:
    async def test(client: Client) -> None:
        said = await dialogue(
            client.url,
            b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Authorization: Bearer \xff\xfe\r\n\r\n",
        )
        assert said.startswith(b"HTTP/1.1 401 ")

    served(test, access=Access(token=Secret("correct-horse-battery")))


def test_the_name_of_a_run_is_bounded() -> None:
    async def test(client: Client) -> None:
        name = "a" * 201
        assert (await client.post(f"/run/{name}/v1/chat/completions", CHAT))[0] == 400
        assert (await client.post("/v1/chat/completions", CHAT, **{"x-plaudit-run": name}))[0] == 400
        assert (await client.post(f"/run/{name[:-1]}/v1/chat/completions", CHAT))[0] == 200

    served(test)
