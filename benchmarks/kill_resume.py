"""Kill `plaudit score` with -9 at random points, rerun it, and account for every verdict and every request.

    python benchmarks/kill_resume.py [--kills 20] [--lines 6000] [--seed 1]

After each kill the output is as it was before (never torn). Every line that a run had written for its output
is answered from the cache by the last run, with the same score. What a run had sent and not stored is what
was in flight: on the wire (at most the limit of calls at once) or just being stored. Only that is sent again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
from simulated import on_a_thread

from plaudit.caches import SqliteCache
from plaudit.simulator import Latency, Queue, Scenario, SimulatedServer

AT_ONCE = 64
SCENARIO = Scenario(
    latency=Latency(mean_tokens=10, sigma=0.3, seconds_per_token=0.005, first_token=0.02, round_trip=0.001),
    capacity=Queue(slots=AT_ONCE),
)


@dataclass
class Account:
    """What the kills did, and what went wrong."""

    in_flight: list[int] = field(default_factory=list)
    """For each kill, what was sent and not stored."""
    written: dict[int, float] = field(default_factory=dict)
    """Scores by line, as runs had them ready for the output when they were killed."""
    stored: int = 0
    troubles: list[str] = field(default_factory=list)


def start(folder: Path, url: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "plaudit", "score", "in.jsonl", "-o", "out.jsonl", "--base-url", url]
    command += ["--cache", "verdicts.sqlite", "--max-concurrent", str(AT_ONCE), "--quiet"]
    command += ["--summary", "summary.json"]
    return subprocess.Popen(command, env=os.environ | {"PLAUDIT_HOME": str(folder / "home")}, cwd=folder)


async def entries(path: Path) -> int:
    if not path.exists():
        return 0
    cache = SqliteCache(path)
    try:
        return (await cache.stats()).entries
    finally:
        await cache.close()


def connections(url: str) -> int:
    """Open connections of the server, which is a thread of this process."""
    open_ones = psutil.Process().net_connections("tcp")
    return sum(bool(one.raddr) and one.laddr.port == urlsplit(url).port for one in open_ones)


def whole_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a file that end; a kill may leave the last one cut short."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def kill_once(folder: Path, url: str, server: SimulatedServer, account: Account, *, after: int) -> None:
    """Start a run and kill it once the server has answered so many more requests."""
    answered, sent = server.stats.answered, server.stats.requests
    process = start(folder, url)
    while server.stats.answered - answered < after and process.poll() is None:
        time.sleep(0.001)
    process.kill()
    process.wait()
    time.sleep(0.1)  # what the dead process had sent may still have to be read
    while connections(url):
        time.sleep(0.01)
    kill = len(account.in_flight) + 1
    if (folder / "out.jsonl").exists():
        account.troubles.append(f"kill {kill}: there is an output though the run was cut short")
    stored = asyncio.run(entries(folder / "verdicts.sqlite"))
    lost = (server.stats.requests - sent) - (stored - account.stored)
    account.stored = stored
    account.in_flight.append(lost)
    if lost > 2 * AT_ONCE:
        account.troubles.append(f"kill {kill}: {lost} requests lost, with {AT_ONCE} calls at once")
    for line in whole_lines(folder / ".out.jsonl.plaudit"):
        if account.written.setdefault(line["id"], line["score"]) != line["score"]:
            account.troubles.append(f"line {line['id']} was scored twice, differently")


def check_end(folder: Path, server: SimulatedServer, account: Account, *, lines: int) -> int:
    """Look at the output of the run that was left alone; how many requests the kills cost."""
    scored = whole_lines(folder / "out.jsonl")
    if [line["id"] for line in scored] != list(range(lines)):
        account.troubles.append(f"the output has {len(scored)} lines of {lines}, or another order")
    for line in scored:
        known = account.written.get(line["id"])
        if known is not None and (line["judge"]["source"] != "cache" or line["score"] != known):
            account.troubles.append(f"line {line['id']} was acknowledged, then paid for again or changed")
    summary = json.loads((folder / "summary.json").read_text())
    again: int = server.stats.requests - lines - summary["retries"] - summary["hedges"]
    if again > sum(account.in_flight):
        account.troubles.append(f"{again} requests were sent again; {sum(account.in_flight)} were in flight")
    return again


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--lines", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    account = Account()
    with tempfile.TemporaryDirectory(prefix="kill-resume-") as name, on_a_thread(SCENARIO) as (url, server):
        folder = Path(name)
        questions = ({"id": n, "prompt": f"{n} + 1?", "response": f"{n + 1}"} for n in range(options.lines))
        (folder / "in.jsonl").write_text("".join(f"{json.dumps(question)}\n" for question in questions))
        for _ in range(options.kills):
            after = chance.randint(1, options.lines // (options.kills + 1))
            kill_once(folder, url, server, account, after=after)
        if start(folder, url).wait() != 0:
            account.troubles.append("the last run did not end with status 0")
        again = check_end(folder, server, account, lines=options.lines)
    print(
        f"kills {options.kills}, lines {options.lines:,}, acknowledged before a kill {len(account.written):,}"
    )
    print(f"in flight at a kill: most {max(account.in_flight)}, together {sum(account.in_flight)}")
    print(f"requests sent again: {again}")
    for trouble in account.troubles[:20]:
        print(f"TROUBLE: {trouble}")
    if not account.troubles:
        print("output never torn, every acknowledged verdict kept, only what was in flight paid again")
    return 2 if account.troubles else 0


if __name__ == "__main__":
    sys.exit(main())
