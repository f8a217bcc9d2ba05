"""What `plaudit serve` adds to a request, beside a bare pass-through and LiteLLM's proxy.

python benchmarks/serve.py                                 # 64 and 512 clients
python benchmarks/serve.py --litellm /path/to/venv/bin/litellm
python benchmarks/serve.py jobs                            # eight jobs on a judge with 48 slots
python benchmarks/serve.py losses                          # 429 storms, resets, a dead backend of three
python benchmarks/serve.py soak --requests 1000000         # one call in ten fails: memory and files

One process each for the upstream (a fixed latency), for what is measured and for the clients. The added
latency is that through the server less that of the upstream asked directly by the same clients in the same
run. CPU is that of the measured process, over the requests. Each request is a question of its own, so that
no cache and no coalescing helps.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from statistics import median, quantiles

import psutil
from aiohttp import ClientSession, TCPConnector, web
from table import show

from plaudit._loop_thread import new_event_loop
from plaudit.config import Endpoint
from plaudit.transports.httptools_client import HttptoolsClient

LATENCY = 0.05
"""Seconds that the upstream takes."""
REPLY = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": '{"reason": "right and brief", "score": 8}'},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 400, "completion_tokens": 20, "total_tokens": 420},
    }
).encode()
KEY = "sk-for-this-benchmark-only-0123456789abcdef"
"""What clients send; LiteLLM's proxy does not start without one."""
TEXT = "A response of some length that a judge is asked about. " * 40


# -- processes ----------------------------------------------------------------------------------------------


def upstream(slots: int, faults: float, storm: float) -> None:
    """An endpoint with one answer, after a fixed time; with slots, after what the body says, or a 429.

    Of its answers, a share of `faults` are a 500, a 429 or a reset connection. A storm is so many seconds,
    of twice as many, in which everything is a 429.
    """
    busy = 0
    chance = Random(1)

    async def chat(request: web.Request) -> web.Response:
        nonlocal busy
        asked = await request.read()
        if faults and chance.random() < faults:
            if chance.random() < 0.3 and request.transport is not None:
                request.transport.abort()
            return web.json_response({"error": {"message": "a fault"}}, status=chance.choice((429, 500)))
        if storm and time.monotonic() % (2 * storm) < storm:
            return web.json_response(
                {"error": {"message": "slow down"}}, status=429, headers={"Retry-After": "1"}
            )
        if slots and busy >= slots:
            return web.json_response({"error": {"message": "too many requests"}}, status=429)
        busy += 1
        try:
            await asyncio.sleep(work_of(json.loads(asked)["seed"]) if slots else LATENCY)
        finally:
            busy -= 1
        return web.Response(body=REPLY, content_type="application/json")

    _serve(chat)


def bare(url: str) -> None:
    """A pass-through: aiohttp's server, aiohttp's client, nothing else."""
    session: ClientSession | None = None

    async def chat(request: web.Request) -> web.Response:
        nonlocal session
        session = session or ClientSession(connector=TCPConnector(limit=0))
        body = await request.read()
        async with session.post(
            f"{url}/chat/completions", data=body, headers={"Content-Type": "application/json"}
        ) as reply:
            return web.Response(body=await reply.read(), status=reply.status, content_type="application/json")

    _serve(chat)


def _serve(chat: object) -> None:
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/v1/chat/completions", chat)  # type: ignore[arg-type]

    async def main() -> None:
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
        print(f"listening on http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
        await asyncio.Event().wait()

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(main())


@contextmanager
def process(*command: str, **environment: str) -> Iterator[tuple[str, psutil.Process]]:
    """A server in a process of its own: its URL, from the line that says it, and the process."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
    assert child.stdout is not None
    try:
        for line in child.stdout:
            if "listening on " in line:
                yield line.partition("listening on ")[2].strip() + "/v1", psutil.Process(child.pid)
                break
    finally:
        child.terminate()
        child.wait()


@contextmanager
def litellm(command: str, url: str, folder: Path) -> Iterator[tuple[str, psutil.Process]]:
    """LiteLLM's proxy, as it is installed, with one model and nothing switched on."""
    config = folder / "litellm.yaml"
    config.write_text(
        "model_list:\n  - model_name: m\n"
        f"    litellm_params: {{model: openai/m, api_base: '{url}', api_key: x}}\n"
    )
    child = subprocess.Popen(
        [command, "--config", str(config), "--port", "8411", "--host", "127.0.0.1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "LITELLM_MASTER_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    )
    try:
        asyncio.run(_until_ready("http://127.0.0.1:8411/health/liveliness"))
        yield "http://127.0.0.1:8411/v1", psutil.Process(child.pid)
    finally:
        child.terminate()
        child.wait()


async def _until_ready(url: str) -> None:
    async with ClientSession() as session:
        for _ in range(600):
            try:
                async with session.get(url) as reply:
                    if reply.status == 200:
                        return
            except OSError:
                pass
            await asyncio.sleep(0.2)
    raise SystemExit(f"{url} did not come up")


# -- eight jobs ---------------------------------------------------------------------------------------------

JOBS = 8
REQUESTS = 300
"""Of each job; it has 64 under way."""
SLOTS = 48


def work_of(seed: int) -> float:
    """Seconds that a request takes: between 0.2 and 1, the same in every run."""
    return 0.2 + 0.8 * Random(seed).random() ** 2


def serving(folder: str, *targets: str) -> tuple[list[str], dict[str, str]]:
    """The command that serves what is at some URLs, and the variables it runs with."""
    where = ["--port", "0", "--model", "m", "--quiet"]
    for target in targets:
        where += ["--base-url", target]
    return [sys.executable, "-m", "plaudit", "serve", *where], {"PLAUDIT_HOME": folder, "OPENAI_API_KEY": "x"}


def jobs() -> None:
    """Eight jobs through one server, and with a client each that backs off like OpenAI's."""
    work = [work_of(seed) for seed in range(JOBS * REQUESTS)]
    ideal = sum(work) / SLOTS
    here = [sys.executable, __file__]
    rows = []
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        target, _ = stack.enter_context(process(*here, "upstream", "--slots", str(SLOTS)))
        serve, home = serving(folder, target)
        url, _ = stack.enter_context(process(*serve, "--cache", "off", **home))
        named = url.removesuffix("/v1") + "/run/{job}/v1"
        for name, at in (
            ("one plaudit serve, a run's name each", named),
            ("one plaudit serve, no names", url),
            ("a client each, backing off", target),
        ):
            seconds, shares, failed = asyncio.run(run_jobs(at))
            rows.append(
                (
                    name,
                    f"{seconds:.1f}",
                    f"{seconds / ideal:.2f}",
                    *(f"{min(one) * JOBS - 1:+.0%} to {max(one) * JOBS - 1:+.0%}" for one in shares),
                    str(failed),
                )
            )
    header = ("client", "seconds", "of the ideal", "shares, first half", "shares, middle half", "failed")
    show(f"{JOBS} jobs of {REQUESTS} requests on {SLOTS} slots (ideal: {ideal:.1f} s)", header, rows)


async def answered(http: HttptoolsClient, seed: int) -> bool:
    """Ask once, and again where the answer is 429, after waits like those of OpenAI's client."""
    body = {"model": "m", "seed": seed, "messages": [{"role": "user", "content": f"{seed}"}]}
    for attempt in range(40):
        answer = await http.post("/chat/completions", json.dumps(body).encode())
        if answer.status != 429:
            return answer.status == 200
        wait = min(0.5 * 2.0**attempt, 8.0)
        await asyncio.sleep(wait * (1 - 0.25 * Random(seed * 100 + attempt).random()))
    return False


async def run_jobs(url: str) -> tuple[float, tuple[list[float], list[float]], int]:
    """Makespan, each job's shares, and how many requests failed.

    The shares are of what was done when half of all was, in which those who came first are ahead, and of
    what was done between a quarter and three quarters, when all jobs are at work.
    """
    done = [0] * JOBS
    marks: list[list[int]] = []
    failed = 0

    async def job(number: int) -> None:
        room = asyncio.Semaphore(64)
        http = HttptoolsClient(Endpoint(url.format(job=number), model="m", api_key=KEY))

        async def one(seed: int) -> None:
            nonlocal failed
            async with room:
                failed += not await answered(http, seed)
            done[number] += 1
            if sum(done) >= JOBS * REQUESTS * (len(marks) + 1) / 4:
                marks.append(list(done))

        await asyncio.gather(*(one(number * REQUESTS + index) for index in range(REQUESTS)))
        await http.close()

    began = time.monotonic()
    await asyncio.gather(*(job(number) for number in range(JOBS)))
    seconds = time.monotonic() - began
    middle = [late - early for early, late in zip(marks[0], marks[2], strict=True)]
    return seconds, ([n / sum(marks[1]) for n in marks[1]], [n / sum(middle) for n in middle]), failed


# -- losses -------------------------------------------------------------------------------------------------

TROUBLE = {
    "429 for 5 s of every 10": (("--storm", "5"),),
    "one call in four: 429, 500 or reset": (("--faults", "0.25"),),
    "one backend of three is dead": ((), (), None),
}
"""What each backend is started with; None: nothing listens there."""
ASKED = 600
"""Requests, 32 at a time, each sent once by its client."""


def losses() -> None:
    """What clients that send once lose: through plaudit serve, and through the router of LiteLLM's proxy."""
    rows = []
    for trouble, backends in TROUBLE.items():
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            here = [sys.executable, __file__, "upstream"]
            urls = [
                stack.enter_context(process(*here, *options))[0] if options is not None else NOBODY
                for options in backends
            ]
            serve, home = serving(folder, *urls)
            url, _ = stack.enter_context(process(*serve, "--cache", "off", **home))
            http = HttptoolsClient(Endpoint(url, model="m", api_key=KEY))
            ways = {"plaudit serve": _through(http), "LiteLLM's router, 3 retries": _through_litellm(urls)}
            for name, ask_one in ways.items():
                seconds, lost = asyncio.run(_lost(ask_one))
                rows.append((trouble, name, str(ASKED), str(lost), f"{seconds:.1f}"))
    show("Requests that end without an answer", ("trouble", "through", "requests", "lost", "seconds"), rows)


NOBODY = "http://127.0.0.1:9/v1"


def _through(http: HttptoolsClient) -> Callable[[int], Awaitable[bool]]:
    async def ask_one(seed: int) -> bool:
        body = {"model": "m", "seed": seed, "messages": [{"role": "user", "content": f"{seed}"}]}
        return (await http.post("/chat/completions", json.dumps(body).encode())).status == 200

    return ask_one


def _through_litellm(urls: list[str]) -> Callable[[int], Awaitable[bool]]:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # or it asks the network when it is imported
    import litellm

    litellm.suppress_debug_info = True
    logging.getLogger("LiteLLM Router").setLevel(logging.CRITICAL)
    models = [
        {"model_name": "m", "litellm_params": {"model": "openai/m", "api_base": url, "api_key": "x"}}
        for url in urls
    ]
    router = litellm.Router(model_list=models, num_retries=3)

    async def ask_one(seed: int) -> bool:
        try:
            await router.acompletion("m", messages=[{"role": "user", "content": f"{seed}"}], seed=seed)
        except Exception:  # noqa: BLE001 - whatever it is, the answer is lost
            return False
        return True

    return ask_one


async def _lost(ask_one: Callable[[int], Awaitable[bool]]) -> tuple[float, int]:
    left = iter(range(ASKED))
    lost = 0

    async def client() -> None:
        nonlocal lost
        for seed in left:
            lost += not await ask_one(seed)

    began = time.monotonic()
    await asyncio.gather(*(client() for _ in range(32)))
    return time.monotonic() - began, lost


# -- soak ---------------------------------------------------------------------------------------------------


def soak(requests: int) -> None:
    """Many requests, one call in ten of which fails: nothing lost, memory and open files flat."""
    rows = []
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        target, _ = stack.enter_context(process(sys.executable, __file__, "upstream", "--faults", "0.1"))
        serve, home = serving(folder, target)
        url, server = stack.enter_context(process(*serve, **home))
        for part in range(10):
            failed = asyncio.run(_soak_part(url, range(part * requests // 10, (part + 1) * requests // 10)))
            memory = server.memory_info().rss / 1e6
            rows.append(
                (f"{(part + 1) * requests // 10:,}", str(failed), f"{memory:.0f}", str(server.num_fds()))
            )
            print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    show("Requests through one server", ("requests", "failed", "memory MB", "open files"), rows)


async def _soak_part(url: str, seeds: range) -> int:
    """How many of these requests had no answer. Half are draws; one client in a hundred goes away."""
    http = HttptoolsClient(Endpoint(url, model="m", api_key=KEY))
    left = iter(seeds)
    failed = 0

    async def client() -> None:
        nonlocal failed
        for seed in left:
            body: dict[str, object] = {"model": "m", "seed": seed, "messages": []}
            if seed % 2:
                body["temperature"] = 0
            asking = asyncio.create_task(http.post("/chat/completions", json.dumps(body).encode()))
            if seed % 100 == 0:
                await asyncio.sleep(LATENCY / 2)
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
            else:
                failed += (await asking).status != 200

    await asyncio.gather(*(client() for _ in range(128)))
    await http.close()
    return failed


# -- clients ------------------------------------------------------------------------------------------------


async def ask(url: str, *, clients: int, seconds: float, tag: str) -> tuple[list[float], int]:
    """Clients that ask one thing after another for so long: their latencies, and how many failed."""
    http = HttptoolsClient(Endpoint(url, model="m", api_key=KEY))
    latencies: list[float] = []
    failed = 0
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds

    async def client(number: int) -> None:
        nonlocal failed
        count = 0
        await asyncio.sleep(LATENCY * number / clients)
        while count == 0 or loop.time() < end:
            count += 1
            content = f"{tag} {number} {count} {TEXT}"
            body = {"model": "m", "temperature": 0, "messages": [{"role": "user", "content": content}]}
            began = loop.time()
            answer = await http.post("/chat/completions", json.dumps(body).encode())
            latencies.append(loop.time() - began)
            failed += answer.status != 200

    await asyncio.gather(*(client(number) for number in range(clients)))
    await http.close()
    return latencies, failed


def measured(
    url: str, server: psutil.Process | None, *, clients: int, seconds: float, tag: str
) -> tuple[list[float], int, float]:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(ask(url, clients=clients, seconds=1.0, tag=f"{tag} warm"))
        before = cpu_of(server)
        latencies, failed = runner.run(
            ask(url, clients=clients, seconds=seconds, tag=f"{tag} {time.time_ns()}")
        )
    return latencies, failed, (cpu_of(server) - before) / len(latencies)


def cpu_of(server: psutil.Process | None) -> float:
    if server is None:
        return 0.0
    family = [server, *server.children(recursive=True)]
    return sum(sum(one.cpu_times()[:2]) for one in family)


def overhead(args: argparse.Namespace) -> None:
    here = [sys.executable, __file__]
    rows = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        target, _ = stack.enter_context(process(*here, "upstream"))
        serve, home = serving(str(folder), target)
        servers: dict[str, tuple[str, psutil.Process | None]] = {
            "upstream alone": (target, None),
            "bare pass-through": stack.enter_context(process(*here, "bare", "--url", target)),
            "plaudit serve": stack.enter_context(process(*serve, **home)),
            "plaudit serve, no cache": stack.enter_context(process(*serve, "--cache", "off", **home)),
        }
        if args.litellm:
            servers["LiteLLM's proxy"] = stack.enter_context(litellm(args.litellm, target, folder))
        for clients in args.clients:
            rows += table_of(servers, clients=clients, seconds=args.seconds, rounds=args.rounds)
    header = (
        *("server", "clients", "requests/s", "added p50 ms", "added p99 ms"),
        *("CPU µs a request", "of the bare one", "failed"),
    )
    show("What a server adds to a request of 2 kB", header, rows)


def table_of(
    servers: dict[str, tuple[str, psutil.Process | None]], *, clients: int, seconds: float, rounds: int
) -> list[tuple[str, ...]]:
    """A line for each server. They take turns, so that whatever else the machine does meets them all."""
    latencies: dict[str, list[float]] = {name: [] for name in servers}
    cpu: dict[str, list[float]] = {name: [] for name in servers}
    failed = dict.fromkeys(servers, 0)
    for _ in range(rounds):
        for name, (url, server) in servers.items():
            took, lost, each = measured(url, server, clients=clients, seconds=seconds, tag=name)
            latencies[name] += took
            cpu[name].append(each)
            failed[name] += lost
    cuts = {name: quantiles(took, n=100) for name, took in latencies.items()}
    direct, *_ = cuts.values()
    bare_cpu = max(median(cpu["bare pass-through"]), 1e-9)  # in a short run, less than the clock can tell
    return [
        (
            name,
            str(clients),
            f"{len(latencies[name]) / seconds / rounds:,.0f}",
            f"{(cuts[name][49] - direct[49]) * 1e3:.1f}",
            f"{(cuts[name][98] - direct[98]) * 1e3:.1f}",
            f"{median(cpu[name]) * 1e6:,.0f}",
            f"{median(cpu[name]) / bare_cpu:.2f}",
            str(failed[name]),
        )
        for name in servers
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "what",
        nargs="?",
        default="overhead",
        choices=("overhead", "jobs", "losses", "soak", "upstream", "bare"),
    )
    parser.add_argument("--storm", type=float, default=0.0)
    parser.add_argument("--slots", type=int, default=0)
    parser.add_argument("--faults", type=float, default=0.0)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--url", default="")
    parser.add_argument("--litellm", default="")
    parser.add_argument("--clients", type=int, nargs="+", default=[64, 512])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if args.what == "upstream":
        upstream(args.slots, args.faults, args.storm)
    elif args.what == "bare":
        bare(args.url)
    elif args.what == "jobs":
        jobs()
    elif args.what == "losses":
        losses()
    elif args.what == "soak":
        soak(args.requests)
    else:
        overhead(args)


if __name__ == "__main__":
    main()
