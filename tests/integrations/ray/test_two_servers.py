"""Two servers on one Ray engine: one limit, one paid call for equal questions to both, and no draw twice."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import ray
from loopback import INSTANT, JUDGE, loopback, taking
from until import PATIENCE_S

from plaudit.integrations.ray import SharedEngine
from plaudit.service.access import Access
from plaudit.service.app import Service, Shared
from plaudit.service.connections import serving
from plaudit.service.prometheus import Prometheus

pytestmark = pytest.mark.trainers
QUESTION = {"model": "m", "temperature": 0, "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PLAUDIT_HOME", str(tmp_path))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False, object_store_memory=80 << 20)
    yield
    ray.shutdown()


async def ask(session: aiohttp.ClientSession, url: str, body: object) -> tuple[int, str, bytes]:
    async with session.post(f"{url}/v1/chat/completions", json=body) as reply:
        return reply.status, reply.headers.get("x-plaudit-source", ""), await reply.read()


def server_on(engine: SharedEngine, name: str) -> Service:
    return Service(Shared(engine, JUDGE, models=("m",), name=name), Access(), Prometheus())


@pytest.mark.usefixtures("cluster")
def test_equal_requests_to_two_servers_are_one_call_and_one_limit_holds_for_both() -> None:
    async def main(one: SharedEngine, two: SharedEngine) -> list[tuple[int, str, bytes]]:
        async with (
            serving(server_on(one, "a:8400"), host="127.0.0.1", port=0) as first,
            serving(server_on(two, "b:8400"), host="127.0.0.1", port=0) as second,
            aiohttp.ClientSession() as session,
        ):
            urls = [first, second] * 4
            same = await asyncio.gather(*(ask(session, url, QUESTION) for url in urls))
            different = [(url, {**QUESTION, "seed": seed}) for seed, url in enumerate([first, second] * 6)]
            await asyncio.gather(*(ask(session, url, body) for url, body in different))
            drawn = await asyncio.gather(*(ask(session, url, {**QUESTION, "temperature": 1}) for url in urls))
            assert {(status, source) for status, source, _ in drawn} == {(200, "call")}
            stream = await ask(session, second, {**QUESTION, "stream": True})
            return [*same, stream]

    with loopback(INSTANT.replace(latency=taking(0.2))) as judge:
        options: Any = {"model": "m", "share": "serve", "max_concurrent": 3, "cache": "memory"}
        with SharedEngine(judge.url, **options) as one, SharedEngine(judge.url, **options) as two:
            *same, stream = asyncio.run(main(one, two))
        assert {status for status, _, _ in same} == {200}
        assert len({body for _, _, body in same}) == 1
        assert judge.stats.requests == 1 + 12 + len(same) + 1
        assert judge.stats.peak_in_flight <= 3
        assert stream[2].rstrip().endswith(b"[DONE]")


def test_a_cluster_that_is_not_there_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")  # not "auto", which would find another user's cluster
    for name in ("gcs_rpc_server_connect_timeout", "gcs_server_port_wait_time", "py_gcs_connect_timeout"):
        monkeypatch.setenv(f"RAY_{name}_s", "1")
    command = [
        sys.executable,
        "-m",
        "plaudit",
        "serve",
        "--ray",
        "--base-url",
        "http://127.0.0.1:9/v1",
        "--model",
        "m",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    said = "there is no Ray cluster at RAY_ADDRESS=127.0.0.1:9; start one with `ray start --head`"
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def started(url: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "plaudit", "serve", "--ray", "--port", "0", "--quiet", "--model", "m"]
    command += ["--base-url", url, "--max-concurrent", "3"]
    address = ray.get_runtime_context().gcs_address
    environment = {**os.environ, "RAY_ADDRESS": address, "OPENAI_API_KEY": "x"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def listening(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    said = next(line for line in process.stdout if "listening on " in line)
    return said.partition("listening on ")[2].strip()


@pytest.mark.usefixtures("cluster")
def test_two_servers_that_are_started_by_command_share_one_engine() -> None:
    async def main(urls: list[str]) -> list[list[tuple[int, str, bytes]]]:
        async with aiohttp.ClientSession() as session:
            return [
                await asyncio.gather(*(ask(session, url, {**QUESTION, **more}) for url in urls * 4))
                for more in ({}, {"temperature": 1})
            ]

    with (
        loopback(INSTANT.replace(latency=taking(0.2))) as judge,
        started(judge.url) as one,
        started(judge.url) as two,
    ):
        questions, draws = asyncio.run(main([listening(one), listening(two)]))
        for process in (one, two):
            process.terminate()
        assert (one.wait(PATIENCE_S), two.wait(PATIENCE_S)) == (0, 0)
    assert {status for status, _, _ in [*questions, *draws]} == {200}
    assert judge.stats.requests == 1 + len(draws)
    assert judge.stats.peak_in_flight <= 3
