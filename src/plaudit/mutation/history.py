"""What a training has brought so far: the curve of rewards, the best rewrites, what failed. Plain data."""

from __future__ import annotations

import re
from collections import Counter

import msgspec

from plaudit.mutation.episode import REJECTED, Info

BEST_KEPT = 1000
ERRORS_KEPT = 20


class Point(msgspec.Struct, frozen=True):
    """One rollout."""

    steps: int
    """Steps of all environments together, up to its end."""
    reward: float | None
    """The mean over the episodes that ended in it; None where none did."""
    gain: float | None
    """Quality gained in these episodes, on average, with drift and cost not counted."""
    failed: float
    """The share of its steps that failed, for any reason."""
    rejected: float = 0.0
    """The share of its steps in which a rewrite came and failed its check; part of `failed`."""
    operators: dict[str, int] = {}
    """How often each operator was chosen."""


class Rewrite(msgspec.Struct, frozen=True):
    """The best that was made of a question."""

    before: str
    after: str
    quality_before: float
    quality_after: float
    total: float
    """The episode's reward."""


class History(msgspec.Struct):
    """Everything that the report shows; part of every checkpoint."""

    points: list[Point] = []
    best: dict[str, Rewrite] = {}
    """By question."""
    episodes: int = 0
    steps: int = 0
    failures: dict[str, int] = {}
    """Failed steps by stage."""
    errors: dict[str, int] = {}
    """The most frequent messages, numbers left out."""

    def steps_failed(self) -> int:
        """How many steps earned nothing because a call failed."""
        return sum(self.failures.values())

    def top(self, count: int) -> list[Rewrite]:
        """The rewrites that gained most, best first."""
        ranked = sorted(self.best.values(), key=lambda one: (-one.total, one.before))
        return [one for one in ranked if one.quality_after > one.quality_before][:count]


class Recorder:
    """Writes the history as steps come in."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._begin()

    def turn(self, info: Info, is_over: bool) -> None:
        self._operators[str(info["operator"])] += 1
        self.history.steps += 1
        if info["failed"]:
            self._failed += 1
            self._rejected += info["failed_at"] == REJECTED
            self._count(info)
        if not is_over:
            return
        self.history.episodes += 1
        self._rewards.append(float(info["total"]))
        if "gain" in info:
            self._gains.append(float(info["gain"]))
            self._remember(info)

    def close_rollout(self) -> Point:
        """The point of the rollout that has just ended."""
        steps = max(1, self._operators.total())
        point = Point(
            self.history.steps,
            _mean(self._rewards),
            _mean(self._gains),
            self._failed / steps,
            self._rejected / steps,
            dict(sorted(self._operators.items())),
        )
        self.history.points.append(point)
        self._begin()
        return point

    def _begin(self) -> None:
        self._rewards: list[float] = []
        self._gains: list[float] = []
        self._operators: Counter[str] = Counter()
        self._failed = self._rejected = 0

    def _count(self, info: Info) -> None:
        stage = info["failed_at"]
        self.history.failures[stage] = self.history.failures.get(stage, 0) + 1
        counted = Counter(self.history.errors)
        counted[_NUMBER.sub("#", f"{stage}: {info['error']}")] += 1
        self.history.errors = dict(counted.most_common(ERRORS_KEPT))

    def _remember(self, info: Info) -> None:
        question, total, query = str(info["question"]), float(info["total"]), str(info["query"])
        known = self.history.best.get(question)
        if known is not None and (known.total, query) >= (total, known.after):
            return  # of equals the first in the alphabet: the same in any order
        quality, gain = float(info["quality"]), float(info["gain"])
        if known is None and len(self.history.best) >= BEST_KEPT:
            worst = min(self.history.best, key=lambda name: self.history.best[name].total)
            if self.history.best[worst].total >= total:
                return
            del self.history.best[worst]
        self.history.best[question] = Rewrite(question, query, quality - gain, quality, total)


_NUMBER = re.compile(r"\d[\d.,]*")


def _mean(values: list[float]) -> float | None:
    return sum(sorted(values)) / len(values) if values else None
