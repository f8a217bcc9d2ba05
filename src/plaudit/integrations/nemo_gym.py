"""NeMo-Gym: a resources server that verifies by a judge.

A missing verdict is NeMo-Gym's own `judge_failed`: the row goes to the file of failures, out of every mean,
and a resumed run asks for it again. It is never a reward.
"""

from __future__ import annotations

from typing import Any, ClassVar

from nemo_gym.base_resources_server import BaseVerifyRequest, BaseVerifyResponse, SimpleResourcesServer
from nemo_gym.judge import JudgeError
from pydantic import ConfigDict

from plaudit.errors import NoVerdict
from plaudit.integrations.scored import Scored, one_by_one, sample_of
from plaudit.judges.base import Judge, Panel

REFERENCES = ("reference", "expected_answer", "ground_truth", "answer")
"""Fields of a row that may hold the ground truth; the first that is there."""


class JudgedVerifyRequest(BaseVerifyRequest):  # type: ignore[misc, unused-ignore]
    """A rollout, with the other columns of its row."""

    model_config = ConfigDict(extra="allow")


class JudgedVerifyResponse(BaseVerifyResponse):  # type: ignore[misc, unused-ignore]
    """The rollout with its reward, from 0 to 1."""

    model_config = ConfigDict(extra="allow")


class JudgedResourcesServer(SimpleResourcesServer):  # type: ignore[misc, unused-ignore]
    """Judges a rollout, its tool calls and their results included. `server` makes it with another judge."""

    scored: ClassVar[Scored] = Scored()

    def setup_webserver(self) -> Any:
        self.scored.check()
        return super().setup_webserver()

    async def verify(self, body: JudgedVerifyRequest) -> JudgedVerifyResponse:
        others = dict(body.model_extra or {})
        reference = next((others.pop(name) for name in REFERENCES if name in others), None)
        row = body.model_dump(exclude_unset=True)
        asked, answer = row["responses_create_params"]["input"], row["response"]["output"]
        try:
            reward = await self.scored.areward(sample_of(asked, answer, reference, extra=others))
        except NoVerdict as error:
            raise JudgeError(str(error)) from error
        return JudgedVerifyResponse(**body.model_dump(), reward=reward)


def server(judge: Judge | Panel | None = None, **options: Any) -> type[JudgedResourcesServer]:
    """A JudgedResourcesServer with this judge; `options` are those of plaudit.Engine."""
    return type(
        "JudgedResourcesServer",
        (JudgedResourcesServer,),
        {"scored": Scored(one_by_one(judge, "NeMo-Gym"), **options)},
    )
