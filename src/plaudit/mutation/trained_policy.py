"""A trained policy at work: each question is rewritten as the policy has learned to.

The policy is read from the training's checkpoint, which holds numbers and JSON: loading it runs no code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from plaudit.mutation.env import BatchedQueryMutationEnv
from plaudit.mutation.episode import Episode, Rules, Vector, advance, observation
from plaudit.mutation.mutation_trainer import check_same, load_checkpoint, new_model, settings_of
from plaudit.mutation.ppo import VectorAdapter
from plaudit.mutation.questions import Item
from plaudit.mutation.task import MutationTask
from plaudit.mutation.training import Training

Policy = Callable[[Vector], int]
"""From what is seen of an episode to the number of an operator."""
SAME = ("operators", "numbers in an observation")
"""What a task has in common with the training of its policy."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A question and the best query that the policy found for it."""

    question: str
    query: str
    quality: float | None
    """Of the answer to the query, from 0 to 1; None where a call failed."""
    quality_before: float | None
    """Of the answer to the question as it stood."""
    operators: tuple[str, ...] = ()
    """Those applied, in order, whether they helped or not."""
    error: str = ""
    """What failed last, if anything did."""


def trained_rules(folder: Path) -> Rules:
    """The rules that a policy was trained by. ConfigError where the folder holds no training."""
    return Rules(**load_checkpoint(folder)[0].settings["rules"])


def load_policy(task: MutationTask, folder: Path) -> Policy:
    """The policy of a training, taking its likeliest action. ConfigError where it is missing or another."""
    state, parameters = load_checkpoint(folder)
    now = settings_of(task, Training())
    check_same(state.settings, {name: now[name] for name in SAME}, folder)
    vector = BatchedQueryMutationEnv(task, 1)
    try:
        policy = new_model(Training(), VectorAdapter(vector)).policy
    finally:
        vector.close()
    policy.load_state_dict(parameters["policy"])
    return lambda seen: int(policy.predict(seen, deterministic=True)[0])


def apply_policy(task: MutationTask, policy: Policy) -> list[Rewritten]:
    """Rewrite every question of the task, all at once; one result for each, in order."""

    async def everything() -> list[Rewritten]:
        return await asyncio.gather(*(_rewritten(task, policy, item) for item in task.questions))

    return asyncio.run(everything())


async def _rewritten(task: MutationTask, policy: Policy, item: Item) -> Rewritten:
    start = await task.start(item)
    if start.after is None:
        return Rewritten(item.question, item.question, None, None, error=start.error)
    episode = Episode(item, start.after, start.after)
    best, applied, error, is_over = start.after, list[str](), "", False
    while not is_over:
        operator = task.operators[policy(observation(episode, task.rules))]
        attempt = await task.follow(item, episode.now, operator)
        moved = advance(episode, operator.name, attempt, task.rules, is_last=operator.is_keep)
        episode, is_over = moved.episode, moved.is_over
        error = attempt.error or error
        if not operator.is_keep:
            applied.append(operator.name)
        if (episode.now.quality or 0.0) > (best.quality or 0.0):
            best = episode.now
    return Rewritten(item.question, best.query, best.quality, start.after.quality, tuple(applied), error)
