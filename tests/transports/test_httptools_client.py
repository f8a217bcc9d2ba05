"""What is peculiar to the default client: it is strict about HTTP, and keeps its own connections."""

from __future__ import annotations

import asyncio
import gzip
import os
import resource
import socket
import ssl
import zlib
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import trustme
import uvloop
from complaints import about
from wire_server import Exchange, Step, WireServer, answer, hang_up, reply, stall

from plaudit.config import Endpoint
from plaudit.errors import ConfigError, TransportFailed, Unreachable
from plaudit.transports.client import CONNECT_TIMEOUT, MAX_BODY, Answer
from plaudit.transports.connection import LARGE_BODY, MAX_HEAD
from plaudit.transports.http_errors import Dropped
from plaudit.transports.httptools_client import HttptoolsClient

Run = Callable[[Coroutine[Any, Any, None]], None]
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
LOOPS = pytest.mark.parametrize("run", [uvloop.run, asyncio.run], ids=["uvloop", "asyncio"])


def client_of(server: WireServer, *, proxy: str | None = None) -> HttptoolsClient:
    return HttptoolsClient(Endpoint(server.url("openai"), api_key="sk-test"), proxy=proxy)


def raw(*pieces: bytes) -> Step:
    """Write these bytes and go on."""

    async def step(exchange: Exchange) -> None:
        for piece in pieces:
            await exchange.write(piece)

    return step


async def answers(*script: Step, count: int) -> list[Answer | TransportFailed]:
    """What one request after another comes to."""
    found: list[Answer | TransportFailed] = []
    async with WireServer(*script) as server:
        client = client_of(server)
        for _ in range(count):
            try:
                found.append(await client.post("/x", b"{}"))
            except TransportFailed as error:
                found.append(error)
        await client.close()
    return found


def failure(*pieces: bytes) -> str:
    """How the call fails that is answered by these bytes; the next one must succeed."""
    first, second = asyncio.run(answers(raw(*pieces), raw(GOOD), count=2))
    assert type(first) is TransportFailed, first
    assert isinstance(second, Answer) and second.body == b"{}"
    return str(first)


@pytest.mark.parametrize("extra", [GOOD, b"garbage", b"HTTP/1.1 100 Continue\r\n\r\n", b"\x00"])
def test_an_answer_that_something_follows_is_good_and_its_connection_is_not(extra: bytes) -> None:
    async def main() -> None:
        async with WireServer(raw(GOOD + extra), raw(GOOD)) as server:
            client = client_of(server)
            for number in (1, 2, 2):
                assert (await client.post("/x", b"{}")).body == b"{}"
                assert server.connections == number
            await client.close()

    asyncio.run(main())


def test_what_comes_while_nothing_is_asked_closes_the_connection() -> None:
    async def main() -> None:
        planted = asyncio.Event()

        async def step(exchange: Exchange) -> None:
            await exchange.write(GOOD)
            await planted.wait()
            await exchange.write(GOOD.replace(b"{}", b"[]"))
            await exchange.until_client_leaves()
            exchange.writer.close()

        async with WireServer(step, raw(GOOD)) as server:
            client = client_of(server)
            await client.post("/x", b"{}")
            planted.set()
            await server.until(lambda: server.open_connections == 0)
            assert (await client.post("/x", b"{}")).body == b"{}"
            await client.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Length: 2\r\nContent-Length: 3\r\n",
        b"Content-Length: -2\r\n",
        b"Content-Length: 2x\r\n",
        b"Content-Length: 99999999999999999999999999\r\n",
        b"Bad Name: x\r\nContent-Length: 2\r\n",
        b"X: a\x00b\r\nContent-Length: 2\r\n",
    ],
)
def test_headers_that_contradict_themselves_are_not_believed(head: bytes) -> None:
    assert "not HTTP" in failure(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n{}")


@pytest.mark.parametrize("first", [b"HTTP/2 200 OK", b"HTTP/1.1 OK", b"SSH-2.0-x", b"\x16\x03\x01"])
def test_what_is_not_http_1_is_named(first: bytes) -> None:
    assert "check the URL's scheme and port" in failure(first + b"\r\n\r\n")


def test_an_upgrade_that_nobody_asked_for_is_not_followed() -> None:
    failure(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n")


def test_a_malformed_chunk_is_named() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert "body is not HTTP" in failure(head, b"zz\r\n{}\r\n0\r\n\r\n")


@pytest.mark.parametrize(
    ("lead", "piece"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\n", b"X-Header: 0123456789\r\n"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"0123456789"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"0123456789"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=", b"0123456789"),
    ],
    ids=["interim", "headers", "header", "trailer", "extension"],
)
def test_nothing_but_a_body_may_be_long(lead: bytes, piece: bytes) -> None:
    said = failure(lead, *[piece * 1000] * (MAX_HEAD // (1000 * len(piece)) + 2))
    assert "larger than 64 KiB" in said


def test_a_body_of_one_byte_chunks_is_not_long() -> None:
    body = b"1\r\n \r\n" * 100_000
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    (found,) = asyncio.run(answers(raw(head + body + b"0\r\n\r\n"), count=1))
    assert isinstance(found, Answer) and found.body == b" " * 100_000


@pytest.mark.parametrize(
    ("encoding", "body", "expected"),
    [
        ("gzip", gzip.compress(b"{}"), b"{}"),
        ("gzip", gzip.compress(b"{") + gzip.compress(b"}"), b"{}"),
        ("deflate", zlib.compress(b"{}"), b"{}"),
        ("deflate", zlib.compress(b"{}", wbits=-15), b"{}"),
        ("identity", b"{}", b"{}"),
        ("gzip, gzip", gzip.compress(gzip.compress(b"{}")), b"{}"),
        ("gzip", gzip.compress(b"{}")[:-3], "damaged"),
        ("gzip", gzip.compress(b"") * 100_000 + gzip.compress(b"{}"), "parts"),
        ("gzip", b"{}", "damaged"),
        ("br", b"{}", "did not ask for (br)"),
        ("gzip", gzip.compress(b" " * MAX_BODY) + gzip.compress(b" "), "16 MiB"),
    ],
)
def test_compressed_bodies(encoding: str, body: bytes, expected: bytes | str) -> None:
    (found,) = asyncio.run(answers(answer(200, body, headers={"Content-Encoding": encoding}), count=1))
    if isinstance(expected, bytes):
        assert isinstance(found, Answer) and found.body == expected
    else:
        assert type(found) is TransportFailed and expected in str(found)


def test_an_answer_without_a_body_leaves_no_trace_in_the_next_exchange() -> None:
    empty, lost = asyncio.run(answers(raw(b"HTTP/1.1 204 None\r\n\r\n"), hang_up(), count=2))
    assert isinstance(empty, Answer) and empty.status == 204
    assert isinstance(lost, Dropped)


def test_a_dropped_request_tells_whether_its_connection_was_fresh() -> None:
    fresh, _, kept = asyncio.run(answers(hang_up(), raw(GOOD), hang_up(), count=3))
    assert isinstance(fresh, Dropped) and fresh.is_kept_alive is False
    assert isinstance(kept, Dropped) and kept.is_kept_alive is True


@LOOPS
def test_an_answer_that_comes_before_the_request_has_left_is_heard(run: Run) -> None:
    async def main() -> None:
        async def impatient(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
            await gone.wait()
            writer.close()

        gone = asyncio.Event()
        server = await asyncio.start_server(impatient, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        client = HttptoolsClient(Endpoint(f"http://127.0.0.1:{port}/v1"))
        async with asyncio.timeout(5.0):
            for _ in range(2):  # the connection it could not finish writing to is not used again
                assert (await client.post("/x", b"x" * (50 * LARGE_BODY))).status == 413
        await client.close()
        gone.set()
        server.close()

    run(main())


def test_an_idle_connection_is_closed_after_a_while() -> None:
    async def main() -> None:
        async with WireServer(raw(GOOD)) as server:
            client = HttptoolsClient(Endpoint(server.url("openai")), keep_alive=0.02)
            await asyncio.gather(*(client.post("/x", b"{}") for _ in range(3)))
            await server.until(lambda: server.open_connections == 0)
            await client.close()

    asyncio.run(main())


def test_names_in_a_url_cannot_add_to_the_request() -> None:
    async def main() -> None:
        async with WireServer(raw(GOOD)) as server:
            url = f"http://127.0.0.1:{server.port}/é/%20?version=ü"
            client = HttptoolsClient(Endpoint(url))
            await client.post("/a b\r\nX-Evil: 1", b"{}")
            (sent,) = server.requests
            assert sent.target == "/%C3%A9/%20/a%20bX-Evil:%201?version=%C3%BC"
            assert "x-evil" not in sent.headers
            await client.close()

    asyncio.run(main())


def test_a_host_that_is_none_is_named_at_once() -> None:
    with pytest.raises(ConfigError, check=about("url", "a..b")):
        HttptoolsClient(Endpoint("http://a..b/v1"))


def test_ipv6_addresses_are_written_in_brackets() -> None:
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            pytest.skip("no IPv6 here")

    async def main() -> None:
        heads: list[bytes] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(GOOD)
            await reader.read()
            writer.close()

        server = await asyncio.start_server(serve, "::1", 0)
        port = server.sockets[0].getsockname()[1]
        client = HttptoolsClient(Endpoint(f"http://[::1]:{port}/v1"))
        await client.post("/x", b"{}")
        assert f"\r\nHost: [::1]:{port}\r\n".encode() in heads[0]
        await client.close()
        server.close()

    asyncio.run(main())


@LOOPS
def test_a_proxy_may_be_reached_by_tls_and_an_endpoint_through_it_by_tls_again(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(tls: ssl.SSLContext) -> None:
        async with WireServer(reply("safe"), tls=tls) as server, WireServer(tunnel(server), tls=tls) as proxy:
            url, at = server.url("openai", host="localhost"), f"https://u:p@localhost:{proxy.port}"
            client = HttptoolsClient(Endpoint(url, api_key="sk-test"), proxy=at)
            for _ in range(2):
                assert (await client.post("/chat/completions", b"{}")).status == 200
            await client.close()
            (opening,) = proxy.requests
            assert opening.target == f"localhost:{server.port}"
            assert opening.headers["proxy-authorization"] == "Basic dTpw"
            assert "sk-test" not in str(opening)
            assert "proxy-authorization" not in server.requests[0].headers

    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(tls)
    with authority.cert_pem.tempfile() as path:
        monkeypatch.setenv("SSL_CERT_FILE", path)
        run(main(tls))


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (stall(), "no answer within 0.05 s"),
        (hang_up(), "the proxy closed the connection"),
        (raw(b"220 mail ready\r\n\r\n"), "the proxy's answer is not HTTP"),
        (answer(502), "the proxy answered 502"),
        (raw(b"HTTP/1.1 200 OK\r\n\r\nwords"), "sent data"),
        (raw(b"x" * (MAX_HEAD + 1)), "does not end"),
    ],
    ids=["silent", "gone", "mail", "502", "plain", "endless"],
)
def test_a_proxy_that_opens_no_tunnel_makes_the_endpoint_unreachable(step: Step, said: str) -> None:
    patience = 0.05 if "0.05" in said else CONNECT_TIMEOUT

    async def main() -> None:
        async with WireServer(step) as proxy:
            at = f"http://127.0.0.1:{proxy.port}"
            client = HttptoolsClient(Endpoint("https://localhost/v1"), proxy=at, connect_timeout=patience)
            with pytest.raises(Unreachable, match=r"through the proxy 127\.0\.0\.1") as caught:
                await client.post("/x", b"{}")
            assert said in str(caught.value)
            await client.close()
            await proxy.until(lambda: proxy.open_connections == 0)

    asyncio.run(main())


def test_a_first_connection_that_takes_long_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with WireServer(stall()) as proxy:
            at = f"http://127.0.0.1:{proxy.port}"
            endpoint = Endpoint("https://localhost/v1")
            client = HttptoolsClient(endpoint, proxy=at, connect_timeout=0.05, tell_after=0.01)
            for _ in range(2):
                posts = (client.post("/x", b"{}") for _ in range(3))
                found = await asyncio.gather(*posts, return_exceptions=True)
                assert {type(one) for one in found} == {Unreachable}
            await client.close()

    asyncio.run(main())
    (told,) = caplog.messages
    assert "no connection to https://localhost/v1" in told
    assert "no answer within 0.01 s" in told
    assert told.endswith(". Still trying")


@LOOPS
def test_closing_ends_an_attempt_to_connect(run: Run) -> None:
    async def main() -> None:
        async with WireServer(stall()) as proxy:
            client = HttptoolsClient(Endpoint("https://localhost/v1"), proxy=f"http://127.0.0.1:{proxy.port}")
            call = asyncio.create_task(client.post("/x", b"{}"))
            await proxy.until(lambda: len(proxy.requests) == 1)
            await client.close()
            with pytest.raises(TransportFailed):
                await call
            await proxy.until(lambda: proxy.open_connections == 0)

    run(main())


@LOOPS
def test_a_call_may_be_cancelled_at_any_step_and_closing_still_ends(run: Run) -> None:
    async def main() -> None:
        async with WireServer(stall()) as server:
            for steps in range(20):
                client = client_of(server)
                call = asyncio.create_task(client.post("/x", b"{}"))
                for _ in range(steps):
                    await asyncio.sleep(0)
                call.cancel()
                async with asyncio.timeout(5.0):
                    await client.close()
                    (outcome,) = await asyncio.gather(call, return_exceptions=True)
                assert isinstance(outcome, asyncio.CancelledError)
            await server.until(lambda: server.open_connections == 0)

    run(main())


def tunnel(server: WireServer) -> Step:
    """Carry bytes between a proxy's client and a server, blindly."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def step(exchange: Exchange) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        await exchange.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        try:
            await asyncio.gather(carry(exchange.reader, writer), carry(reader, exchange.writer))
        finally:
            writer.close()

    return step


@LOOPS
def test_a_free_connection_of_one_endpoint_makes_way_where_another_is_out_of_files(run: Run) -> None:
    async def main() -> None:
        async with WireServer(*[raw(GOOD)] * 30) as busy, WireServer(*[raw(GOOD)] * 30) as other:
            one, two = client_of(busy), client_of(other)
            await asyncio.gather(*(one.post("/x", b"{}") for _ in range(8)))
            limits = resource.getrlimit(resource.RLIMIT_NOFILE)
            probe = os.dup(0)  # the lowest number that is free
            os.close(probe)
            resource.setrlimit(resource.RLIMIT_NOFILE, (probe, limits[1]))
            try:
                with pytest.raises(OSError, match="Too many open files"):
                    os.dup(0)
                # The servers live in this process, and need a descriptor each as well.
                answered = await two.post("/x", b"{}")
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            assert answered.status == 200
            await one.close()
            await two.close()

    run(main())
