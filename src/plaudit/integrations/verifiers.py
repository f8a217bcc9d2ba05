"""verifiers: a reward that tasks take by its path, or a plug-in (v1), and a Rubric (the older environments).

v1 leaves out what raises: a missing verdict raises NoVerdict, the trace carries the error, and the trainer
goes on with the rest of the group. A Rubric of old turns every exception into 0.0, so here the verdict is
replaced before it gets that far: by the mean of its group, with `state["judge_valid"]` False.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from plaudit.errors import ConfigError
from plaudit.integrations.scored import Scored, asked_when_loaded, one_by_one, sample_of
from plaudit.judges.base import Judge, Panel
from plaudit.value_check import check_number

Reward = Callable[..., Coroutine[Any, Any, float]]


def reward(judge: Judge | Panel | None = None, **options: Any) -> Reward:
    """A reward for v1's tasks with this judge; `options` are those of plaudit.Engine."""
    return _reward(Scored.checked(one_by_one(judge, "verifiers"), **options))


def _reward(scored: Scored) -> Reward:
    async def judged(task: Any, trace: Any) -> float:
        others = task.model_dump(mode="json", exclude={"prompt", "answer"}, exclude_none=True)
        sample = sample_of(task.prompt_text, _turns(trace), getattr(task, "answer", None), extra=others)
        return await scored.areward(sample)

    return judged


def plugin(judge: Judge | Panel | None = None, **options: Any) -> Any:
    """A judge for `task.judges`, in a module that is its `id`. verifiers loads it with the configuration."""
    import verifiers.v1 as vf

    scored = Scored(one_by_one(judge, "verifiers"), **options)
    scored.check()

    class PlauditJudgeConfig(vf.JudgeConfig):  # type: ignore[misc, unused-ignore]
        def model_post_init(self, context: Any) -> None:
            super().model_post_init(context)
            for name in ("model", "prompt", "sampling"):
                if getattr(self, name) != type(self).model_fields[name].default:
                    raise ConfigError("of the entry is not used; give plugin(...) its judge", setting=name)

    class PlauditJudge(vf.Judge[float, PlauditJudgeConfig]):  # type: ignore[misc, unused-ignore]
        async def score(self, task: Any, trace: Any) -> float:
            return await _reward(scored)(task, trace)

    return PlauditJudge


def rubric(judge: Judge | Panel | None = None, *, weight: float = 1.0, **options: Any) -> Any:
    """A `vf.Rubric` that scores the answers to a prompt together; `options` are those of plaudit.Engine."""
    import verifiers as vf

    if not hasattr(vf, "Rubric"):
        raise ConfigError(f"verifiers {vf.__version__} has no Rubric; plug `judged` into the task's rewards")
    check_number("weight", weight)
    scored = Scored(judge, **options)
    scored.check()

    async def judged(
        prompts: Sequence[Any], completions: Sequence[Any], answers: Sequence[Any], states: Sequence[Any]
    ) -> list[float]:
        samples = [
            sample_of(prompt, completion, answer, extra=state.get("info"))  # which holds the other columns
            for prompt, completion, answer, state in zip(prompts, completions, answers, states, strict=True)
        ]
        scores = await scored.agroup(samples)
        for state, score in zip(states, scores, strict=True):
            state["judge_valid"] = score.valid
        return [float(score) for score in scores]

    return vf.Rubric(funcs=[judged], weights=[weight])


def _turns(trace: Any) -> Any:
    """What followed the prompt on the trace's final branch; of a single answer, its text."""
    turns = list(trace.messages)
    while turns and turns[0].role != "assistant":
        turns.pop(0)
    return turns if len(turns) > 1 or (turns and turns[0].tool_calls) else trace.last_reply


judged: Reward
__getattr__ = asked_when_loaded(__name__, "judged", _reward(Scored()))
