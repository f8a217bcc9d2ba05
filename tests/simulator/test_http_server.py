"""The simulated server over real sockets: every route, every fault, and the same answers as in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import msgspec
import pytest
import uvloop
from until import auntil

from plaudit.simulator import Fault, Latency, Queue, Rate, Reject, Scenario, SimulatedServer
from plaudit.simulator.http_server import serving
from plaudit.simulator.protocol import MAX_BODY

NONE = Latency(seconds_per_token=0.0, first_token=0.0, round_trip=0.0)
SWIFT = Latency(mean_tokens=10.0, sigma=0.5, seconds_per_token=0.0005, first_token=0.002, round_trip=0.001)
CHAT = "/v1/chat/completions"


def body(text: str = "a", **fields: Any) -> dict[str, Any]:
    return {"model": "simulated", "messages": [{"role": "user", "content": text}], **fields}


def over_http(
    scenario: Scenario | SimulatedServer,
    main: Callable[[aiohttp.ClientSession], Awaitable[None]],
    *,
    speed: float = 1.0,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
) -> None:
    """Run `main` with a client of a server that exists only meanwhile."""

    async def run_both() -> None:
        async with serving(scenario, speed=speed) as url, aiohttp.ClientSession(url) as client:
            await main(client)

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(run_both())


async def post(client: aiohttp.ClientSession, path: str, data: Any) -> tuple[int, Any]:
    async with client.post(path, json=data) as response:
        return response.status, await response.json()


async def get(client: aiohttp.ClientSession, path: str, **options: Any) -> tuple[int, Any]:
    async with client.get(path, **options) as response:
        return response.status, await response.json()


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_openais_routes_answer(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def main(client: aiohttp.ClientSession) -> None:
        status, reply = await post(client, CHAT, body())
        assert status == 200
        assert set(msgspec.json.decode(reply["choices"][0]["message"]["content"])) == {"reason", "score"}
        assert reply["usage"]["total_tokens"] > 1
        status, reply = await post(client, "/v1/completions", {"model": "m", "prompt": "Once"})
        assert (status, reply["object"], bool(reply["choices"][0]["text"])) == (200, "text_completion", True)
        embed = {"model": "m", "input": ["a", "b"], "dimensions": 3}
        status, reply = await post(client, "/v1/embeddings", embed)
        assert [len(item["embedding"]) for item in reply["data"]] == [3, 3]
        status, reply = await get(client, "/v1/models")
        assert [model["id"] for model in reply["data"]] == ["simulated"]

    over_http(Scenario(latency=NONE), main, loop_factory=loop_factory)


def test_ollamas_routes_answer() -> None:
    async def main(client: aiohttp.ClientSession) -> None:
        status, reply = await post(client, "/api/chat", body(stream=False, options={"num_predict": 7}))
        assert (status, reply["done"], reply["eval_count"] <= 7) == (200, True, True)
        status, reply = await post(client, "/api/generate", {"model": "m", "prompt": "x", "stream": False})
        assert (status, bool(reply["response"])) == (200, True)
        status, reply = await post(client, "/api/embed", {"model": "m", "input": "x"})
        assert len(reply["embeddings"][0]) == 64
        async with client.post("/api/chat", json=body()) as response:
            lines = [msgspec.json.decode(line) for line in (await response.read()).splitlines()]
        assert [line["done"] for line in lines] == [False, True]
        assert (await get(client, "/api/tags"))[1]["models"][0]["name"] == "simulated"
        assert (await get(client, "/api/version"))[1]["version"]
        assert (await post(client, "/api/show", {"model": "m"}))[0] == 200
        assert (await post(client, "/api/show", {"model": "missing"}))[0] == 404

    over_http(Scenario(latency=NONE), main)


def test_wrong_requests_get_the_errors_that_apis_give() -> None:
    async def main(client: aiohttp.ClientSession) -> None:
        key = {"Authorization": "Bearer right"}
        assert (await post(client, CHAT, body()))[0] == 401
        assert (await get(client, "/v1/models"))[0] == 401
        assert (await get(client, "/v1/models", headers=key))[0] == 200
        for status, path, data in [
            (404, CHAT, body(model="missing")),
            (404, "/v2/nothing", {}),
            (400, CHAT, {"model": "m"}),
            (400, CHAT, body("x" * 1000)),
            (200, CHAT, body()),
        ]:
            async with client.post(path, json=data, headers=key) as response:
                assert response.status == status
                assert status == 200 or (await response.json())["error"]["message"]
        async with client.post(CHAT, data=b"{", headers=key) as response:
            assert response.status == 400

    over_http(Scenario(latency=NONE, api_key="right", max_context=100), main)


def test_both_protocols_give_the_same_answer() -> None:
    async def main(client: aiohttp.ClientSession) -> None:
        _, openai = await post(client, CHAT, body("same"))
        _, ollama = await post(client, "/api/chat", body("same", stream=False))
        assert openai["choices"][0]["message"]["content"] == ollama["message"]["content"]
        assert openai["usage"]["completion_tokens"] == ollama["eval_count"]

    over_http(Scenario(latency=NONE), main)


def test_rejects_and_their_headers_reach_the_client() -> None:
    async def main(client: aiohttp.ClientSession) -> None:
        async with client.post(CHAT, json=body("a")) as response:
            assert response.headers["x-ratelimit-remaining-requests"] == "0"
            assert response.headers["x-ratelimit-reset-requests"] == "10s"
        async with client.post(CHAT, json=body("b")) as response:
            assert response.status == 429
            assert float(response.headers["retry-after"]) >= 9
            assert 9000 <= float(response.headers["retry-after-ms"]) <= 10000

    over_http(Scenario(latency=NONE, capacity=Rate(per_second=0.1, burst=1)), main)


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("kind", ["reset", "down", "cut"])
def test_resets_are_real(kind: Any, loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def main() -> None:
        async with serving(Scenario(latency=NONE, faults=(Fault(kind),))) as url:
            host, _, port = url.removeprefix("http://").partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            data = msgspec.json.encode(body())
            writer.write(
                b"POST %s HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (CHAT.encode(), len(data)) + data
            )
            got = b""
            with pytest.raises(ConnectionResetError):
                while chunk := await reader.read(100):
                    got += chunk
            writer.close()
            head, _, partial = got.partition(b"\r\n\r\n")
            if kind == "cut":
                assert head.startswith(b"HTTP/1.1 200 OK")
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                assert 0 < len(partial) < length
            else:
                assert got == b""

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())


def test_a_hang_is_real_and_ends_when_the_client_leaves() -> None:
    server = SimulatedServer(
        Scenario(latency=NONE, capacity=Queue(slots=1), faults=(Fault("hang", requests=(0, 1)),))
    )

    async def main(client: aiohttp.ClientSession) -> None:
        hanging = asyncio.create_task(post(client, CHAT, body("a")))
        await auntil(lambda: server.stats.in_flight == 1)
        hanging.cancel()
        assert (await post(client, CHAT, body("b")))[0] == 200
        assert (server.stats.withdrawn, server.stats.in_flight) == (1, 0)

    over_http(server, main)


@pytest.mark.parametrize(
    ("kind", "content_type", "is_json"),
    [
        ("bad_json", "application/json", False),
        ("html", "text/html", False),
        ("plain_text", "text/plain", True),
    ],
)
def test_garbage_arrives_with_status_200(kind: Any, content_type: str, is_json: bool) -> None:
    async def main(client: aiohttp.ClientSession) -> None:
        async with client.post(CHAT, json=body()) as response:
            assert (response.status, response.content_type) == (200, content_type)
            data = await response.read()
        if is_json:
            assert msgspec.json.decode(data)["choices"]
        else:
            with pytest.raises(msgspec.DecodeError):
                msgspec.json.decode(data)

    over_http(Scenario(latency=NONE, faults=(Fault(kind),)), main)


def test_no_more_are_served_at_once_than_there_are_slots() -> None:
    async def main(client: aiohttp.ClientSession) -> None:
        results = await asyncio.gather(*(post(client, CHAT, body(str(number))) for number in range(12)))
        statuses = sorted(status for status, _ in results)
        assert statuses.count(429) > 0
        _, stats = await get(client, "/stats")
        assert stats["requests"] == stats["unique"] == 12
        assert (stats["answered"], stats["rejects"]) == (statuses.count(200), {"429": statuses.count(429)})
        assert stats["peak_running"] == 4
        assert sum(stats["arrivals"].values()) == 12
        assert (await post(client, "/stats/reset", None))[1]["requests"] == 0

    latency = Latency(seconds_per_token=0.0, first_token=0.2, round_trip=0.0)
    over_http(Scenario(latency=latency, capacity=Reject(slots=4)), main)


def test_the_scenario_can_be_changed_live_and_never_shows_its_key() -> None:
    async def main(client: aiohttp.ClientSession) -> None:
        assert (await post(client, CHAT, body()))[0] == 200
        change = {"preset": "instant", "faults": [{"kind": "error", "status": 503}], "api_key": "secret"}
        status, shown = await post(client, "/scenario", change)
        assert (status, shown["api_key"]) == (200, "***")
        assert "secret" not in str(await get(client, "/scenario"))
        async with client.post(CHAT, json=body(), headers={"Authorization": "Bearer secret"}) as response:
            assert response.status == 503
        status, reply = await post(client, "/scenario", {"capacity": {"kind": "queue", "slots": 0}})
        assert status == 400
        assert "slots=0" in reply["error"]["message"]

    over_http(Scenario(latency=NONE), main)


def test_time_can_be_compressed() -> None:
    async def main(client: aiohttp.ClientSession) -> None:
        loop = asyncio.get_running_loop()
        start = loop.time()
        assert (await post(client, CHAT, body()))[0] == 200
        assert loop.time() - start < 5.0

    latency = Latency(mean_tokens=100, sigma=0.0, seconds_per_token=0.4, first_token=0.0)
    over_http(Scenario(latency=latency), main, speed=1000.0)


def test_pipelined_requests_are_answered_in_order_whatever_they_take() -> None:
    async def main() -> None:
        slow_first = Scenario(latency=SWIFT, faults=(Fault("slow", requests=(0, 1), factor=5.0),))
        async with serving(slow_first) as url:
            reader, writer = await asyncio.open_connection(*url.removeprefix("http://").split(":"))
            for model in ("one", "two"):
                data = msgspec.json.encode(body(model=model))
                writer.write(
                    b"POST %s HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (CHAT.encode(), len(data)) + data
                )
            writer.write(b"GET /stats HTTP/1.1\r\nConnection: close\r\n\r\n")
            replies = (await reader.read()).split(b"HTTP/1.1 200 OK")
            writer.close()
            assert [b'"model":"one"' in replies[1], b'"model":"two"' in replies[2]] == [True, True]
            assert b'"requests":2' in replies[3]

    asyncio.run(main())


def test_what_is_no_http_gets_an_answer_and_a_goodbye() -> None:
    async def main() -> None:
        async with serving(Scenario()) as url:
            for data, status in [
                (b"hello\r\n\r\n", b"400"),
                (b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY + 1), b"413"),
            ]:
                reader, writer = await asyncio.open_connection(*url.removeprefix("http://").split(":"))
                writer.write(data)
                assert (await reader.read()).startswith(b"HTTP/1.1 " + status)
                writer.close()

    asyncio.run(main())


def test_closing_leaves_no_connection_behind() -> None:
    async def main() -> None:
        server = SimulatedServer(Scenario(faults=(Fault("hang"),)))
        async with serving(server) as url, aiohttp.ClientSession(url) as client:
            waiting = asyncio.create_task(post(client, CHAT, body()))
            await auntil(lambda: server.stats.in_flight == 1)
            assert not waiting.done()
        with pytest.raises(aiohttp.ClientError):
            await waiting

    asyncio.run(main())
