"""SkyRL: a single-turn environment whose reward comes from a judge.

SkyRL makes an environment for each trajectory and steps it in a pool of threads; the environments share one
engine, and `max_env_workers` (32 unless set) is then the limit on verdicts under way. It takes numbers only,
and an exception ends the run. So a missing verdict becomes the mean of the prompt's other answers, for
which it waits, and the metric `judge_valid` says which share was judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

from plaudit.integrations.scored import Scored, one_by_one, sample_of
from plaudit.judges.base import Judge, Panel
from plaudit.scoring import Score

NOT_EXTRA = ("prompt", "reward_spec", "reward_model")
"""What SkyRL passes beside the other columns of the data set."""


class JudgedEnv(BaseTextEnv):  # type: ignore[misc, unused-ignore]
    """One question, one answer, one verdict. For several turns, subclass it and call `score` in the last."""

    scored: ClassVar[Scored] = Scored()

    def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None) -> None:  # noqa: ARG002
        super().__init__()
        extras = extras or {}
        truth = extras.get("reward_spec") or extras.get("reward_model") or {}
        self.reference = truth.get("ground_truth") if isinstance(truth, Mapping) else None
        self.extra = {name: value for name, value in extras.items() if name not in NOT_EXTRA}
        self.prompt: Any = extras.get("prompt")
        self._last: Score | None = None

    def init(self, prompt: Any) -> tuple[Any, dict[str, Any]]:
        self.scored.check()
        self.prompt = prompt if isinstance(prompt, str) else list(prompt)
        return prompt, {}

    def step(self, action: str) -> Any:
        self.turns += 1
        score = self.score(action)
        metadata = {"judge_valid": score.valid, "judge_status": score.status}
        return BaseTextEnvStepOutput(observations=[], reward=float(score), done=True, metadata=metadata)

    def score(self, response: str | Sequence[Mapping[str, Any]]) -> Score:
        """The judge's score of this response, from 0 to 1; `valid` says whether it was judged.

        Args:
            response: Text, or the turns of the whole trajectory, the tools' results among them.
        """
        sample = sample_of(self.prompt, response, self.reference, extra=self.extra)
        (self._last,) = self.scored.rewards([sample])
        return self._last

    def get_metrics(self) -> dict[str, Any]:
        return {"judge_valid": float(self._last.valid)} if self._last is not None else {}


def env(judge: Judge | Panel | None = None, **options: Any) -> type[JudgedEnv]:
    """A JudgedEnv with this judge, to be named in a module of yours; `options` are plaudit.Engine's."""
    return type("JudgedEnv", (JudgedEnv,), {"scored": Scored(one_by_one(judge, "SkyRL"), **options)})
