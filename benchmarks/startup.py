"""How long `import plaudit`, `plaudit --help` and a small cached run take, beside Python and aiohttp.

    python benchmarks/startup.py [--quick]

Each command runs many times in turn with the others, and its shortest time counts; in processor seconds,
because a busy machine lengthens the wall time. Goals are multiples of `import aiohttp` in the same run, so
that they hold on a machine of any speed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from score_memory import write_lines
from simulated import simulators

from plaudit.simulator import PRESETS

LINES = 1000
EMPTY, YARDSTICK = "python -c pass", "import aiohttp"
GOALS = {"import plaudit": 0.5, "plaudit --help": 0.75, f"plaudit score, {LINES:,} cached lines": 2.0}
"""In units of `import aiohttp`. Where that takes 0.11 s, these are 0.06, 0.08 and 0.22 s."""


def measured(command: list[str], folder: Path) -> tuple[float, float]:
    """Run it once; processor seconds and wall seconds."""
    started = time.perf_counter()
    environment = os.environ | {"PLAUDIT_HOME": str(folder), "PYTHONPYCACHEPREFIX": str(folder / "pycache")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as installed: compiled by the first run
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, f"{command} ended with status {os.waitstatus_to_exitcode(status)}"
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - started


def shortest(commands: dict[str, list[str]], folder: Path, runs: int) -> dict[str, tuple[float, float]]:
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            times[name].append(measured(command, folder))
    return {name: (min(c for c, _ in found), min(w for _, w in found)) for name, found in times.items()}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="five runs of each in place of thirty")
    runs = 5 if parser.parse_args().quick else 30
    with tempfile.TemporaryDirectory(prefix="startup-") as name:
        folder = Path(name)
        write_lines(folder / "in.jsonl", LINES)
        score = [sys.executable, "-m", "plaudit", "score", "in.jsonl", "-o", "out.jsonl", "--quiet"]
        with simulators([PRESETS["instant"]]) as (judge,):
            score += ["--base-url", judge.url, "--model", "simulated", "--cache", "verdicts.sqlite"]
            measured(score, folder)
        commands = {
            EMPTY: [sys.executable, "-c", "pass"],
            YARDSTICK: [sys.executable, "-c", "import aiohttp"],
            "import plaudit": [sys.executable, "-c", "import plaudit"],
            "plaudit --help": [sys.executable, "-m", "plaudit", "--help"],
            f"plaudit score, {LINES:,} cached lines": score,
        }
        shortest(commands, folder, 1)
        found = shortest(commands, folder, runs)
    print(f"{'':36} {'CPU s':>7} {'wall s':>7} {'x pass':>7} {'x aiohttp':>9} {'goal':>6}")
    missed = []
    for label, (cpu, wall) in found.items():
        ratio = cpu / found[YARDSTICK][0]
        goal = GOALS.get(label)
        shown = "" if goal is None else f"{goal:6.2f}"
        print(f"{label:36} {cpu:7.3f} {wall:7.3f} {cpu / found[EMPTY][0]:7.1f} {ratio:9.2f} {shown:>6}")
        if goal is not None and ratio > goal:
            missed.append(label)
    print(f"MISSED: {', '.join(missed)}" if missed else "every goal met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
