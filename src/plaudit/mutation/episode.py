"""One episode of query mutation as a state machine: what a step is worth, when it ends, what the policy sees.

Pure: what the models said comes in as arguments. The environment of one and the environment of many both go
by it, so that they cannot differ.

The rewards of an episode add up to the quality gained, minus how far the query drifted from the original,
minus what the calls cost. A step whose calls failed changes nothing but the count of steps: it is worth 0.0
and says that it failed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plaudit.mutation.questions import Item
from plaudit.settings import option
from plaudit.value_check import check_numbers

Vector = NDArray[np.float32]
Info = dict[str, Any]
FACTS = 6
"""Numbers that an observation holds beside the query's embedding."""
REJECTED = "check"
"""The stage at which a rewrite came and was no rewrite: the operator's failure, and no outage."""
TOP = 1.0
"""The quality of an answer that cannot be better."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How long an episode lasts, and what counts against a rewrite."""

    max_steps: int = option(3, "Maximum rewrites of a question", "Task")
    """`keep` ends an episode sooner, and so does a perfect answer."""
    drift_weight: float = option(
        0.1, "Penalty for a query that has lost its meaning (cosine distance 1)", "Task"
    )
    cost_weight: float = option(0.01, "Penalty per 1,000 characters that the models read or write", "Task")

    def __post_init__(self) -> None:
        check_numbers(self, "max_steps", low=1)
        check_numbers(self, "drift_weight", "cost_weight", low=0)


@dataclass(frozen=True, slots=True, eq=False)
class ScoredQuery:
    """A query with what came of it."""

    query: str
    embedding: Vector
    """Of length 1. (dim,)"""
    quality: float | None
    """Of the target's answer to it: 0.0 is the worst, 1.0 the best. None where a call failed."""


@dataclass(frozen=True, slots=True, eq=False)
class StepResult:
    """What the calls of one step brought."""

    after: ScoredQuery | None
    """The new query; None where a call failed."""
    characters: int = 0
    """That rewriter and target read and wrote."""
    failed_at: str = ""
    """The stage that failed: mutate, check (of the rewrite), answer, judge or encode."""
    error: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Episode:
    """Where one episode stands."""

    item: Item
    start: ScoredQuery
    now: ScoredQuery
    step: int = 0
    has_failed: bool = False
    """Whether the last step did."""
    total: float = 0.0
    """The rewards so far."""


@dataclass(frozen=True, slots=True, eq=False)
class Transition:
    """One step: where it led, what it was worth, and whether the episode is over."""

    episode: Episode
    reward: float
    is_over: bool
    info: Info


def advance(
    episode: Episode, operator: str, attempt: StepResult, rules: Rules, *, is_last: bool
) -> Transition:
    """What a step's calls amount to. `is_last`: the policy wants to leave it at that."""
    after, before = attempt.after, episode.now
    if after is None or after.quality is None or before.quality is None:
        moved = replace(episode, step=episode.step + 1, has_failed=True)
        info = facts(moved) | {"operator": operator, "cost": 0.0, "error": attempt.error}
        return Transition(moved, 0.0, moved.step >= rules.max_steps, info | {"failed_at": attempt.failed_at})
    cost = rules.cost_weight * attempt.characters / 1000.0
    drifted = drift(episode.start, after) - drift(episode.start, before)
    reward = after.quality - before.quality - rules.drift_weight * drifted - cost
    total = episode.total + reward
    moved = replace(episode, now=after, step=episode.step + 1, has_failed=False, total=total)
    info = facts(moved) | {"operator": operator, "cost": cost, "error": "", "failed_at": ""}
    is_over = is_last or moved.step >= rules.max_steps or after.quality >= TOP
    return Transition(moved, reward, is_over, info)


def facts(episode: Episode) -> Info:
    """What `info` says of an episode. Without a score there is no `quality` and no `gain`."""
    info: Info = {
        "question": episode.item.question,
        "query": episode.now.query,
        "drift": drift(episode.start, episode.now),
        "total": episode.total,
        "failed": episode.has_failed,
    }
    if episode.now.quality is not None and episode.start.quality is not None:
        info["quality"] = episode.now.quality
        info["gain"] = episode.now.quality - episode.start.quality
    return info


def drift(start: ScoredQuery, now: ScoredQuery) -> float:
    """How far a query is from the original: 0.0 for the same meaning, 1.0 for nothing in common."""
    if now.query == start.query:
        return 0.0
    return min(1.0, max(0.0, 1.0 - float(start.embedding @ now.embedding)))


def observation(episode: Episode, rules: Rules) -> Vector:
    """What the policy sees: the query's embedding, each number about 1 in size, and six facts. (dim + 6,)"""
    start, now = episode.start.quality, episode.now.quality
    known = (
        episode.step / rules.max_steps,
        0.0 if now is None else now,
        0.0 if now is None or start is None else now - start,
        float(now is not None),
        drift(episode.start, episode.now),
        float(episode.has_failed),
    )
    embedding = episode.now.embedding
    scale = bound(embedding.size)
    return np.concatenate([np.clip(embedding * scale, -scale, scale), known]).astype(np.float32)


def bound(dim: int) -> float:
    """The largest number that an observation can hold, for embeddings of so many numbers."""
    return math.sqrt(dim)
