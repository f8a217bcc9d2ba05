"""The transport itself, over a client that plays a script under virtual time."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import deque

import pytest
from complaints import about

from plaudit.config import Endpoint
from plaudit.errors import ConfigError, EndpointRefused, RequestRefused, SendAgain, TransportFailed
from plaudit.testing import run
from plaudit.transports import HttpTransport, open_transport
from plaudit.transports.client import Answer, OnChunk, headers_for
from plaudit.transports.http import STALE_AFTER, STRAYS
from plaudit.transports.http_errors import Dropped
from plaudit.transports.openai import OpenAI
from plaudit.types import ChatRequest, RawRequest

ENDPOINT = Endpoint("http://localhost:8000/v1", model="m")
ASK = ChatRequest(({"role": "user", "content": "hm?"},), schema={"type": "object"}, top_logprobs=2)
GOOD = Answer(200, {}, b'{"choices": [{"message": {"content": "7"}}]}')
DROP = Dropped("gone")


def refusal(parameter: str) -> Answer:
    body = {"error": {"message": f"Unknown parameter: {parameter}", "param": parameter}}
    return Answer(400, {}, json.dumps(body).encode())


class ScriptedClient:
    """Answers each post with the next step, after as many seconds as `latency` says."""

    def __init__(self, *script: Answer | Exception, latency: float = 0.0) -> None:
        self._script = deque(script)
        self._latency = latency
        self.sent: list[dict[str, object]] = []

    async def post(self, path: str, body: bytes, on_chunk: OnChunk | None = None) -> Answer:
        self.sent.append(json.loads(body))
        step = self._script.popleft()
        await asyncio.sleep(self._latency)
        if isinstance(step, Exception):
            raise step
        return step

    async def close(self) -> None:
        pass


def transport_of(client: ScriptedClient) -> HttpTransport:
    return HttpTransport(ENDPOINT, OpenAI("m"), client)


def test_a_request_that_is_quoted_in_a_refusal_teaches_nothing() -> None:
    judged = "temperature is not supported, nor is response_format"
    ask = ChatRequest(({"role": "user", "content": f"Is this right? {judged}"},), schema={"type": "object"})
    quoting = Answer(400, {}, json.dumps({"error": {"message": f"cannot read: {judged}"}}).encode())
    client = ScriptedClient(quoting, GOOD)

    async def main() -> None:
        transport = transport_of(client)
        with pytest.raises(RequestRefused):
            await transport.send(ask)
        await transport.send(ask)

    asyncio.run(main())
    assert {"temperature", "response_format"} <= client.sent[1].keys()


def test_an_endpoint_may_teach_several_lessons_one_request_each() -> None:
    client = ScriptedClient(
        refusal("max_tokens"),
        refusal("temperature"),
        refusal("response_format"),
        refusal("logprobs"),
        GOOD,
        GOOD,
    )

    async def main() -> None:
        transport = transport_of(client)
        for lessons in range(1, 5):
            with pytest.raises(SendAgain):
                await transport.send(ASK)
            assert len(client.sent) == lessons
        await transport.send(ASK)
        await transport.send(ASK)

    run(main())
    assert len(client.sent) == 6
    assert client.sent[4] == client.sent[5]
    assert set(client.sent[5]) == {"model", "messages", "max_completion_tokens"}


def test_calls_in_flight_together_learn_a_lesson_once() -> None:
    client = ScriptedClient(*[refusal("temperature")] * 8, *[GOOD] * 8, latency=1.0)

    async def main() -> None:
        transport = transport_of(client)
        found = await asyncio.gather(*(transport.send(ASK) for _ in range(8)), return_exceptions=True)
        assert {type(one) for one in found} == {SendAgain}
        await asyncio.gather(*(transport.send(ASK) for _ in range(8)))

    run(main())
    assert ["temperature" in body for body in client.sent] == [True] * 8 + [False] * 8


def test_a_lesson_that_does_not_help_ends_in_a_refusal() -> None:
    client = ScriptedClient(refusal("temperature"), refusal("temperature"))
    transport = transport_of(client)
    with pytest.raises(SendAgain, match="Unknown parameter: temperature"):
        run(transport.send(ASK))
    with pytest.raises(RequestRefused, match="Unknown parameter: temperature"):
        run(transport.send(ASK))


def test_a_connection_lost_long_after_sending_was_not_stale() -> None:
    async def main(client: ScriptedClient) -> None:
        transport = transport_of(client)
        await transport.send(ASK)
        await transport.send(ASK)

    prompt = ScriptedClient(GOOD, DROP, latency=STALE_AFTER / 2)
    with pytest.raises(SendAgain):
        run(main(prompt))
    late = ScriptedClient(GOOD, DROP, latency=STALE_AFTER * 2)
    with pytest.raises(TransportFailed):
        run(main(late))


def test_more_calls_than_ever_before_need_a_fresh_connection_which_cannot_be_stale() -> None:
    client = ScriptedClient(GOOD, GOOD, DROP, GOOD, latency=0.1)

    async def main() -> None:
        transport = transport_of(client)
        await transport.send(ASK)
        first, second = await asyncio.gather(transport.send(ASK), transport.send(ASK), return_exceptions=True)
        assert not isinstance(first, BaseException)
        assert isinstance(second, TransportFailed)

    run(main())
    assert len(client.sent) == 3


@pytest.mark.parametrize("is_kept_alive", [True, False])
def test_a_client_that_knows_whether_the_connection_was_fresh_is_believed(is_kept_alive: bool) -> None:
    async def main() -> None:
        drop = Dropped("gone", is_kept_alive=is_kept_alive)
        transport = transport_of(ScriptedClient(GOOD, drop))
        await transport.send(ASK)
        with pytest.raises(SendAgain if is_kept_alive else Dropped):
            await transport.send(ASK)

    run(main())


def test_an_unknown_client_is_named() -> None:
    with pytest.raises(ConfigError, check=about("client", "curl")):
        open_transport(ENDPOINT, "curl")


def test_a_client_that_is_not_installed_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plaudit.transports.pyreqwest_client", None)
    with pytest.raises(ConfigError, check=about("client")):
        open_transport(ENDPOINT, "pyreqwest")


@pytest.mark.parametrize("key", ["sk-naïve", "sk-two\nlines"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(ConfigError, check=about("api_key")) as caught:
        open_transport(Endpoint("http://localhost:8000/v1", api_key=key))
    assert key not in str(caught.value)


def test_blanks_around_a_key_are_no_part_of_it() -> None:
    headers = headers_for(Endpoint("http://localhost:8000/v1", api_key=" sk-copied\n"))
    assert headers["Authorization"] == "Bearer sk-copied"


def test_a_server_that_only_streams_is_given_up() -> None:
    stream = Answer(200, {"content-type": "text/event-stream"}, b'data: {"choices": []}\n\ndata: [DONE]\n\n')

    async def main() -> None:
        transport = transport_of(ScriptedClient(stream, stream, stream))
        for _ in range(2):
            with pytest.raises(TransportFailed, match="though no stream was asked for"):
                await transport.send(ASK)
        with pytest.raises(EndpointRefused, match="answers with streams"):
            await transport.send(ASK)

    run(main())


def test_a_server_whose_streams_break_off_is_not_given_up_where_a_client_asked_for_streams() -> None:
    broken = Answer(200, {"content-type": "text/event-stream"}, b'data: {"choices": []}\n\ndata: {"cho')
    ask = RawRequest("/chat/completions", b'{"stream": true}', b"1", max_tokens=16)

    async def main() -> None:
        transport = transport_of(ScriptedClient(*[broken] * (STRAYS + 1)))
        for _ in range(STRAYS + 1):
            with pytest.raises(TransportFailed, match="the stream breaks off"):
                await transport.send(ask)

    run(main())


def test_a_url_that_only_gives_web_pages_is_no_api() -> None:
    page = Answer(200, {"content-type": "text/html"}, b"\n<!doctype html><html></html>")

    async def main() -> None:
        transport = transport_of(ScriptedClient(page, page, page))
        for _ in range(2):  # which may be a gateway's
            with pytest.raises(TransportFailed, match="the reply is text/html"):
                await transport.send(ASK)
        with pytest.raises(EndpointRefused, match="http://localhost:8000/v1 is the base URL of an API"):
            await transport.send(ASK)
        transport = transport_of(ScriptedClient(GOOD, *[page] * 5))
        await transport.send(ASK)
        for _ in range(5):
            with pytest.raises(TransportFailed):
                await transport.send(ASK)

    run(main())
