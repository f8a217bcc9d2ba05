"""`plaudit simulate`: a simulated judge server, with the speed, the limits and the faults you choose."""

from __future__ import annotations

import asyncio
import math
import os
from dataclasses import dataclass

import click

from plaudit._loop_thread import new_event_loop
from plaudit.cli.console import Console, Stop, cannot_listen
from plaudit.cli.options import WholeNumber, command
from plaudit.errors import ConfigError
from plaudit.settings import option
from plaudit.simulator import PRESETS, SimulatedServer, load_scenario
from plaudit.simulator.http_server import serving
from plaudit.simulator.presets import DESCRIPTIONS


@dataclass(frozen=True, kw_only=True)
class SimulateOptions:
    scenario: str = option(
        "queue", f"One of {', '.join(PRESETS)}; or a .toml or .json file.", metavar="PRESET|FILE"
    )
    list_scenarios: bool = option(
        False, "List the scenarios and what each does, and exit.", flags=("--list",)
    )
    host: str = option("127.0.0.1", "Address to listen on.")
    port: int = option(8010, "Port to listen on; 0 for any free one.", type_=WholeNumber(0, 65535))
    seed: int | None = option(None, "Seed for lengths, answers and faults.")
    speed: float = option(1.0, "Simulated seconds per real second; times in headers shrink with it.")
    capacity: float | None = option(None, "Slots, requests per second or knee, instead of the scenario's.")
    latency: float | None = option(
        None, "Average duration of a call, in simulated seconds.", metavar="SECONDS"
    )
    api_key_env: str | None = option(None, "Refuse calls without the key in this variable.", metavar="VAR")


@command(SimulateOptions)
def simulate(options: SimulateOptions) -> None:
    """Start a simulated judge with the speed, limits and faults that you choose.

    It serves the OpenAI API under /v1, the Ollama API under /api, and statistics at /stats. A response that
    contains the words of the reference, or the result of the sum in the prompt, gets a high score, and others
    a low one. Without a reference or a sum, scores are random. The same text always gets the same score.

    Example:  plaudit simulate --scenario rejecting --port 8010 --speed 20

    Then:     plaudit score in.jsonl -o out.jsonl --base-url http://127.0.0.1:8010/v1 --model simulated
    """
    if options.list_scenarios:
        click.echo("\n".join(f"{name:14}{DESCRIPTIONS[name]}" for name in PRESETS))
        return
    chosen = load_scenario(options.scenario)
    for name in ("capacity", "latency"):
        if (value := getattr(options, name)) is not None and not 0 < value < math.inf:
            raise ConfigError("should be a number above 0", setting=name, value=value)
    if options.seed is not None:
        chosen = chosen.replace(seed=options.seed)
    if options.capacity is not None:
        chosen = chosen.with_capacity(options.capacity)
    if options.latency is not None:
        chosen = chosen.replace(latency=chosen.latency.scaled_to(options.latency))
    if (variable := options.api_key_env) is not None:
        if not (key := os.environ.get(variable)):
            how = "set it, or leave out --api-key-env to accept requests without a key"
            raise ConfigError(f"{variable} is not set; {how}")
        chosen = chosen.replace(api_key=key)
    if not options.speed > 0:
        raise ConfigError(
            "would stop time; use a number above 0, like 20", setting="speed", value=options.speed
        )
    label = f"scenario {options.scenario}, seed {chosen.seed}, speed {options.speed:g}"
    with Stop() as stop, asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_serve(SimulatedServer(chosen), options, label, stop))


async def _serve(server: SimulatedServer, options: SimulateOptions, label: str, stop: Stop) -> None:
    try:
        async with serving(server, host=options.host, port=options.port, speed=options.speed) as url:
            print(f"listening on {url} ({label})", flush=True)
            await asyncio.to_thread(stop.wake.wait)
    except OSError as error:
        raise cannot_listen(options.host, options.port, error) from error
    stats = server.stats
    Console().print(
        f"served {stats.requests:,} requests: {stats.answered:,} answered, "
        f"{sum(stats.rejects.values()):,} rejected, at most {stats.peak_in_flight:,} in flight"
    )
