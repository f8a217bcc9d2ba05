"""What a journal costs and survives: CPU a request, bytes a verdict, time to open, kill -9.

    python benchmarks/journal.py [--processes 12] [--rounds 16] [--records 1000000] [--kills 20] [--quick]

CPU: two engines in one process, one with a journal, given batches of 2,048 in turn; the CPU time of the
engine's thread for each batch, and of the journal's own thread for all of them. Two engines without a journal
differ by up to 4% in such a process, by where in memory their objects happen to be: so there are many
processes, and their median counts. Once with the short samples of the other benchmarks, once with long ones:
questions of 40 random words, eight answers of 120 to each. Bytes: long samples under a rubric, request, reply
and reason included. Opening: until every number is in memory, then the page's overview, then a sorted page of
a hundred records. Kills: a process writes as fast as it can and says what is on file; it is killed, and the
journal is read.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import json
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import table
from clients import JUDGE, MODEL, samples
from msgspec import structs
from simulated import simulators

from plaudit import Engine, Reply, Rubric, Sample, Usage
from plaudit.journal import JournalIndex, JournalWriter
from plaudit.journal.base import Exchange, Judged
from plaudit.journal.query import Query, overview
from plaudit.journal.writer import EVERY
from plaudit.simulator import PRESETS

GOAL = 1.10
WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
from journal import judged
from plaudit.journal import JournalWriter
writer, said, texts = JournalWriter(sys.argv[1]), 0, judged(512)
while True:
    for one in texts:
        writer.add(one)
    while writer.written < said + 512:
        pass
    said = writer.written
    print(said, flush=True)
"""


@functools.cache
def judged(count: int, seed: int = 1) -> list[Judged]:
    """Verdicts with texts like those of a training: eight answers to each question."""
    chance = random.Random(seed)
    words = ["".join(chance.choices("etaoinshrdlucmfw", k=chance.randint(2, 9))) for _ in range(4000)]
    weights = [1 / (place + 1) for place in range(len(words))]
    judge = Rubric("Is the answer correct and brief?", scale=(0, 10))
    found = []
    for number in range(count):
        if number % 8 == 0:
            question = " ".join(chance.choices(words, weights, k=40))
        answer, reason = (" ".join(chance.choices(words, weights, k=k)) for k in (120, 30))
        sample = Sample(question, answer, group=str(number // 8), extra={"training_step": number // 512})
        usage = Usage(700, 50, 0.0001)
        reply = Reply(f'{{"reason": "{reason}", "score": {number % 11}}}', "m", usage=usage)
        verdict = judge.parse(reply, sample)
        exchange = Exchange("http://judge/v1 m", reply.text, None, "stop", 0.8, 1, 700, 50, 0.0001)
        request = judge.render(sample)
        found.append(Judged(sample, judge, verdict, number // 512, number % 512, request, (exchange,), 0.1))  # type: ignore[arg-type]
    return found


class Cost(NamedTuple):
    """CPU microseconds a request."""

    without: float
    engine: float
    """With a journal: of the engine's thread."""
    process: float
    """With a journal: of all threads, the journal's own included."""


def long_samples(count: int, *, tag: str) -> list[Sample]:
    """So many samples with texts like those of a training; another tag, other samples."""
    return [
        replace(one, prompt=f"{one.prompt}{tag}", response=f"{one.response}{tag}")
        for one in (found.sample for found in judged(count))
    ]


def cpu(
    folder: Path, rounds: int, requests: int, *, is_journal_first: bool, samples: Callable[..., list[Sample]]
) -> Cost:
    """What a request costs without and with a journal: two engines in one process, batch by batch in turn.

    Of the batches of each the cheaper half counts: in the others another process was in the way.
    """
    costs: dict[bool, list[float]] = {one: [] for one in (is_journal_first, not is_journal_first)}
    with simulators([PRESETS["instant"]]) as (server,), contextlib.ExitStack() as stack:
        engines = {}
        for has_journal in costs:
            known = set(threading.enumerate())
            journal = folder / "cpu" if has_journal else None
            engine = Engine(server.url, model=MODEL, max_concurrent=64, cache=None, journal=journal)
            stack.callback(engine.close)
            engine.score(samples(requests, tag="warm-up"), JUDGE)
            engines[has_journal] = (
                engine,
                sorted(set(threading.enumerate()) - known, key=lambda one: one.name),
            )
        batches = [samples(requests, tag=f" {number}") for number in range(rounds)]
        gc.collect()
        gc.freeze()
        _, writer = engines[True]
        wrote = _spent(writer[1])
        for number, batch in enumerate(batches):
            for has_journal in sorted(costs, reverse=bool(number % 2)):
                engine, (thread, *_) = engines[has_journal]
                before = _spent(thread)
                engine.score(batch, JUDGE)
                costs[has_journal].append(1e6 * (_spent(thread) - before) / requests)
        time.sleep(2 * EVERY)
        wrote = 1e6 * (_spent(writer[1]) - wrote) / requests / rounds
    cheap = {one: statistics.mean(sorted(found)[: max(rounds // 2, 1)]) for one, found in costs.items()}
    return Cost(cheap[False], cheap[True], cheap[True] + wrote)


def cpu_of_processes(count: int, rounds: int, *, is_long: bool) -> list[Cost]:
    """The same, in each of several processes."""
    found = []
    for number in range(count):
        command = [sys.executable, __file__, "--cpu", str(number), "--rounds", str(rounds)]
        command += ["--long"] * is_long
        reply = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        found.append(Cost(*json.loads(reply.stdout)))
    return found


def _spent(thread: threading.Thread) -> float:
    """Seconds of CPU time of a thread."""
    assert thread.ident is not None
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))


def write(path: Path, count: int) -> None:
    """A journal of so many verdicts."""
    texts = judged(4096)
    writer = JournalWriter(path, max_mb=1e6)
    for start in range(0, count, len(texts)):
        for number, one in enumerate(texts[: count - start], start):
            extra = {"training_step": number // 512}
            sample = replace(one.sample, response=f"{one.sample.response} {start}", extra=extra)
            writer.add(structs.replace(one, sample=sample, batch=1 + number // 512))
        while writer.written < start:
            time.sleep(0.01)
    writer.close()


def opening(path: Path) -> tuple[float, float, float]:
    """Seconds to open a journal, to draw its overview, and to sort it and fetch a hundred records."""
    started = time.perf_counter()
    with JournalIndex(path) as index:
        opened = time.perf_counter()
        overview(index, Query().rows(index))
        drawn = time.perf_counter()
        list(index.records(Query(order="unit", is_descending=True).rows(index)[:100]))
        return opened - started, drawn - opened, time.perf_counter() - drawn


def kills(path: Path, count: int) -> tuple[int, int, int]:
    """Verdicts that were said to be on file, those that are, and places where the file is damaged."""
    said = 0
    for number in range(count):
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(Path(__file__).parent)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(2 + number % 4)]
        time.sleep(random.Random(number).uniform(0, 0.05))
        child.send_signal(signal.SIGKILL)
        lines += child.stdout.read().splitlines()
        child.wait()
        said += max(int(line) for line in lines if line.strip())
    with JournalIndex(path) as index:
        whole = sum(bool(record.text.response) for record in index.records())
        return said, whole, len(index.damage)


def cpu_rows(kind: str, costs: list[Cost], goal: str) -> list[tuple[str, str, str]]:
    """What these processes came to."""
    ratios = sorted(cost.process / cost.without for cost in costs)
    middle = Cost(*map(statistics.median, zip(*costs, strict=True)))
    return [
        (f"{kind}: CPU a request without, µs", f"{middle.without:.1f}", ""),
        ("with: the engine's thread, µs", f"{middle.engine:.1f}", ""),
        ("with: all threads, µs", f"{middle.process:.1f}", ""),
        (
            "ratio, all threads",
            f"{statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})",
            goal,
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=16, help="batches for each engine of a process")
    parser.add_argument("--cpu", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--long", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="small, to see that it works")
    options = parser.parse_args()
    if options.quick:
        options.processes, options.rounds, options.records, options.kills = 1, 1, 20_000, 3
    with tempfile.TemporaryDirectory(prefix="plaudit-bench-") as folder:
        if options.cpu is not None:
            kind = long_samples if options.long else samples
            is_first = options.cpu % 2 == 1
            print(
                json.dumps(cpu(Path(folder), options.rounds, 2048, is_journal_first=is_first, samples=kind))
            )
            return 0
        short, long = (
            cpu_of_processes(options.processes, options.rounds, is_long=is_long) for is_long in (False, True)
        )
        path = Path(folder, "journals", "journal")
        write(path, options.records)
        size = sum(file.stat().st_size for file in path.parent.iterdir()) / options.records
        seconds = opening(path)
        said, whole, damaged = kills(Path(folder, "killed"), options.kills)
    ratio = statistics.median(cost.process / cost.without for cost in short)
    rows = [
        *cpu_rows("short samples", short, f"{GOAL:.2f}"),
        *cpu_rows("long samples", long, ""),
        ("bytes a verdict", f"{size:,.0f}", ""),
        (f"seconds to open {options.records:,} verdicts", f"{seconds[0]:.2f}", ""),
        ("seconds for the page's overview of them", f"{seconds[1]:.2f}", ""),
        ("seconds to sort them and fetch a hundred", f"{seconds[2]:.2f}", ""),
        (f"acknowledged before {options.kills} kills", f"{said:,}", ""),
        ("whole in the file afterwards", f"{whole:,}", "no fewer"),
        ("damaged places", str(damaged), ""),
    ]
    print("$ python", *sys.argv)
    table.show("The journal", ("what", "measured", "goal"), rows)
    return 0 if options.quick or (ratio <= GOAL and whole >= said) else 1


if __name__ == "__main__":
    sys.exit(main())
