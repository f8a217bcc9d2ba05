"""Every benchmark in turn, and at the end which of them met its goals: this is `make bench`.

python benchmarks/all.py            about two hours on two quiet cores
python benchmarks/all.py --quick    smaller and fewer: that they work, not what they say
python benchmarks/all.py --trainers what needs torch, verl, TRL or Ray (not gpu_wait.py, which wants a GPU)
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
FULL = (
    ("makespan.py",),
    ("makespan.py", "--wild", "60"),
    ("weather.py", "--jobs", "2"),
    ("weather.py", "--table"),
    ("weather.py", "--real", "30"),
    ("soak.py",),
    ("soak.py", "--real"),
    ("makespan.py", "--real", "--speed", "5", "--seeds", "3"),
    ("tail.py",),
    ("limits.py",),
    ("cached.py",),
    ("cpu.py",),
    ("memory.py",),
    ("score_memory.py",),
    ("startup.py",),
    ("kill_resume.py",),
    ("journal.py",),
    ("page.py",),
    ("two_runs.py",),
    ("simulator.py",),
    ("peers.py",),
    ("serve.py",),
    ("serve.py", "jobs"),
    ("serve.py", "soak"),
    ("likelihood.py",),
    ("fuzz_parser.py", "--replies", "20000"),
    ("hostile_texts.py",),
)
QUICK = (
    ("makespan.py", "--seeds", "1"),
    ("weather.py", "--servers", "20"),
    ("soak.py", "--calls", "20000"),
    ("tail.py", "--seeds", "1"),
    ("limits.py", "--seeds", "1"),
    ("cached.py", "--entries", "50000"),
    ("cpu.py", "--quick"),
    ("score_memory.py", "--lines", "5000"),
    ("startup.py", "--quick"),
    ("journal.py", "--quick"),
    ("page.py", "--quick"),
    ("kill_resume.py", "--kills", "3", "--lines", "600"),
    ("two_runs.py", "--lines", "600"),
)
TRAINERS = (
    ("advantages.py",),
    ("verl_rate.py",),
    ("ray_engine.py",),
    ("trl_overlap.py", "--steps", "14"),
    ("mutation.py",),
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--trainers", action="store_true")
    options = parser.parse_args()
    commands = TRAINERS if options.trainers else QUICK if options.quick else FULL
    print(
        f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}: a busy machine measures its neighbours."
    )
    ends = []
    for script, *words in commands:
        name = " ".join((script, *words))
        print(f"\n=== {name} ===", flush=True)
        started = time.monotonic()
        status = subprocess.run([sys.executable, HERE / script, *words], check=False).returncode
        ends.append((name, status, time.monotonic() - started))
    print("\n=== all ===")
    for name, status, seconds in ends:
        print(f"{'met' if status == 0 else 'MISSED':>6}  {name} ({seconds:.0f} s)")
    return 1 if any(status for _, status, _ in ends) else 0


if __name__ == "__main__":
    sys.exit(main())
