"""What a transport promises about what is said: requests arrive whole, replies are read or turned down."""

from __future__ import annotations

import codecs
import gzip

from wire_server import Exchange, WireServer, answer, chunked, good_body, hang_up, reply, stall, zipped

from plaudit.errors import KeyRefused, RateLimited, RequestRefused, TransportFailed
from plaudit.types import ChatRequest, EmbedRequest, GenerateRequest, Reply, Usage
from transport_contract.subject import ASK, KEY, Subject


async def a_conversation_is_continued(subject: Subject) -> None:
    async with WireServer(reply("fine")) as server, subject.to(server.url(subject.kind)) as transport:
        found = await transport.send(ASK)
        assert found == Reply("fine", model="wire", usage=Usage(prompt_tokens=12, completion_tokens=3))
        sent = server.requests[0]
        assert (sent.method, sent.json()["model"]) == ("POST", "wire")
        assert sent.json()["messages"] == [{"role": "user", "content": "Is it right?"}]
        assert sent.headers["authorization"] == f"Bearer {KEY}"
        assert sent.headers["content-type"] == "application/json"


async def a_text_is_continued(subject: Subject) -> None:
    async with WireServer(reply("and so on")) as server, subject.to(server.url(subject.kind)) as transport:
        assert (await transport.send(GenerateRequest("Once"))).text == "and so on"
        assert server.requests[0].json()["prompt"] == "Once"


async def texts_are_embedded_in_their_order(subject: Subject) -> None:
    async with WireServer() as server, subject.to(server.url(subject.kind)) as transport:
        found = await transport.send(EmbedRequest(("a", "b", "c")))
        assert found.vectors == ((0.0, 0.5), (1.0, 0.5), (2.0, 0.5))


async def without_a_key_none_is_sent(subject: Subject) -> None:
    async with WireServer() as server, subject.to(server.url(subject.kind), key=None) as transport:
        await transport.send(ASK)
        assert "authorization" not in server.requests[0].headers


async def the_key_is_in_no_reply(subject: Subject) -> None:
    found = await subject.outcome(reply(f"I was sent {KEY}: 7"))
    assert isinstance(found, Reply)
    assert found.text == "I was sent ***: 7"


async def a_key_that_stands_for_none_is_left_in_replies(subject: Subject) -> None:
    async with (
        WireServer(reply("EMPTY")) as server,
        subject.to(server.url(subject.kind), key="EMPTY") as transport,
    ):
        assert (await transport.send(ASK)).text == "EMPTY"


async def a_large_request_arrives_whole(subject: Subject) -> None:
    text = "é" * 1_500_000
    async with WireServer() as server, subject.to(server.url(subject.kind)) as transport:
        await transport.send(ChatRequest(({"role": "user", "content": text},)))
        assert server.requests[0].json()["messages"][0]["content"] == text


async def a_lone_surrogate_is_refused_before_anything_is_sent(subject: Subject) -> None:
    async with WireServer() as server, subject.to(server.url(subject.kind)) as transport:
        try:
            await transport.send(ChatRequest(({"role": "user", "content": "bad \udc80"},)))
        except RequestRefused as error:
            assert "surrogate" in str(error)
        else:
            raise AssertionError("sent what is no text")
        assert server.requests == []


async def compressed_and_chunked_replies_are_read(subject: Subject) -> None:
    for step in (zipped("8"), chunked("8"), chunked("8", size=1)):
        found = await subject.outcome(step)
        assert isinstance(found, Reply)
        assert found.text == "8"


async def an_error_that_cannot_be_unpacked_keeps_its_status(subject: Subject) -> None:
    for encoding in ("br", "zstd", "gzip"):
        for status, meaning in ((401, KeyRefused), (429, RateLimited), (502, TransportFailed)):
            headers = {"Content-Encoding": encoding, "Retry-After": "2"}
            found = await subject.outcome(answer(status, b"\x8b\x00\x80", headers=headers))
            assert type(found) is meaning and f"answered {status}" in str(found), (encoding, found)


async def an_encoding_that_is_no_compression_is_passed_over(subject: Subject) -> None:
    for encoding in ("utf-8", "none", "identity"):
        found = await subject.outcome(reply("8", headers={"Content-Encoding": encoding}))
        assert isinstance(found, Reply) and found.text == "8"


async def rate_headers_come_with_the_reply(subject: Subject) -> None:
    found = await subject.outcome(
        reply(headers={"X-RateLimit-Remaining-Requests": "59", "X-RateLimit-Reset-Requests": "1s"})
    )
    assert isinstance(found, Reply)
    assert found.rate is not None
    assert (found.rate.remaining_requests, found.rate.reset_requests) == (59, 1.0)
    plain = await subject.outcome(reply())
    assert isinstance(plain, Reply)
    assert plain.rate is None


async def a_reply_with_a_byte_order_mark_is_read(subject: Subject) -> None:
    async def marked(exchange: Exchange) -> None:
        body = codecs.BOM_UTF8 + good_body(exchange.request, "7")
        await exchange.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    found = await subject.outcome(marked)
    assert isinstance(found, Reply) and found.text == "7"


async def what_is_not_a_reply_is_a_failed_transport(subject: Subject) -> None:
    for body, kind in (
        (b"{not json", "application/json"),
        (b"<html><title>Sign in</title></html>", "text/html"),
        (b'data: {"choices": []}\n\n', "text/event-stream"),
        (b"", "application/json"),
        (b"[]", "application/json"),
        (b"{}", "application/json"),
        (b'{"choices": []}', "application/json"),
        (b'{"choices": 7, "message": 7}', "application/json"),
        (b'{"model": "\xff"}', "application/json"),
        (b"[" * 100_000, "application/json"),
    ):
        found = await subject.outcome(answer(200, body, headers={"Content-Type": kind}))
        assert type(found) is TransportFailed, (body[:40], found)
        if "json" not in kind:
            assert kind in str(found)
    assert type(await subject.outcome(hang_up(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"))) is TransportFailed


async def an_oversized_reply_is_not_read_to_its_end(subject: Subject) -> None:
    async def endless(exchange: Exchange) -> None:
        await exchange.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(40):
            await exchange.write(b"100000\r\n" + b" " * 0x100000 + b"\r\n")
        raise AssertionError("it was read to its end")

    bomb = gzip.compress(b" " * (17 << 20), compresslevel=1)
    for step in (
        endless,
        stall(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n" + b" " * (17 << 20)),
        *(answer(status, bomb, headers={"Content-Encoding": "gzip"}) for status in (200, 400, 500)),
    ):
        found = await subject.outcome(step)
        assert isinstance(found, TransportFailed)
        assert "16 MiB" in str(found)
