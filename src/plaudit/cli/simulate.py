"""`plaudit simulate`: a judge server to practise on, with the speed, the limits and the faults you choose."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Annotated

import typer

from plaudit.cli.console import stderr
from plaudit.errors import ConfigError
from plaudit.simulator import PRESETS, Scenario, SimulatedServer, load_scenario
from plaudit.simulator.http import serving


def simulate(
    *,
    scenario: Annotated[
        str,
        typer.Option(metavar="PRESET|FILE", help=f"One of {', '.join(PRESETS)}; or a .toml or .json file."),
    ] = "queue",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any free one.")
    ] = 8010,
    seed: Annotated[int | None, typer.Option(help="Another seed: other lengths, answers and faults.")] = None,
    speed: Annotated[
        float, typer.Option(help="Simulated seconds per real second; times in headers shrink with it.")
    ] = 1.0,
    capacity: Annotated[
        float | None, typer.Option(help="Slots, requests a second, or knee, in place of the scenario's.")
    ] = None,
    latency: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="What an average call takes, in simulated seconds."),
    ] = None,
    api_key_env: Annotated[
        str | None, typer.Option(metavar="VAR", help="Refuse calls without the key in this variable.")
    ] = None,
) -> None:
    """Start a simulated judge: OpenAI's routes under /v1, Ollama's under /api, statistics at /stats.

    Example:  plaudit simulate --scenario rejecting --port 8010 --speed 20

    Then:     plaudit score in.jsonl -o out.jsonl --base-url http://127.0.0.1:8010/v1 --model simulated
    """
    chosen = load_scenario(scenario)
    if seed is not None:
        chosen = chosen.replace(seed=seed)
    if capacity is not None:
        chosen = chosen.with_capacity(capacity)
    if latency is not None:
        chosen = chosen.replace(latency=chosen.latency.scaled_to(latency))
    if api_key_env is not None:
        chosen = chosen.replace(api_key=_key_in(api_key_env))
    if not speed > 0:
        raise ConfigError(f"--speed {speed} stops time; use a number above 0, like 20")
    label = f"scenario {scenario}, seed {chosen.seed}, speed {speed:g}"
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(chosen, host=host, port=port, speed=speed, label=label))


async def _serve(scenario: Scenario, *, host: str, port: int, speed: float, label: str) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    server = SimulatedServer(scenario)
    try:
        async with serving(server, host=host, port=port, speed=speed) as url:
            print(f"listening on {url} ({label})", flush=True)
            await stopped.wait()
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host} port {port}: {os.strerror(error.errno) if error.errno else error}; "
            "choose another with --port, or --port 0 for any free one"
        ) from error
    stats = server.stats
    stderr().print(
        f"served {stats.requests:,} requests: {stats.answered:,} answered, "
        f"{sum(stats.rejects.values()):,} rejected, at most {stats.peak_in_flight:,} in flight"
    )


def _key_in(variable: str) -> str:
    key = os.environ.get(variable, "")
    if not key:
        raise ConfigError(f"{variable} is not set; set it, or leave --api-key-env out to let everybody in")
    return key


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None  # Windows has none: slower, and otherwise the same
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
