"""AReaL: a rollout workflow whose rewards come from a judge, in the place of RLVRWorkflow.

A plain `reward_fn` runs in a pool of few processes with 15 s for each call, and a timeout becomes 0. Here the
judge is awaited in the workflow itself: with adaptive concurrency, and no such limit.
An episode whose verdict is missing is out of the loss (`loss_mask` 0), and its reward is the mean of its
group, for which it waits. It is not rejected (None): AReaL normalises rows by groups of a fixed size, so that
one episode less would shift every group after it.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, ClassVar

from areal.workflow.rlvr import RLVRWorkflow

from plaudit.errors import ConfigError
from plaudit.integrations.scored import Scored, one_by_one, sample_of
from plaudit.judges.base import Judge, Panel
from plaudit.scoring import Score

REFERENCE = "answer"
"""The column of the data set that holds the ground truth, by AReaL's custom."""
_scores: ContextVar[list[Score]] = ContextVar("scores of this episode")


class JudgedWorkflow(RLVRWorkflow):  # type: ignore[misc, unused-ignore]
    """RLVRWorkflow with a judge for `reward_fn`. AReaL makes one for each episode: they share one engine."""

    scored: ClassVar[Scored] = Scored()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "reward_fn" in kwargs:
            raise ConfigError("is not used here: the judge gives the reward; remove it", setting="reward_fn")
        self.scored.check()
        super().__init__(_is_never_called, *args, **kwargs)
        self.async_reward_fn = self._judged

    async def arun_episode(self, engine: Any, data: dict[str, Any]) -> Any:
        scores: list[Score] = []
        _scores.set(scores)  # a workflow runs all episodes of a group at once
        episode = await super().arun_episode(engine, data)
        if episode is not None and not all(score.valid for score in scores):
            episode["loss_mask"] = episode["loss_mask"] * 0
        return episode

    async def _judged(self, prompt: str, completions: str, *_ids: list[int], **data: Any) -> float:
        turns, truth = data.pop("messages", None), data.pop(REFERENCE, None)
        sample = sample_of(turns or prompt, completions, truth, extra=data)
        (score,) = await self.scored.arewards([sample])
        _scores.get().append(score)
        return float(score)


def workflow(judge: Judge | Panel | None = None, **options: Any) -> type[JudgedWorkflow]:
    """A JudgedWorkflow with this judge, to be named in a module of yours; `options` are plaudit.Engine's."""
    return type(
        "JudgedWorkflow", (JudgedWorkflow,), {"scored": Scored(one_by_one(judge, "AReaL"), **options)}
    )


def _is_never_called(*_: Any, **__: Any) -> float:
    raise AssertionError("the workflow awaits the judge itself")
