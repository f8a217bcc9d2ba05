"""What the same job costs when it runs twice at once on one verdict file, and when one of the two is killed.

    python benchmarks/two_runs.py [--lines 6000] [--at-once 32]

`plaudit score` over real sockets. The server has room for both runs; each sends so many calls at once.
Requests are counted at the server: those beyond one for each line were paid for twice. Goal: at most 1.1 for
each line (exit status 1 where it is missed, 2 where a line has no score). The time shows that two runs
share the work.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import table
from simulated import on_a_thread

from plaudit.simulator import Latency, Queue, Scenario, SimulatedServer

LATENCY = Latency(mean_tokens=10, sigma=0.3, seconds_per_token=0.01, first_token=0.05, round_trip=0.001)
GOAL = 1.1


@dataclass(frozen=True, slots=True)
class Ran:
    requests: int
    seconds: float
    lines: list[int]
    """With a score, in each output there is."""


def start(folder: Path, number: int, url: str, at_once: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "plaudit", "score", "in.jsonl", "-o", f"out{number}.jsonl", "--quiet"]
    command += ["--base-url", url, "--cache", "verdicts.sqlite", "--max-concurrent", str(at_once)]
    return subprocess.Popen(command, env=os.environ | {"PLAUDIT_HOME": str(folder / "home")}, cwd=folder)


def wait_until_answered(server: SimulatedServer, count: int) -> None:
    while server.stats.answered < count:
        time.sleep(0.01)


def run(lines: int, at_once: int, *, runs: int, kill: int | None = None) -> Ran:
    """Start runs together; one of them is hit by a signal when a third of the lines is answered."""
    scenario = Scenario(latency=LATENCY, capacity=Queue(slots=2 * at_once))
    with tempfile.TemporaryDirectory(prefix="two-runs-") as name, on_a_thread(scenario) as (url, server):
        folder = Path(name)
        questions = ({"id": n, "prompt": f"{n} + 1?", "response": f"{n + 1}"} for n in range(lines))
        (folder / "in.jsonl").write_text("".join(f"{json.dumps(question)}\n" for question in questions))
        began = time.perf_counter()
        processes = [start(folder, number, url, at_once) for number in range(runs)]
        if kill is not None:
            wait_until_answered(server, lines // 3)
            processes[0].send_signal(kill)
        ends = [process.wait() for process in processes[1 if kill == signal.SIGSTOP else 0 :]]
        seconds = time.perf_counter() - began
        if kill == signal.SIGSTOP:
            processes[0].kill()
            processes[0].wait()
        if any(end not in (0, -signal.SIGKILL) for end in ends):
            raise RuntimeError(f"a run ended with status {ends}")
        outputs = sorted(folder.glob("out?.jsonl"))
        scored = [[json.loads(line) for line in output.read_bytes().splitlines()] for output in outputs]
        counts = [sum(line["score"] is not None for line in output) for output in scored]
        return Ran(server.stats.requests, seconds, counts)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=6000)
    parser.add_argument("--at-once", type=int, default=32)
    options = parser.parse_args()
    lines = options.lines
    cases = (
        ("one run", 1, None),
        ("two at once", 2, None),
        ("two, one killed (-9)", 2, signal.SIGKILL),
        ("two, one stopped (-STOP)", 2, signal.SIGSTOP),
    )
    rows, misses, lost = [], 0, 0
    for name, runs, kill in cases:
        ran = run(lines, options.at_once, runs=runs, kill=kill)
        is_whole = set(ran.lines) == {lines}
        is_met = is_whole and ran.requests <= GOAL * lines
        misses, lost = misses + (not is_met), lost + (not is_whole)
        rows.append(
            (
                name,
                f"{ran.requests:,}",
                f"{ran.requests / lines:.3f}",
                f"{ran.seconds:.1f} s",
                " + ".join(f"{count:,}" for count in ran.lines),
                "yes" if is_met else "NO",
            )
        )
    table.show(
        f"{lines:,} lines, {options.at_once} calls at once in each run, one verdict file",
        ("", "requests", "for each line", "time", "lines scored", f"at most {GOAL}"),
        rows,
    )
    return 2 if lost else 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
