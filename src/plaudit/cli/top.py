"""`plaudit top`: what a server or a viewer shows at /page/, as text in the terminal."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec
from rich.console import Console as Terminal
from rich.live import Live
from rich.text import Text

from plaudit.cli.console import bars, printable
from plaudit.cli.options import argument, command
from plaudit.config import shown_url, without_password
from plaudit.errors import ConfigError
from plaudit.service.access import TOKEN
from plaudit.settings import option
from plaudit.transports.http_errors import system_words

ANSWER_WITHIN = 10.0


@dataclass(frozen=True, kw_only=True)
class TopOptions:
    url: str = argument("URL", "URL of plaudit serve or plaudit view.")
    once: bool = option(False, "Show the numbers once, and exit.")


@command(TopOptions, epilog="Example:  plaudit top http://127.0.0.1:8400")
def top(options: TopOptions) -> None:
    """Watch a run in the terminal.

    Shows the panels of the page as text: queued calls, the load on each endpoint, failures, cost.
    """
    try:
        asyncio.run(_follow(options))
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        why = system_words(error) if isinstance(error, OSError) else str(error)
        raise ConfigError(
            f"{shown_url(options.url)} does not answer ({without_password(why) or type(error).__name__}); "
            "give the URL that plaudit serve or plaudit view printed"
        ) from error


async def _follow(options: TopOptions) -> None:
    url = options.url if "://" in options.url else f"http://{options.url}"
    base = url.split("/page")[0].rstrip("/") + "/page/api/"
    is_live = sys.stdout.isatty() and not options.once
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=ANSWER_WITHIN)
    token = os.environ.get(TOKEN, "").strip()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession(timeout=timeout, headers=headers) as session:
        with Live(console=Terminal(), auto_refresh=False) if is_live else nullcontext() as live:
            async with session.get(base + "events") as events:
                _check(events, shown_url(options.url))
                async for line in events.content:
                    if not line.startswith(b"data:"):
                        continue
                    news = msgspec.json.decode(line[5:])
                    async with session.get(base + "overview") as answer:
                        _check(answer, shown_url(options.url))
                        found = msgspec.json.decode(await answer.read())
                    shown = printable("\n".join(lines(news, found)))
                    if live is None:
                        print(shown)  # whole lines, for who searches them
                        return
                    live.update(Text(shown), refresh=True)


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
    yield from (f"look at    {one['text']}" for one in found["findings"])
    yield (
        f"waiting    {live['waiting']:,} samples, the oldest batch {live['oldest_s']:.0f} s, "
        f"{live['per_s']:.1f} verdicts/s{eta}  {bars(live['series']['waiting'])}"
    )
    for one in news["endpoints"]:
        state = "" if one["state"] == "closed" else f", {one['state']}"
        pace, limit = one["pace"][-1], one["limit"][-1]
        room = f" at a pace of {pace:.1f}/s" if pace else f" of {limit}" if limit else ""
        yield (
            f"endpoint   {one['name']}: {one['in_flight'][-1]} in flight{room}, "
            f"{one['ok']:,} answered, {one['rate_limited']:,} rate limited, {one['failed']:,} failed{state}  "
            f"{bars(one['in_flight'])}"
        )
    for cause in found["missing"]:
        said = f": {cause['error'][:80]}" if cause["error"] else ""
        yield f"lost       {cause['count']:,} {cause['cause']}{said}"
    spent = "no price"
    if money["spent"] is not None:
        spent = f"${money['spent']:.4f} spent, ${money['saved']:.4f} saved"
    if budget := news["budget"]:
        if budget["assumed"]:
            spent += f", ${budget['assumed']:.4f} set aside for calls without a reply"
        spent += f", ${budget['left']:.4f} of the budget left"
    yield f"cost       {spent}; {money['calls']:,} by calls, {money['without_call']:,} without"
    for where, name in (("in our queue", "queued_s"), ("at the endpoint", "latency_s")):
        if found[name]["p50"] is not None:
            ranks = ", ".join(f"{rank} {seconds:.2f} s" for rank, seconds in found[name].items())
            yield f"time       {where}: {ranks}"
    if score["mean"] is not None:
        means = [column["mean"] for column in found["trend"]["columns"]]
        yield f"score      mean {score['mean']:.3f}, spread {score['std']:.3f}  {bars(means, highest=1.0)}"
    for one in found["judges"]:
        yield f"judge      {one['judge']}: {', '.join(_signs(one))}"
    correlation = found["length"]["correlation"]
    if correlation is not None:
        yield f"length     correlation with the score {correlation:+.2f}"
    yield from (f"warning    {line}" for line in news["damage"])


def _signs(judge: dict[str, Any]) -> Iterator[str]:
    """What says whether a judge is reliable."""
    yield f"{judge['records']:,} verdicts"
    for status, word in (("unreadable", "unreadable"), ("refused", "declined"), ("flagged", "flagged")):
        if count := judge["by_status"].get(status):
            yield f"{count:,} {word}"
    if judge["groups"]:
        yield f"{judge['flat']} of {judge['groups']} groups without spread"
    if judge["gold_gap"] is not None:
        yield f"gold gap {judge['gold_gap']:+.2f}"
    if judge["canaries"]["seen"]:
        yield f"{judge['canaries']['passed']} of {judge['canaries']['seen']} canaries passed"
