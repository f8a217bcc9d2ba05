"""Every benchmark in turn, and at the end which of them met its goals: this is `make bench`.

python benchmarks/all.py            about two hours on two quiet cores
python benchmarks/all.py --quick    as small as can be and side by side: that they work, not what they say
python benchmarks/all.py --trainers what needs torch, verl, TRL or Ray (not gpu_wait.py, which wants a GPU)
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
FULL = (
    ("makespan.py",),
    ("makespan.py", "--wild", "60"),
    ("weather.py", "--jobs", "2"),
    ("weather.py", "--table"),
    ("weather.py", "--real", "30"),
    ("unusual.py",),
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
    ("page.py", "--quick"),
    ("cpu.py", "--quick", "--only", "plaudit", "plaudit-stored", "score", "score-pyreqwest"),
    (
        "peers.py",
        "--samples",
        "16",
        "--only",
        "rejecting",
        "--peers",
        "plaudit",
        "AsyncOpenAI",
        "--rate",
        "500",
    ),
    ("serve.py", "--seconds", "0.3", "--rounds", "1", "--clients", "16"),
    ("startup.py", "--quick"),
    ("two_runs.py", "--lines", "100", "--at-once", "4"),
    ("journal.py", "--quick"),
    ("makespan.py", "--seeds", "1"),
    ("serve.py", "soak", "--requests", "500"),
    ("memory.py", "--samples", "2000"),
    ("limits.py", "--seeds", "1"),
    ("score_memory.py", "--lines", "1000"),
    ("cached.py", "--entries", "2000"),
    ("tail.py", "--seeds", "1"),
    ("fuzz_parser.py", "--replies", "200"),
    ("hostile_texts.py", "--size", "1000"),
    ("simulator.py", "--requests", "500"),
    ("kill_resume.py", "--kills", "1", "--lines", "200"),
    ("soak.py", "--calls", "2000"),
    ("weather.py", "--servers", "2"),
    ("unusual.py", "--only", "1,6,11,13", "--samples", "64"),
    ("cache_lookup.py", "--entries", "2000"),
)
"""The longest first, because they run side by side."""
PROMISE = 2
"""Exit status of a benchmark that found a promise broken."""
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
    if options.quick:
        return quick()
    commands = TRAINERS if options.trainers else FULL
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


def quick() -> int:
    """Run the small ones, a few at once; show what a broken one said."""
    # Not as many as there are processors: a container may be given few of those that it sees.
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 4)) as pool:
        troubles = dict(zip(QUICK, pool.map(trouble, QUICK), strict=True))
    # A browser or a server may starve beside the others, and is given another chance alone; a promise is not.
    broken = [one for one, kind in troubles.items() if kind == "broken promise" or (kind and trouble(one))]
    print(f"\n{len(QUICK) - len(broken)} of {len(QUICK)} benchmarks work")
    for command in broken:
        print(f"BROKEN  {' '.join(command)}")
    return 1 if broken else 0


def trouble(command: tuple[str, ...]) -> str:
    """Run one; what is wrong with it, empty for nothing.

    A benchmark ends with 1 where it missed a goal, which a loaded machine may, and with 2 where a promise was
    broken, which none may.
    """
    name, started = " ".join(command), time.monotonic()
    script, *words = command
    try:
        done = subprocess.run(
            [sys.executable, HERE / script, *words], capture_output=True, text=True, check=False, timeout=3600
        )
        status, said = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        status, said = 124, str(error)
    is_broken = "Traceback (most recent call last)" in said or status not in (0, 1)
    text = f"=== {name}: {'BROKEN' if is_broken else 'works'} ({time.monotonic() - started:.0f} s)"
    print(f"{text}\n{said}" if is_broken else text, flush=True)
    return "" if not is_broken else "broken promise" if status == PROMISE else "broken"


if __name__ == "__main__":
    sys.exit(main())
