"""`plaudit.connect`: the engine of a server, used like one of this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from loopback import INSTANT, samples, taking
from service_client import JUDGE, client_of
from wire_server import Exchange, WireServer, answer, hang_up

import plaudit
from plaudit import Cause, ConfigError, EngineClosed, Pairwise, Status, Yes
from plaudit.config import Secret
from plaudit.service import remote_engine as service_client
from plaudit.service.access import Access
from plaudit.service.remote_engine import RemoteEngine

TOKEN = "correct-horse-battery"


@contextmanager
def server(**options: Any) -> Iterator[str]:
    """A server on a thread of its own."""
    found: list[tuple[str, Callable[[], object]]] = []
    ready = threading.Event()

    async def serve() -> None:
        async with client_of(**options) as client:
            stop = asyncio.Event()
            loop = asyncio.get_running_loop()
            found.append((client.url, lambda: loop.call_soon_threadsafe(stop.set)))
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    ready.wait()
    try:
        yield found[0][0]
    finally:
        found[0][1]()
        thread.join()


def test_verdicts_come_in_order_and_as_they_are_ready() -> None:
    with server() as url, plaudit.connect(url) as engine:
        verdicts = engine.score(samples(50), JUDGE)
        assert [verdict.status for verdict in verdicts] == [Status.OK] * 50
        pending = engine.submit(samples(50), JUDGE)
        again = dict(pending.as_completed())
        assert [again[index].score for index in range(50)] == [verdict.score for verdict in verdicts]
        assert pending.summary.by_source == {"cache": 50}


def test_async_callers_and_urls_of_the_openai_kind_are_served_too() -> None:
    with server() as url, plaudit.connect(f"{url}/v1/") as engine:
        assert len(asyncio.run(engine.ascore(samples(3), Yes()))) == 3


def test_a_judge_that_compares_gets_its_samples_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_client, "MOST_SAMPLES", 3)
    with server() as url, plaudit.connect(url) as engine:
        verdicts = engine.score(samples(8), Pairwise("Which is better?", against="group"))
        assert len(verdicts) == 8 and all(verdict.is_valid for verdict in verdicts)
        assert all(verdict.is_valid for verdict in engine.score(samples(8), JUDGE))


def test_a_judge_of_the_users_own_is_refused_before_anything_is_sent() -> None:
    class Own(Yes):
        pass

    with plaudit.connect("http://127.0.0.1:1") as engine, pytest.raises(ConfigError) as caught:
        engine.submit(samples(1), Own())
    assert caught.value.setting == "judge"


def test_a_wrong_token_fails_every_sample_and_the_right_one_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with server(access=Access(token=Secret(TOKEN))) as url:
        with plaudit.connect(url, token="wrong") as engine:
            assert {verdict.cause for verdict in engine.score(samples(2), JUDGE)} == {Cause.REFUSED_KEY}
        monkeypatch.setenv("PLAUDIT_TOKEN", TOKEN)
        with plaudit.connect(url) as engine:
            assert all(verdict.is_valid for verdict in engine.score(samples(2), JUDGE))
            assert TOKEN not in repr(engine)


def test_a_deadline_is_the_servers_and_a_timeout_is_kept_here() -> None:
    with server(scenario=INSTANT.replace(latency=taking(30.0))) as url, plaudit.connect(url) as engine:
        assert {verdict.cause for verdict in engine.score(samples(2), JUDGE, deadline=0.2)} == {
            Cause.DEADLINE
        }
        late = engine.submit(samples(2), JUDGE).result(timeout=0.1)
        assert {verdict.cause for verdict in late} == {Cause.DEADLINE}


def test_cancelling_and_closing_leave_no_sample_without_a_verdict() -> None:
    with server(scenario=INSTANT.replace(latency=taking(30.0))) as url:
        engine = plaudit.connect(url)
        cancelled, closed = engine.submit(samples(2), JUDGE), engine.submit(samples(2, "Rome"), JUDGE)
        cancelled.cancel()
        assert {verdict.cause for verdict in cancelled.result()} == {Cause.CANCELLED}
        engine.close()
        assert {verdict.cause for verdict in closed.result()} == {Cause.CLOSED}
        with pytest.raises(EngineClosed):
            engine.submit(samples(1), JUDGE)


def line(index: int) -> bytes:
    return b'{"index": %d, "score": 7, "status": "ok", "source": "call"}\n' % index


def test_after_a_connection_that_broke_only_the_rest_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_client, "FIRST_WAIT", 0.0)

    async def first_half(exchange: Exchange) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
        await exchange.write(head + line(0) + line(2) + b'{"index": 1, "sc')
        exchange.writer.close()

    async def main() -> None:
        async with WireServer(first_half, hang_up(), answer(200, line(0) + line(1))) as wire:
            with RemoteEngine(wire.url("ollama")) as engine:
                verdicts = await engine.ascore(samples(4), JUDGE)
            assert [verdict.score for verdict in verdicts] == [7.0] * 4
            assert [len(request.json()["samples"]) for request in wire.requests] == [4, 2, 2]

    asyncio.run(main())


def test_a_server_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_client, "FIRST_WAIT", 0.0)
    with plaudit.connect("http://127.0.0.1:1") as engine:
        (verdict,) = engine.score(samples(1), JUDGE)
    assert verdict.cause is Cause.UNREACHABLE and "127.0.0.1:1" in (verdict.error or "")


@pytest.mark.parametrize("url", ["127.0.0.1:8400", "ftp://x", ""])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plaudit.connect(url)
    assert caught.value.setting == "url"


@pytest.mark.parametrize("scheme", ["http", "ftp"])
def test_a_server_whose_url_has_a_password_is_refused_without_showing_it(scheme: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plaudit.connect(f"{scheme}://me:my-secret@127.0.0.1:9")
    assert caught.value.setting == "url"
    assert "my-secret" not in str(caught.value)
