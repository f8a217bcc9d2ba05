"""The ways in which people send a thousand prompts, each in a process of its own; plaudit is one of them.

    python benchmarks/clients.py aiohttp --url http://127.0.0.1:8010/v1 --samples 1024 --at-once 60

prints seconds, CPU seconds and the number of samples that came to nothing, as JSON. All of them send the same
requests and read a score out of each reply. With several URLs, peers take turns; plaudit decides.
`--speed` tells a peer how much faster than real time the server runs: its own waits shrink with it (those of
plaudit do not).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import uvloop
from workload import JUDGE, MODEL, requests_of, samples

from plaudit import Endpoint, Engine
from plaudit.transports.openai import OpenAI

KEY = "none"
ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Work:
    """What a client is given."""

    urls: tuple[str, ...]
    count: int
    at_once: int
    speed: float
    rpm: float
    tag: str

    @cached_property
    def bodies(self) -> list[tuple[str, dict[str, Any]]]:
        """The URL and the request of each sample: the very body that plaudit sends."""
        encode = OpenAI(model=MODEL).encode
        requests = requests_of(samples(self.count, tag=self.tag))
        return [
            (self.urls[number % len(self.urls)], json.loads(encode(request)[1]))
            for number, request in enumerate(requests)
        ]


Client = Callable[[Work], Callable[[], int]]
"""Prepares outside the measured time; what it returns does the work and counts the samples that failed."""


def is_judged(text: str) -> bool:
    """Whether a reply holds a score."""
    try:
        return isinstance(json.loads(text)["score"], int)
    except (ValueError, KeyError, TypeError):
        return False


# -- plaudit ----------------------------------------------------------------------------------------------


def plaudit(work: Work, *, client: str = "httptools", cache: str | None = None) -> Callable[[], int]:
    endpoints = [Endpoint(url, model=MODEL) for url in work.urls]
    engine = Engine(
        endpoints=endpoints, max_concurrent=work.at_once or None, cache=cache or None, client=client
    )
    batch = samples(work.count, tag=work.tag)

    def go() -> int:
        verdicts = engine.score(batch, JUDGE)
        return sum(verdict.score is None for verdict in verdicts)

    return go


def score_command(work: Work, *, client: str = "httptools") -> Callable[[], int]:
    """`plaudit score` from file to file, every verdict stored.

    In this process, its commands ready-made: neither importing nor declaring them counts.
    """
    from plaudit.cli import app
    from plaudit.cli.score import score

    assert score is not None  # loaded by now
    gc.freeze()  # as the command does
    folder = Path(tempfile.mkdtemp(dir=os.environ["PLAUDIT_HOME"]))
    lines = [{"prompt": one.prompt, "response": one.response} for one in samples(work.count, tag=work.tag)]
    (folder / "in.jsonl").write_bytes(b"\n".join(msgspec.json.encode(line) for line in lines))
    command = [
        "score",
        str(folder / "in.jsonl"),
        "-o",
        str(folder / "out.jsonl"),
        "--model",
        MODEL,
        "--quiet",
    ]
    command += ["--rubric", JUDGE.criteria, "--scale", *(str(end) for end in JUDGE.scale)]
    command += ["--max-concurrent", str(work.at_once)] if work.at_once else []
    for url in work.urls:
        command += ["--base-url", url]

    def go() -> int:
        os.environ["PLAUDIT_CLIENT"] = client
        app(command, standalone_mode=False)
        with (folder / "out.jsonl").open("rb") as out:
            return work.count - sum(b'"status":"ok"' in line for line in out)

    return go


def plaudit_stored(work: Work) -> Callable[[], int]:
    return plaudit(work, cache=str(Path(os.environ["PLAUDIT_HOME"]) / "verdicts.sqlite"))


# -- bare loops: a pool of workers over a deque, nothing else ----------------------------------------------


async def _pool(work: Work, post: Callable[[str, dict[str, Any]], Awaitable[str]]) -> int:
    left = deque(work.bodies)
    failed = 0

    async def worker() -> None:
        nonlocal failed
        while left:
            failed += not is_judged(await post(*left.popleft()))

    await asyncio.gather(*(worker() for _ in range(work.at_once)))
    return failed


def bare_aiohttp(work: Work) -> Callable[[], int]:
    import aiohttp

    async def main() -> int:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def post(url: str, body: dict[str, Any]) -> str:
                async with session.post(f"{url}/chat/completions", json=body) as response:
                    reply = await response.json()
                    return str(reply["choices"][0]["message"]["content"]) if response.status == 200 else ""

            return await _pool(work, post)

    return lambda: uvloop.run(main())


def bare_pyreqwest(work: Work) -> Callable[[], int]:
    from pyreqwest.client import ClientBuilder

    async def main() -> int:
        async with ClientBuilder().no_proxy().build() as client:

            async def post(url: str, body: dict[str, Any]) -> str:
                request = client.post(f"{url}/chat/completions").body_json(body).build()
                response = await request.send()
                reply = await response.json()
                return str(reply["choices"][0]["message"]["content"]) if response.status == 200 else ""

            return await _pool(work, post)

    return lambda: uvloop.run(main())


def bare_httptools(work: Work) -> Callable[[], int]:
    from plaudit.transports.httptools_client import HttptoolsClient

    async def main() -> int:
        clients = {url: HttptoolsClient(Endpoint(url)) for url in work.urls}

        async def post(url: str, body: dict[str, Any]) -> str:
            response = await clients[url].post("/chat/completions", json.dumps(body).encode())
            reply = json.loads(response.body)
            return str(reply["choices"][0]["message"]["content"]) if response.status == 200 else ""

        try:
            return await _pool(work, post)
        finally:
            await asyncio.gather(*(client.close() for client in clients.values()))

    return lambda: uvloop.run(main())


class _Socket(asyncio.Protocol):
    """As little HTTP as a reply of known length can be read with: what no client can do without."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.buffer = b""

    def ask(self, data: bytes) -> asyncio.Future[bytes]:
        self.waiter: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.transport.write(data)
        return self.waiter

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, _, body = self.buffer.partition(b"\r\n\r\n")
        length = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
        if len(body) >= length:
            self.buffer = b""
            self.waiter.set_result(body)


def bare_sockets(work: Work) -> Callable[[], int]:
    async def main() -> int:
        loop = asyncio.get_running_loop()
        free: list[_Socket] = []

        async def post(url: str, body: dict[str, Any]) -> str:
            parts = urlsplit(url)
            sent = json.dumps(body).encode()
            head = f"POST {parts.path}/chat/completions HTTP/1.1\r\nHost: {parts.netloc}\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(sent)}\r\n\r\n"
            if free:
                connection = free.pop()
            else:
                _, connection = await loop.create_connection(_Socket, parts.hostname, parts.port)
            reply = json.loads(await connection.ask(head.encode() + sent))
            free.append(connection)
            return str(reply["choices"][0]["message"]["content"])

        try:
            return await _pool(work, post)
        finally:
            for connection in free:
                connection.transport.abort()

    return lambda: uvloop.run(main())


# -- what peers do: so many at once, by a semaphore or by threads ------------------------------------------


async def _gathered(work: Work, ask: Callable[[str, dict[str, Any]], Awaitable[str]]) -> int:
    """A task for each sample, a semaphore, and whatever failed counted."""
    gate = asyncio.Semaphore(work.at_once)

    async def one(url: str, body: dict[str, Any]) -> bool:
        async with gate:
            try:
                return is_judged(await ask(url, body))
            except Exception:  # noqa: BLE001 - whatever the peer gave up on: the sample has no verdict
                return False

    return work.count - sum(await asyncio.gather(*(one(url, body) for url, body in work.bodies)))


def gather_aiohttp(work: Work) -> Callable[[], int]:
    import aiohttp

    async def main() -> int:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

            async def ask(url: str, body: dict[str, Any]) -> str:
                async with session.post(f"{url}/chat/completions", json=body) as response:
                    response.raise_for_status()
                    return str((await response.json())["choices"][0]["message"]["content"])

            return await _gathered(work, ask)

    return lambda: asyncio.run(main())


def gather_openai(work: Work) -> Callable[[], int]:
    import openai

    _hasten_openai(work.speed)

    async def main() -> int:
        clients = {url: openai.AsyncOpenAI(base_url=url, api_key=KEY) for url in work.urls}

        async def ask(url: str, body: dict[str, Any]) -> str:
            reply: Any = await clients[url].chat.completions.create(**body)
            return str(reply.choices[0].message.content)

        try:
            return await _gathered(work, ask)
        finally:
            await asyncio.gather(*(client.close() for client in clients.values()))

    return lambda: asyncio.run(main())


def gather_litellm(work: Work) -> Callable[[], int]:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else importing it goes out for prices
    import litellm

    _hasten_openai(work.speed)
    litellm.suppress_debug_info = True

    async def main() -> int:
        async def ask(url: str, body: dict[str, Any]) -> str:
            model = f"openai/{body['model']}"
            reply: Any = await litellm.acompletion(**{**body, "model": model}, api_base=url, api_key=KEY)
            return str(reply.choices[0].message.content)

        return await _gathered(work, ask)

    return lambda: asyncio.run(main())


def threads_openai(work: Work) -> Callable[[], int]:
    import openai

    _hasten_openai(work.speed)
    clients = {url: openai.OpenAI(base_url=url, api_key=KEY) for url in work.urls}

    def ask(item: tuple[str, dict[str, Any]]) -> bool:
        url, body = item
        try:
            return is_judged(str(clients[url].chat.completions.create(**body).choices[0].message.content))
        except openai.OpenAIError:
            return False

    def go() -> int:
        with ThreadPoolExecutor(work.at_once) as pool:
            return work.count - sum(pool.map(ask, work.bodies))

    return go


def _hasten_openai(speed: float) -> None:
    """Shorten the waits between the SDK's retries (two by default) as time is compressed."""
    import openai._base_client as base

    base.INITIAL_RETRY_DELAY /= speed
    base.MAX_RETRY_DELAY /= speed


def cookbook(work: Work) -> Callable[[], int]:
    """The parallel processor known from OpenAI's cookbook, written anew from its description.

    One loop hands out requests while the allowance for the minute lasts, which starts full and refills
    steadily. Nothing bounds how many are under way. A failed request goes to a retry queue, five attempts in
    all. After a rate-limit error nothing is handed out for 15 seconds.
    """
    import aiohttp

    attempts, pause, nap = 5, 15.0 / work.speed, 0.001

    async def main() -> int:
        per_second = work.rpm * work.speed / 60.0
        allowance, most = work.rpm, work.rpm
        left = deque((url, body, attempts) for url, body in work.bodies)
        under_way: set[asyncio.Task[None]] = set()
        paused_until = filled_at = time.monotonic()
        judged = 0

        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

            async def send(url: str, body: dict[str, Any], chances: int) -> None:
                nonlocal judged, paused_until
                async with session.post(f"{url}/chat/completions", json=body) as response:
                    reply = await response.json()
                if response.status == 200:
                    judged += is_judged(reply["choices"][0]["message"]["content"])
                    return
                if response.status == 429:
                    paused_until = time.monotonic() + pause
                if chances > 1:
                    left.append((url, body, chances - 1))

            while left or under_way:
                now = time.monotonic()
                allowance = min(most, allowance + (now - filled_at) * per_second)
                filled_at = now
                if left and allowance >= 1 and now >= paused_until:
                    allowance -= 1
                    task = asyncio.create_task(send(*left.popleft()))
                    under_way.add(task)
                    task.add_done_callback(under_way.discard)
                await asyncio.sleep(nap)
        return work.count - judged

    return lambda: asyncio.run(main())


CLIENTS: dict[str, Client] = {
    "plaudit": plaudit,
    "plaudit-aiohttp": partial(plaudit, client="aiohttp"),
    "plaudit-pyreqwest": partial(plaudit, client="pyreqwest"),
    "plaudit-stored": plaudit_stored,
    "score": score_command,
    "score-aiohttp": partial(score_command, client="aiohttp"),
    "score-pyreqwest": partial(score_command, client="pyreqwest"),
    "bare-aiohttp": bare_aiohttp,
    "bare-pyreqwest": bare_pyreqwest,
    "bare-httptools": bare_httptools,
    "bare-sockets": bare_sockets,
    "gather-aiohttp": gather_aiohttp,
    "gather-openai": gather_openai,
    "gather-litellm": gather_litellm,
    "threads-openai": threads_openai,
    "cookbook": cookbook,
}


class Ran(msgspec.Struct, frozen=True):
    """One client's work, done."""

    seconds: float
    cpu: float
    failed: int


def run_client(
    name: str,
    urls: Sequence[str],
    *,
    count: int,
    at_once: int = 0,
    speed: float = 1.0,
    rpm: float = 1500.0,
    warm_up: int = 0,
    warm_up_url: str | None = None,
    tree: Path = ROOT,
) -> Ran:
    """Run a client in a process of its own, with an empty home, and wait for it; `tree` says whose."""
    script = str(tree / "benchmarks" / "clients.py")
    command = [sys.executable, script, name, "--samples", str(count), "--at-once", str(at_once)]
    command += ["--speed", str(speed), "--rpm", str(rpm), "--warm-up", str(warm_up)]
    for url in urls:
        command += ["--url", url]
    if warm_up_url is not None:
        command += ["--warm-up-url", warm_up_url]
    with tempfile.TemporaryDirectory(prefix="plaudit-bench-") as home:
        environment = os.environ | {"PLAUDIT_HOME": home, "PYTHONPATH": str(tree / "src")}
        done = subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=True)
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=Ran)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("client", choices=CLIENTS)
    parser.add_argument("--url", action="append", required=True, help="a base URL, ending in /v1; repeatable")
    parser.add_argument("--samples", type=int, default=1024)
    parser.add_argument("--at-once", type=int, default=0, help="calls at once; 0: plaudit finds out")
    parser.add_argument("--speed", type=float, default=1.0, help="how much faster than real time all runs")
    parser.add_argument(
        "--rpm", type=float, default=1500.0, help="requests a minute, for the cookbook's loop"
    )
    parser.add_argument("--warm-up", type=int, default=0, help="samples sent before the clock starts")
    parser.add_argument("--warm-up-url", help="where to send them [default: to the URLs themselves]")
    options = parser.parse_args()
    client = CLIENTS[options.client]
    tags = count()

    def prepared(urls: Sequence[str], samples: int) -> Callable[[], int]:
        work = Work(
            urls=tuple(urls),
            count=samples,
            at_once=options.at_once,
            speed=options.speed,
            rpm=options.rpm,
            tag=f" ({next(tags)})",
        )
        assert work.bodies  # rendered now: peers get their prompts ready-made, plaudit renders its own
        return client(work)

    if options.warm_up:
        prepared([options.warm_up_url] if options.warm_up_url else options.url, options.warm_up)()
    go = prepared(options.url, options.samples)
    wall, cpu = time.perf_counter(), time.process_time()
    failed = go()
    ran = Ran(time.perf_counter() - wall, time.process_time() - cpu, failed)
    print(msgspec.json.encode(ran).decode(), flush=True)


if __name__ == "__main__":
    main()
