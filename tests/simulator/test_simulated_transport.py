"""The simulated server as a transport, under virtual time."""

from __future__ import annotations

import asyncio

import pytest

from plaudit.errors import (
    EndpointRefused,
    EngineClosed,
    KeyRefused,
    ModelNotFound,
    PlauditError,
    RateLimited,
    RequestRefused,
    TransportFailed,
    Unreachable,
)
from plaudit.simulator import Fault, Queue, Rate, Reject, Scenario, SimulatedServer, SimulatedTransport
from plaudit.testing import run
from plaudit.types import ChatRequest, EmbedRequest, GenerateRequest, Reply, Request
from simulator.asking import FIXED


def chat(text: str) -> ChatRequest:
    return ChatRequest(({"role": "user", "content": text},))


async def send_all(transport: SimulatedTransport, requests: list[Request]) -> list[Reply | BaseException]:
    return await asyncio.gather(*map(transport.send, requests), return_exceptions=True)


async def timed(transport: SimulatedTransport, request: Request) -> tuple[float, Reply | PlauditError]:
    loop = asyncio.get_running_loop()
    start = loop.time()
    try:
        reply: Reply | PlauditError = await transport.send(request)
    except PlauditError as error:
        reply = error
    return round(loop.time() - start, 6), reply


def test_a_reply_takes_its_service_and_a_round_trip() -> None:
    async def main() -> None:
        took, reply = await timed(SimulatedTransport(Scenario(latency=FIXED)), chat("a"))
        assert took == 1.6
        assert isinstance(reply, Reply)
        assert reply.usage.completion_tokens == 100
        assert reply.model == "simulated"

    run(main())


def test_a_reject_takes_one_round_trip_and_carries_what_it_was_told() -> None:
    async def main() -> None:
        transport = SimulatedTransport(Scenario(latency=FIXED, capacity=Reject(slots=1, retry_after=2.0)))
        _, (took, error) = await asyncio.gather(timed(transport, chat("a")), timed(transport, chat("b")))
        assert took == 0.1
        assert isinstance(error, RateLimited)
        assert error.retry_after == 2.0

    run(main())


def test_a_rate_limited_server_tells_its_allowance_in_replies_and_rejects() -> None:
    async def main() -> None:
        scenario = Scenario(latency=FIXED, capacity=Rate(per_second=2.0, burst=3))
        results = await send_all(SimulatedTransport(scenario), [chat(str(i)) for i in range(4)])
        rates = [result.rate for result in results if isinstance(result, Reply)]
        assert [rate and (rate.limit_requests, rate.remaining_requests) for rate in rates] == [
            (3, 2),
            (3, 1),
            (3, 0),
        ]
        assert rates[2] is not None
        assert rates[2].reset_requests == 1.5
        assert isinstance(results[3], RateLimited)
        assert results[3].retry_after == 0.5

    run(main())


@pytest.mark.parametrize(
    ("fault", "error", "took"),
    [
        (Fault("error", status=500), TransportFailed, 0.1),
        (Fault("error", status=503), RateLimited, 0.1),
        (Fault("error", status=503, retry_after=3.0), RateLimited, 0.1),
        (Fault("error", status=429), RateLimited, 0.1),
        (Fault("error", status=408), TransportFailed, 0.1),
        (Fault("error", status=402), EndpointRefused, 0.1),
        (Fault("error", status=413), RequestRefused, 0.1),
        (Fault("down"), Unreachable, 0.1),
        (Fault("reset"), TransportFailed, 0.1),
        (Fault("cut"), TransportFailed, 1.6),
        (Fault("bad_json"), TransportFailed, 1.6),
        (Fault("html"), TransportFailed, 1.6),
    ],
)
def test_each_fault_raises_what_a_transport_over_http_would(
    fault: Fault, error: type[PlauditError], took: float
) -> None:
    async def main() -> None:
        seconds, result = await timed(SimulatedTransport(Scenario(latency=FIXED, faults=(fault,))), chat("a"))
        assert type(result) is error
        assert seconds == took
        assert getattr(result, "retry_after", None) == fault.retry_after

    run(main())


def test_a_wrong_key_an_unknown_model_and_a_long_prompt_are_refused() -> None:
    async def main() -> None:
        scenario = Scenario(api_key="right", max_context=10)
        with pytest.raises(KeyRefused):
            await SimulatedTransport(scenario, api_key="wrong").send(chat("a"))
        with pytest.raises(ModelNotFound):
            await SimulatedTransport(scenario, api_key="right", model="missing").send(chat("a"))
        with pytest.raises(RequestRefused, match="context length of 10"):
            await SimulatedTransport(scenario, api_key="right").send(chat("a" * 100))
        assert (await SimulatedTransport(scenario, api_key="right").send(chat("a"))).text

    run(main())


def test_a_hang_never_ends_and_its_slot_is_free_once_the_client_leaves() -> None:
    async def main() -> None:
        scenario = Scenario(latency=FIXED, capacity=Queue(slots=1), faults=(Fault("hang", requests=(0, 1)),))
        transport = SimulatedTransport(scenario)
        hanging = asyncio.create_task(transport.send(chat("a")))
        waiting = asyncio.create_task(timed(transport, chat("b")))
        await asyncio.sleep(100.0)
        assert not hanging.done()
        assert not waiting.done()
        hanging.cancel()
        took, reply = await waiting
        assert isinstance(reply, Reply)
        assert took == 101.6
        assert transport.server.stats.withdrawn == 1
        assert transport.server.stats.in_flight == 0

    run(main())


def test_closing_ends_the_calls_under_way_and_refuses_more() -> None:
    async def main() -> None:
        server = SimulatedServer(Scenario(latency=FIXED, faults=(Fault("hang"),)))
        transport, other = SimulatedTransport(server), SimulatedTransport(server)
        calls = [asyncio.create_task(transport.send(chat("a"))), asyncio.create_task(other.send(chat("b")))]
        await asyncio.sleep(1.0)
        await transport.close()
        await transport.close()
        await asyncio.sleep(0.0)
        assert [call.done() for call in calls] == [True, False]
        assert isinstance(calls[0].exception(), EngineClosed)
        assert (server.stats.withdrawn, server.stats.in_flight) == (1, 1)
        with pytest.raises(EngineClosed):
            await transport.send(chat("c"))

    run(main())


def test_two_transports_share_the_slots_of_one_server() -> None:
    async def main() -> None:
        server = SimulatedServer(Scenario(latency=FIXED, capacity=Reject(slots=3)))
        one, two = SimulatedTransport(server), SimulatedTransport(server)
        results = await asyncio.gather(
            send_all(one, [chat(f"a{i}") for i in range(3)]), send_all(two, [chat(f"b{i}") for i in range(3)])
        )
        assert [sum(isinstance(result, Reply) for result in part) for part in results] == [3, 0]
        assert server.stats.rejects == {429: 3}

    run(main())


def test_generation_and_embeddings_are_answered_too() -> None:
    async def main() -> None:
        transport = SimulatedTransport(Scenario(latency=FIXED))
        assert (await transport.send(GenerateRequest("Once"))).text
        reply = await transport.send(EmbedRequest(("a", "b", "a")))
        assert [len(vector) for vector in reply.vectors] == [64, 64, 64]
        assert reply.vectors[0] == reply.vectors[2] != reply.vectors[1]
        assert sum(x * x for x in reply.vectors[0]) == pytest.approx(1.0, abs=1e-4)

    run(main())


def test_a_server_in_service_becomes_another() -> None:
    async def main() -> None:
        transport = SimulatedTransport(Scenario(latency=FIXED))
        under_way = asyncio.create_task(timed(transport, chat("a")))
        await asyncio.sleep(0.5)
        transport.become(Scenario(latency=FIXED, faults=(Fault("error", status=503),)))
        _, refused = await timed(transport, chat("b"))
        assert isinstance(refused, RateLimited)
        took, reply = await under_way
        assert (took, type(reply)) == (1.6, Reply)

    run(main())
