"""What a transport promises about connections: reused when whole, dropped when not, and never left behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

from until import PATIENCE_S
from wire_server import Step, WireServer, answer, gather, hang_up, reply, reply_and_close, stall

from plaudit.errors import EngineClosed, SendAgain, TransportFailed, Unreachable
from transport_contract.subject import ASK, HALF, Subject, outcome_of, persist


async def a_connection_is_used_again_and_again(subject: Subject) -> None:
    async with WireServer() as server, subject.to(server.url(subject.kind)) as transport:
        for _ in range(10):
            await transport.send(ASK)
        assert (len(server.requests), server.connections) == (10, 1)


async def a_connection_that_is_silent_is_probed(subject: Subject) -> None:
    async with WireServer(stall()) as server, subject.to(server.url(subject.kind)) as transport:
        call = asyncio.create_task(outcome_of(transport))
        await server.until(lambda: len(server.requests) == 1)
        assert set(_timers(server.port)) <= {"02"}, "no keepalive timer runs"
        call.cancel()


def _timers(port: int) -> list[str]:
    """Which timer runs for each connection to a port of this machine; none where only Linux would tell."""
    table = Path("/proc/net/tcp")
    lines = [line.split() for line in table.read_text().splitlines()] if table.exists() else []
    return [line[5][:2] for line in lines if line[2].endswith(f":{port:04X}") and line[3] == "01"]


async def nothing_in_the_client_limits_how_many_calls_run_at_once(subject: Subject) -> None:
    async with WireServer(gather(150)) as server, subject.to(server.url(subject.kind)) as transport:
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(transport.send(ASK) for _ in range(150)))
        assert server.connections == 150


async def a_reply_that_breaks_off_is_a_failed_transport(subject: Subject) -> None:
    for step in (
        hang_up(HALF),
        hang_up(HALF, reset=True),
        hang_up(b"HTTP/1.1 200 OK\r\nContent-Le"),
        hang_up(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"),
        hang_up(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd"),
        hang_up(),
        hang_up(reset=True),
    ):
        found = await subject.outcome(step)
        assert isinstance(found, TransportFailed) and not isinstance(found, Unreachable), found


async def an_idle_connection_that_the_server_closed_costs_no_request(subject: Subject) -> None:
    async with WireServer(reply_and_close()) as server, subject.to(server.url(subject.kind)) as transport:
        for _ in range(5):
            await persist(transport)
            await server.until(lambda: server.open_connections == 0)
        assert len(server.requests) == 5


async def a_request_lost_on_a_stale_connection_is_for_the_caller_to_send_again(subject: Subject) -> None:
    async with (
        WireServer(reply("1"), hang_up(), reply("2")) as server,
        subject.to(server.url(subject.kind)) as transport,
    ):
        assert (await transport.send(ASK)).text == "1"
        lost = await outcome_of(transport)
        assert isinstance(lost, SendAgain) and not lost.is_answered
        assert len(server.requests) == 2
        assert (await transport.send(ASK)).text == "2"


async def a_408_that_ends_an_idle_connection_is_no_answer_to_the_request(subject: Subject) -> None:
    async with (
        WireServer(reply("1"), answer(408, headers={"Connection": "close"}), reply("2")) as server,
        subject.to(server.url(subject.kind)) as transport,
    ):
        assert (await transport.send(ASK)).text == "1"
        assert isinstance(await outcome_of(transport), SendAgain)
        assert (await transport.send(ASK)).text == "2"


async def a_408_on_a_fresh_connection_is_a_failure(subject: Subject) -> None:
    found = await subject.outcome(answer(408))
    assert isinstance(found, TransportFailed)


async def a_request_lost_on_a_fresh_connection_is_not_sent_again(subject: Subject) -> None:
    async with WireServer(hang_up()) as server, subject.to(server.url(subject.kind)) as transport:
        assert isinstance(await outcome_of(transport), TransportFailed)
        assert len(server.requests) == 1


async def a_request_that_was_half_answered_is_not_sent_again(subject: Subject) -> None:
    async with (
        WireServer(reply(), hang_up(HALF)) as server,
        subject.to(server.url(subject.kind)) as transport,
    ):
        await transport.send(ASK)
        assert isinstance(await outcome_of(transport), TransportFailed)
        assert len(server.requests) == 2


async def a_call_cancelled_before_its_reply_leaves_no_connection_behind(subject: Subject) -> None:
    await _cancel_while(subject, stall())


async def a_call_cancelled_in_mid_reply_leaves_no_connection_behind(subject: Subject) -> None:
    await _cancel_while(subject, stall(HALF))


async def closing_frees_every_socket_and_may_be_done_twice(subject: Subject) -> None:
    async with WireServer(gather(8)) as server, subject.to(server.url(subject.kind)) as transport:
        await asyncio.gather(*(transport.send(ASK) for _ in range(8)))
        await transport.close()
        await server.until(lambda: server.open_connections == 0)
        await transport.close()
        assert isinstance(await outcome_of(transport), EngineClosed)
    async with subject.to("http://127.0.0.1:9") as unused:
        await unused.close()


async def closing_ends_the_calls_that_are_under_way(subject: Subject) -> None:
    async with (
        WireServer(stall()) as server,
        subject.to(server.url(subject.kind), timeout=1.0) as transport,
    ):
        calls = [asyncio.create_task(outcome_of(transport)) for _ in range(3)]
        await server.until(lambda: len(server.requests) == 3)
        await transport.close()
        assert {type(found) for found in await asyncio.gather(*calls)} == {EngineClosed}
        await server.until(lambda: server.open_connections == 0)
        assert len(server.requests) == 3


async def _cancel_while(subject: Subject, step: Step) -> None:
    """The cancelled call's connection is closed, soon if not at once, and serves no other call."""
    async with (
        WireServer(step, reply("after")) as server,
        subject.to(server.url(subject.kind), timeout=1.0) as transport,
    ):
        call = asyncio.create_task(transport.send(ASK))
        await server.until(lambda: len(server.requests) == 1)
        await asyncio.sleep(0.01)
        call.cancel()
        (outcome,) = await asyncio.gather(call, return_exceptions=True)
        assert isinstance(outcome, asyncio.CancelledError)
        assert (await transport.send(ASK)).text == "after"
        assert server.requests[1].connection == 2
        await server.until(lambda: server.open_connections == 1)
