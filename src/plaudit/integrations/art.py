"""ART: a judge for groups of trajectories, in the place of RULER.

    from plaudit.integrations.art import ruler_score_group          # in place of art.rewards

    await art.gather_trajectory_groups(groups, after_each=lambda g: ruler_score_group(g, "qwen3-32b"))

The trajectories of a group are compared in one call, under ids that they cannot name. One without a verdict
leaves its group, as one whose rollout raised: it is among `exceptions`, and the others are compared among
themselves. Where fewer than two are left the group is dropped (None).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any

import art

from plaudit.errors import NoVerdict
from plaudit.integrations.scored import Scored, sample_of
from plaudit.judges import Group
from plaudit.judges.base import Judge, Panel
from plaudit.types import Sample

RUBRIC = (
    "Did the agent reach the goal that it was given? Reaching it is worth far more than anything else. Among "
    "those that did, prefer the one with fewer needless steps. Progress towards it earns part of the score."
)
Scorer = Callable[[Any], Coroutine[Any, Any, Any]]


def group_scorer(judge: Judge | Panel | None = None, **options: Any) -> Scorer:
    """A function for `after_each` with this judge; `options` are those of plaudit.Engine."""
    return _score_group(Scored.checked(judge, **options))


def _score_group(scored: Scored) -> Scorer:
    async def score_group(group: art.TrajectoryGroup) -> art.TrajectoryGroup | None:
        rows = [one.model_copy(deep=True) for one in group.trajectories]
        scores = await scored.arewards([_sample(row) for row in rows])
        for row, score in zip(rows, scores, strict=True):
            row.metrics |= {"independent_reward": row.reward, "ruler_score": float(score)}
            row.reward = float(score)
        judged = [row for row, score in zip(rows, scores, strict=True) if score.valid]
        lost = [
            NoVerdict(f"the judge gave no verdict ({score.status})") for score in scores if not score.valid
        ]
        if len(judged) < 2 <= len(rows):
            return None
        made = art.TrajectoryGroup(
            [*judged, *lost], metadata=group.metadata, metrics=group.metrics, logs=group.logs
        )
        made.exceptions = [*group.exceptions, *made.exceptions]
        return made

    return score_group


async def ruler_score_group(
    group: art.TrajectoryGroup, judge_model: str | None = None, rubric: str = RUBRIC
) -> art.TrajectoryGroup | None:
    """The group with its trajectories scored from 0 to 1, as RULER would; None where nothing can be compared.

    Args:
        group: What a rollout gave; it is not changed.
        judge_model: The model at OPENAI_BASE_URL, with or without `openai/`; by default PLAUDIT_MODEL.
        rubric: What makes a trajectory good.
    """
    return await _ruler(judge_model, rubric)(group)


@functools.cache
def _ruler(model: str | None, rubric: str) -> Scorer:
    options: dict[str, Any] = {"model": model.removeprefix("openai/")} if model else {}
    return _score_group(Scored(Group(rubric), **options))  # it is asked at once, so nothing is checked before


def _sample(row: Any) -> Sample:
    """A trajectory's turns up to the agent's first as the prompt, and the rest as the response.

    Its metadata are the row's other columns: a `reference`, a `rubric` as JSON.
    """
    turns = row.messages()
    start = next((place for place, turn in enumerate(turns) if turn["role"] == "assistant"), len(turns))
    others = {**row.metadata, "tools": list(row.tools or ())}
    return sample_of(turns[:start], turns[start:], others.pop("reference", None), group="group", extra=others)
