"""OpenEnv: a judge as a Rubric, alone or beside others in a WeightedSum, Gate or Sequential.

A missing verdict raises NoVerdict: an environment catches it, and leaves `observation.reward` None, which
OpenEnv has for steps without a reward. LLMJudge, which OpenEnv ships, gives 0.0 there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from openenv.core.rubrics import Rubric

from plaudit.errors import ConfigError
from plaudit.integrations.scored import Scored, one_by_one, sample_of
from plaudit.judges.base import Judge, Panel
from plaudit.types import Sample

Read = Callable[[Any, Any], Sample]


def read_step(action: Any, observation: Any) -> Sample:
    """A step whose `observation.metadata` has `prompt` (and `reference`), and whose action is its fields.

    OpenEnv sends the metadata to the client: a `reference` that the agent must not see needs a `read`.
    """
    known = observation.metadata
    if "prompt" not in known:
        raise ConfigError(
            "has no prompt, so the judge would not see the task; put it there, or give JudgedRubric a `read`",
            setting="observation.metadata",
        )
    fields = action.model_dump(exclude={"metadata"}, exclude_none=True)
    response = (
        next(iter(fields.values())) if len(fields) == 1 else action.model_dump_json(include=set(fields))
    )
    others = {name: value for name, value in known.items() if name not in ("prompt", "reference")}
    return sample_of(known.get("prompt"), str(response), known.get("reference"), extra=others)


class JudgedRubric(Rubric):  # type: ignore[misc, unused-ignore]
    """A rubric whose score, from 0 to 1, is a judge's. Environments of one process share one engine."""

    def __init__(self, judge: Judge | Panel | None = None, *, read: Read = read_step, **options: Any) -> None:
        """Ask the judge for a word, if its server is up.

        Args:
            judge: By default what the settings name.
            read: What the judge sees of an action and the observation after it.
            options: Those of plaudit.Engine.
        """
        super().__init__()
        self._scored = Scored(one_by_one(judge, "OpenEnv"), **options)
        self._scored.check()
        if not callable(read):
            raise ConfigError("should be a function of action and observation", setting="read", value=read)
        self._read = read

    def __call__(self, action: Any, observation: Any) -> Any:
        """The score of a step: to be awaited in `step_async`, and at once in `step`, which has a thread."""
        scored = super().__call__(action, observation)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(scored)
        return scored

    async def forward(self, action: Any, observation: Any) -> float:
        """The score of a step. Raises NoVerdict where there is none."""
        sample = self._read(action, observation)
        if not isinstance(sample, Sample):
            raise ConfigError(
                f"gave {sample!r:.80}; return sample_of(prompt, response, reference)", setting="read"
            )
        return await self._scored.areward(sample)
