"""AReaL: a rollout workflow whose rewards come from a judge.

    trainer.train(
        workflow="plaudit.integrations.areal.JudgedWorkflow",          # was areal.workflow.rlvr.RLVRWorkflow
        workflow_kwargs=dict(gconfig=config.gconfig, tokenizer=..., enable_thinking=False),   # no reward_fn
    )

A plain `reward_fn` runs in a pool of few processes with 15 s for each call, and a timeout becomes 0. Here the
judge is awaited in the workflow itself: as many calls under way as the endpoint bears, and no such limit.
An episode whose verdict is missing is rejected (None), as AReaL wants it; its group goes on without it.
"""

from __future__ import annotations

from typing import Any, ClassVar

from areal.workflow.rlvr import RLVRWorkflow

from plaudit.errors import ConfigError, NoVerdict
from plaudit.integrations.scored import Scored, sample_of
from plaudit.judges.base import Judge, Panel

REFERENCE = "answer"
"""The column of the data set that holds the ground truth, by AReaL's custom."""


class JudgedWorkflow(RLVRWorkflow):  # type: ignore[misc, unused-ignore]
    """RLVRWorkflow with a judge for `reward_fn`. AReaL makes one for each episode: they share one engine."""

    scored: ClassVar[Scored] = Scored()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "reward_fn" in kwargs:
            raise ConfigError("is not used here: the judge gives the reward; remove it", setting="reward_fn")
        super().__init__(_is_never_called, *args, **kwargs)
        self.async_reward_fn = self._judged

    async def arun_episode(self, engine: Any, data: dict[str, Any]) -> Any:
        try:
            return await super().arun_episode(engine, data)
        except NoVerdict:
            return None

    async def _judged(self, prompt: str, completions: str, *_ids: list[int], **data: Any) -> float:
        turns, truth = data.pop("messages", None), data.pop(REFERENCE, None)
        sample = sample_of(turns or prompt, completions, truth, extra=data)
        return await self.scored.areward(sample)


def workflow(judge: Judge | Panel | None = None, **options: Any) -> type[JudgedWorkflow]:
    """A JudgedWorkflow with this judge, to be named in a module of yours; `options` are plaudit.Engine's."""
    return type("JudgedWorkflow", (JudgedWorkflow,), {"scored": Scored(judge, **options)})


def _is_never_called(*_: Any, **__: Any) -> float:
    raise AssertionError("the workflow awaits the judge itself")
