"""How much memory `plaudit score` takes for a large file, first from the judge, then from the cache.

    python benchmarks/score_memory.py [--lines 200000]

Each line is about 1 KB. The judge is simulated, in another process, and answers at once.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from simulated import simulators

from plaudit.simulator import PRESETS

LIMIT_MB = 400


def write_lines(path: Path, count: int) -> None:
    with path.open("w") as file:
        for number in range(count):
            line = {
                "id": number,
                "prompt": f"{number} + 1? {'x' * 300}",
                "response": f"{number}",
                "y": "y" * 600,
            }
            file.write(json.dumps(line) + "\n")


def measured(command: list[str], folder: Path) -> tuple[float, float]:
    """Run it; seconds, and the most memory it held at once, in MB."""
    started = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, env=os.environ | {"PLAUDIT_HOME": str(folder)})
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, f"plaudit score ended with status {os.waitstatus_to_exitcode(status)}"
    return time.monotonic() - started, usage.ru_maxrss / 1024


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=200_000)
    lines: int = parser.parse_args().lines
    most = 0.0
    with (
        tempfile.TemporaryDirectory(prefix="score-memory-") as name,
        simulators([PRESETS["instant"]]) as (judge,),
    ):
        folder = Path(name)
        write_lines(folder / "in.jsonl", lines)
        command = [sys.executable, "-m", "plaudit", "score", "in.jsonl", "-o", "out.jsonl"]
        command += ["--base-url", judge.url, "--model", "simulated", "--cache", "verdicts.sqlite", "--quiet"]
        for source in ("judge", "cache"):
            seconds, megabytes = measured(command, folder)
            most = max(most, megabytes)
            rate = lines / seconds
            print(f"{lines:,} lines from the {source}: {megabytes:.0f} MB, {rate:,.0f} lines a second")
    print(f"{'within' if most < LIMIT_MB else 'OVER'} {LIMIT_MB} MB")
    return 0 if most < LIMIT_MB else 1


if __name__ == "__main__":
    sys.exit(main())
