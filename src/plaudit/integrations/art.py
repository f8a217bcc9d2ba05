"""ART: a judge for groups of trajectories, in the place of RULER.

The trajectories of a group are compared in one call, under ids that they cannot name. One without a verdict
leaves its group, as one whose rollout raised: it is among `exceptions`, and the others are compared among
themselves. Where fewer than two are left the group is dropped (None).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import art

from plaudit.errors import NoVerdict
from plaudit.integrations.scored import Scored, sample_of
from plaudit.judges import Group
from plaudit.judges.base import Judge, Panel
from plaudit.types import Sample
from plaudit.value_check import check_value

RUBRIC = (
    "Did the agent reach the goal that it was given? Reaching it is worth far more than anything else. Among "
    "those that did, prefer the one with fewer needless steps. Progress towards it earns part of the score."
)
OF_LITELLM = {"api_base": "url", "extra_body": "extra", "max_completion_tokens": "max_tokens"}
"""What Engine calls options of litellm that it has by another name."""
Scorer = Callable[[Any], Coroutine[Any, Any, Any]]


def group_scorer(judge: Judge | Panel | None = None, **options: Any) -> Scorer:
    """A function for `after_each` with this judge; `options` are those of plaudit.Engine."""
    return _score_group(Scored.checked(judge, **options))


def _score_group(scored: Scored) -> Scorer:
    async def score_group(group: art.TrajectoryGroup) -> art.TrajectoryGroup | None:
        check_value("group", group, art.TrajectoryGroup)
        scores = await scored.agroup([_sample(row) for row in group.trajectories])
        judged, lost = [], []
        for row, score in zip(group.trajectories, scores, strict=True):
            if not score.valid:
                lost.append(NoVerdict(f"the judge gave no verdict ({score.status})"))
                continue
            metrics = {**row.metrics, "independent_reward": row.reward, "ruler_score": float(score)}
            judged.append(row.model_copy(update={"reward": float(score), "metrics": metrics}))
        if len(judged) < 2 <= len(scores):
            return None
        exceptions = [*group.exceptions, *art.TrajectoryGroup(lost).exceptions]
        return group.model_copy(update={"trajectories": judged, "exceptions": exceptions})

    return score_group


async def ruler_score_group(
    group: art.TrajectoryGroup,
    judge_model: str | None = None,
    extra_litellm_params: Mapping[str, Any] | None = None,
    rubric: str = RUBRIC,
    *,
    swallow_exceptions: bool = False,  # noqa: ARG001 - as RULER is called
    debug: bool = False,  # noqa: ARG001 - as RULER is called
) -> art.TrajectoryGroup | None:
    """The group with its trajectories scored from 0 to 1, as RULER would; None where nothing can be compared.

    Args:
        group: What a rollout gave; it is not changed.
        judge_model: The model at OPENAI_BASE_URL, with or without `openai/`; by default PLAUDIT_MODEL.
        extra_litellm_params: `api_base`, `api_key`, `temperature`, and what else Engine has too.
        rubric: What makes a trajectory good.
        swallow_exceptions: Not needed: only a judge that will never answer, or fails too often, raises.
        debug: Not needed: a journal has what the judge was asked and what it said.
    """
    check_value("extra_litellm_params", extra_litellm_params, Mapping[str, Any] | None)
    options = {OF_LITELLM.get(name, name): value for name, value in (extra_litellm_params or {}).items()}
    if judge_model:
        options["model"] = judge_model.removeprefix("openai/")
    return await _score_group(Scored(Group(rubric), **options))(group)  # asked at once, so never checked


def _sample(row: Any) -> Sample:
    """A trajectory's turns up to the agent's first as the prompt, and the rest as the response.

    Further histories follow, without what they repeat from the start of the one before. Its metadata are the
    row's other columns: a `reference`, a `rubric` as JSON.
    """
    first = before = row.messages()
    start = next((place for place, turn in enumerate(first) if turn["role"] == "assistant"), len(first))
    response = first[start:]
    for history in row.additional_histories:
        turns = history.messages()
        pairs = zip(turns, before, strict=False)
        same = next((place for place, (one, other) in enumerate(pairs) if one != other), len(before))
        response, before = [*response, *turns[same:]], turns
    others = {**row.metadata, "tools": list(row.tools or ())}
    return sample_of(first[:start], response, others.pop("reference", None), extra=others)
