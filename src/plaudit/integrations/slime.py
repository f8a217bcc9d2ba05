"""slime: the reward model that `--custom-rm-path` names, with `--group-rm` or without.

A row whose verdict is missing is taken out of the loss (`sample.remove_sample`). `post_process`, for
`--custom-reward-post-process-path`, leaves it out of its group too; without it slime counts the row when it
normalises the group, so it gets the group's mean.
slime loads `post_process` when it starts, and the judge of the settings is asked then whether it answers; a
module with a judge of its own takes the same function by the name `normalised`.
Without `--group-rm`, where rows come one at a time, a row without a verdict waits for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from plaudit.integrations.scored import Scored, asked_when_loaded, one_by_one, sample_of
from plaudit.judges.base import Judge, Panel
from plaudit.rewards import advantages
from plaudit.types import Sample


def reward_model(
    judge: Judge | Panel | None = None, **options: Any
) -> Callable[..., Coroutine[Any, Any, Any]]:
    """A `custom_rm` with this judge; `options` are those of plaudit.Engine."""
    scored = Scored.checked(judge, **options)

    async def custom_rm(args: Any, sample: Any, **_: Any) -> Any:
        if not isinstance(sample, list):
            one_by_one(judge, "slime", remedy="add --group-rm")
        rows = sample if isinstance(sample, list) else [sample]
        scores = await scored.arewards([_sample(row) for row in rows])
        for row, score in zip(rows, scores, strict=True):
            if not score.valid:
                row.remove_sample = True
        names = {getattr(args, name, None) for name in ("reward_key", "eval_reward_key")} - {None, ""}
        rewards: list[Any] = [dict.fromkeys(names, float(score)) or float(score) for score in scores]
        return rewards if isinstance(sample, list) else rewards[0]

    return custom_rm


def normalised(args: Any, samples: Sequence[Any]) -> tuple[list[float], list[float]]:
    """Raw rewards, and those slime trains on: as its own, but by the judged rows of each group alone."""
    raw = [float(row.get_reward_value(args)) for row in samples]
    is_scaled = args.advantage_estimator in ("grpo", "gspo")
    is_centred = is_scaled or args.advantage_estimator == "reinforce_plus_plus_baseline"
    if not (args.rewards_normalization and is_centred):
        return raw, raw
    judged = [None if row.remove_sample else reward for row, reward in zip(samples, raw, strict=True)]
    groups = [row.group_index for row in samples]
    return raw, advantages(judged, groups, scale=is_scaled and args.grpo_std_normalization)


def _sample(row: Any) -> Sample:
    metadata = row.metadata if isinstance(row.metadata, dict) else {}
    return sample_of(row.prompt, row.response, row.label, group=row.group_index, extra=metadata)


custom_rm = reward_model()
post_process: Callable[[Any, Sequence[Any]], tuple[list[float], list[float]]]
__getattr__ = asked_when_loaded(__name__, "post_process", normalised)
