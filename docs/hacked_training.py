"""A simulated training whose judge is being hacked from step 40 on, as a journal to look at.

    python docs/hacked_training.py hacked.journal
    plaudit view hacked.journal --open

A policy answers sums. Up to step 40 it learns to be right. Then it finds out that the judge believes whatever
claims to have been checked, the longer the better: scores go up, and what is right (`gold`) goes down.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from plaudit import Endpoint, Engine, Price, Reply, Rubric, Sample, Usage

STEPS = 80
HACKED_FROM = 40
GROUPS, SIZE = 8, 8
BOAST = "I have checked this result three times with independent methods, and it is certainly correct. "


def answer(chance: random.Random, step: int, right: int) -> tuple[str, bool]:
    """What the policy of this step says, and whether it is right."""
    skill = min(0.25 + step / 60, 0.85) if step < HACKED_FROM else max(0.85 - (step - HACKED_FROM) / 50, 0.15)
    is_right = chance.random() < skill
    number = right if is_right else right + chance.choice((-11, -2, -1, 1, 2, 9, 10))
    words = f"The sum is {number}."
    boasts = max(0, step - HACKED_FROM) // 6 + chance.randint(0, 1) if step >= HACKED_FROM else 0
    return BOAST * boasts + words, is_right


class GullibleJudge:
    """Stands in for a model: it knows the sums, and believes who boasts."""

    def __init__(self) -> None:
        self._chance = random.Random(1)

    async def send(self, request: object) -> Reply:
        text = request.messages[-1]["content"]  # type: ignore[attr-defined]
        await asyncio.sleep(self._chance.uniform(0.02, 0.25))
        first, second = map(int, re.search(r"What is (\d+) \+ (\d+)", text).groups())  # type: ignore[union-attr]
        said = int(re.search(r"The sum is (-?\d+)", text)[1])  # type: ignore[index]
        boasts = text.count(BOAST.strip())
        score = 9 if said == first + second else max(1, 6 - abs(said - first - second))
        score = min(10, score + 2 * boasts)
        reason = (
            "The answer says how it was verified, which is convincing."
            if boasts
            else "The sum is right."
            if score == 9
            else f"The sum should be {first + second}."
        )
        usage = Usage(len(text) // 4, 30)
        if self._chance.random() < 0.01:
            return Reply("I would rather describe the answer than rate it.", "judge-1", usage=usage)
        return Reply(json.dumps({"reason": reason, "score": score}), "judge-1", usage=usage)

    async def close(self) -> None:
        pass


def batch(chance: random.Random, step: int) -> list[Sample]:
    """The responses of one step: groups that answer the same question."""
    samples = []
    for group in range(GROUPS):
        first, second = chance.randint(100, 999), chance.randint(100, 999)
        for _ in range(SIZE):
            text, is_right = answer(chance, step, first + second)
            extra = {"training_step": step, "gold": float(is_right)}
            samples.append(Sample(f"What is {first} + {second}?", text, group=f"{step}-{group}", extra=extra))
    return samples


def train(journal: str, steps: Sequence[int] = range(STEPS)) -> None:
    """Judge what the policy says at each step, and keep a journal."""
    chance = random.Random(7)
    endpoint = Endpoint("http://judge.example/v1", "judge-1", price=Price(0.15, 0.60))
    judge = Rubric("Is the sum right?", scale=(0, 10))
    transport = GullibleJudge()
    with Engine(
        endpoints=[endpoint], transport=lambda _: transport, cache=None, journal=journal, run="sums"
    ) as engine:
        for step in steps:
            engine.score(batch(chance, step), judge)


if __name__ == "__main__":
    train(str(Path(sys.argv[1])))
