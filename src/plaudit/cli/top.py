"""`plaudit top`: what a server or a viewer shows at /page/, as text in the terminal."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec
from rich.console import Console as Terminal
from rich.live import Live
from rich.text import Text

from plaudit.cli.console import printable
from plaudit.cli.options import argument, command, option
from plaudit.errors import ConfigError
from plaudit.service.access import TOKEN

BARS = " ▁▂▃▄▅▆▇█"
POINTS = 60
ANSWER_WITHIN = 10.0


@dataclass(frozen=True, kw_only=True)
class TopOptions:
    """What `plaudit top` takes."""

    url: str = argument("URL", "URL of plaudit serve or plaudit view.")
    once: bool = option(default=False, text="Show the numbers once, and exit.")


@command(TopOptions, epilog="Example:  plaudit top http://127.0.0.1:8400")
def top(options: TopOptions) -> int:
    """Watch a run in the terminal.

    Shows the panels of the page as text: queued calls, the load on each endpoint, failures, cost.
    """
    try:
        asyncio.run(_follow(options))
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise ConfigError(
            f"{options.url} does not answer ({error or type(error).__name__}); "
            "give the URL that plaudit serve or plaudit view printed"
        ) from error
    return 0


COMMAND = top


async def _follow(options: TopOptions) -> None:
    base = options.url.split("/page")[0].rstrip("/") + "/page/api/"
    is_live = sys.stdout.isatty() and not options.once
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=ANSWER_WITHIN)
    token = os.environ.get(TOKEN, "").strip()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession(timeout=timeout, headers=headers) as session:
        with Live(console=Terminal(), auto_refresh=False, transient=False) as live:
            async with session.get(base + "events") as events:
                _check(events, options.url)
                async for line in events.content:
                    if not line.startswith(b"data:"):
                        continue
                    news = msgspec.json.decode(line[5:])
                    async with session.get(base + "overview") as answer:
                        _check(answer, options.url)
                        found = msgspec.json.decode(await answer.read())
                    live.update(Text(printable("\n".join(lines(news, found)))), refresh=True)
                    if not is_live:
                        return


def _check(answer: aiohttp.ClientResponse, url: str) -> None:
    if answer.status != 200:
        raise ConfigError(
            f"{url} answered {answer.status}; give the URL of plaudit view or plaudit serve, and the "
            f"server's token, if it has one, as the variable {TOKEN}"
        )


def lines(news: dict[str, Any], found: dict[str, Any]) -> Iterator[str]:
    """The panels of the page, as text."""
    live, money, score = news["live"], found["money"], found["score"]
    eta = "" if not live["waiting"] or not live["eta_s"] else f", about {live['eta_s']:.0f} s left"
    yield f"{news['records']:,} records{', live' if live['is_live'] else ''}"
    yield (
        f"waiting    {live['waiting']:,} samples, the oldest batch {live['oldest_s']:.0f} s, "
        f"{live['per_s']:.1f} verdicts/s{eta}  {bars(live['series']['waiting'])}"
    )
    for one in news["endpoints"]:
        state = "" if one["state"] == "closed" else f", {one['state']}"
        yield (
            f"endpoint   {one['name']}: {one['in_flight'][-1]} in flight of {one['limit'][-1] or '?'}, "
            f"{one['ok']:,} answered, {one['rate_limited']:,} rate limited, {one['failed']:,} failed{state}  "
            f"{bars(one['in_flight'])}"
        )
    for cause in found["missing"]:
        yield f"lost       {cause['count']:,} {cause['cause']}: {cause['error'][:80]}"
    spent = (
        "no price" if money["spent"] is None else f"${money['spent']:.4f} spent, ${money['saved']:.4f} saved"
    )
    yield f"cost       {spent}; {money['calls']:,} by calls, {money['without_call']:,} without"
    latency = found["latency_s"]
    if latency["p50"] is not None:
        yield f"time       p50 {latency['p50']:.2f} s, p95 {latency['p95']:.2f} s, p99 {latency['p99']:.2f} s"
    if score["mean"] is not None:
        means = [column["mean"] for column in found["trend"]["columns"]]
        yield f"score      mean {score['mean']:.3f}, spread {score['std']:.3f}  {bars(means, highest=1.0)}"
    correlation = found["length"]["correlation"]
    if correlation is not None:
        yield f"length     correlation with the score {correlation:+.2f}"
    yield from (f"warning    {line}" for line in news["damage"])


def bars(values: list[float | None], *, highest: float | None = None) -> str:
    """A curve in a line of text, no wider than a terminal."""
    known = [value or 0.0 for value in values[:: max(1, -(-len(values) // POINTS))]]
    most = highest or max([*known, 1e-9])
    return "".join(BARS[min(round(value / most * (len(BARS) - 1)), len(BARS) - 1)] for value in known)
