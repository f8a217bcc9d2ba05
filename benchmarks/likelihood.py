"""How often the embedded model prefers the right answer: by likelihood, and asked by `Yes`.

    python benchmarks/likelihood.py

Three sets: the demo's pairs, those of the audit, and forty that were written afterwards.
Goal: 28 of the demo's 32, and more than a question (`Yes`) to the same model gets on every set.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from table import show

from plaudit import Engine, Sample
from plaudit.judges import Judge, Likelihood, Yes
from plaudit.local import LocalServer, ensure_packaged_model

ROOT = Path(__file__).parent.parent
GOAL = 28
Pair = tuple[str, str, str]
"""Question, right answer, wrong answer."""


def demo_pairs() -> list[Pair]:
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for line in _lines(ROOT / "examples" / "data" / "answers.jsonl"):
        found.setdefault(line["group"], {})[line["id"].rpartition("/")[2]] = (
            line["prompt"],
            line["response"],
        )
    return [(*pair["right"], pair["wrong"][1]) for pair in found.values()]


def pairs_in(path: Path) -> list[Pair]:
    return [(line["prompt"], line["chosen"], line["rejected"]) for line in _lines(path)]


def _lines(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def won(engine: Engine, pairs: Sequence[Pair], judge: Judge) -> tuple[int, float]:
    """How often the right answer scored higher, and the seconds it took."""
    samples = [Sample(question, answer) for question, *answers in pairs for answer in answers]
    started = time.perf_counter()
    scores = [verdict.score for verdict in engine.score(samples, judge)]
    seconds = time.perf_counter() - started
    both = zip(scores[::2], scores[1::2], strict=True)
    return sum(right is not None and wrong is not None and right > wrong for right, wrong in both), seconds


def main() -> int:
    sets = {
        "demo": demo_pairs(),
        "audit": pairs_in(ROOT / "examples" / "data" / "pairs.jsonl"),
        "fresh": pairs_in(ROOT / "benchmarks" / "data" / "fresh_pairs.jsonl"),
    }
    rows, is_met = [], True
    with (
        LocalServer(ensure_packaged_model(lambda _: True)) as server,
        Engine(endpoints=[server.endpoint], cache=None) as engine,
    ):
        for name, pairs in sets.items():
            likely, likely_s = won(engine, pairs, Likelihood())
            asked, asked_s = won(engine, pairs, Yes("Is the response a correct answer to the task?"))
            rows.append([name, str(len(pairs)), f"{likely} ({likely_s:.0f} s)", f"{asked} ({asked_s:.0f} s)"])
            is_met &= likely > asked and (name != "demo" or likely >= GOAL)
    show("Right beats wrong, SmolLM2-135M", ["pairs", "of", "Likelihood", "Yes"], rows)
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
