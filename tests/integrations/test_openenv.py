"""The adapter for OpenEnv: a rubric among others, which raises where the judge gave no verdict."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from choosy import JUDGE, Choosy
from complaints import about
from loopback import INSTANT, loopback
from openenv.core import GenericEnvClient
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State
from openenv.core.rubrics import Gate, Rubric, Sequential, WeightedSum
from pydantic import create_model
from refusing import refused_before_generating
from served_app import served_app

from plaudit import Group
from plaudit.errors import ConfigError, NoVerdict
from plaudit.integrations.openenv import JudgedRubric
from plaudit.integrations.scored import sample_of

pytestmark = pytest.mark.environments


def action(**fields: Any) -> Any:
    """An action of an environment that has these fields."""
    kind: Any = create_model("MyAction", __base__=Action, **dict.fromkeys(fields, (str, ...)))
    return kind(**fields)


def observation(**metadata: Any) -> Any:
    known = {"prompt": "Why is the sky blue?", "reference": "It scatters.", "level": "school"}
    return Observation(metadata={**known, **metadata})


def rubric(judge: Choosy | None = None, **options: Any) -> Any:
    return JudgedRubric(JUDGE, **(judge or Choosy()).options, **options)


def awaited(made: Any, *step: Any) -> Any:
    """What an environment with `step_async` gets."""

    async def main() -> Any:
        return await made(*step)

    return asyncio.run(main())


@pytest.mark.parametrize("call", [awaited, lambda made, *step: made(*step)], ids=["step_async", "step"])
def test_a_step_is_scored_with_what_its_observation_says_of_the_task(call: Callable[..., Any]) -> None:
    judge = Choosy()
    made = rubric(judge)
    seen = []
    made.register_forward_hook(lambda _rubric, _action, _observation, score: seen.append(score))
    assert call(made, action(message="worth 7"), observation()) == 0.7
    assert (made.last_score, seen) == (0.7, [0.7])
    assert all(text in judge.asked[0] for text in ("Why is the sky blue?", "It scatters.", "worth 7"))


@pytest.mark.parametrize("call", [awaited, lambda made, *step: made(*step)], ids=["step_async", "step"])
def test_it_composes_with_the_rubrics_of_openenv(call: Callable[..., Any]) -> None:
    class Short(Rubric):  # type: ignore[misc, unused-ignore]
        def forward(self, action: Any, observation: Any) -> float:
            return float(len(action.message) < 20)

    step = action(message="worth 6"), observation()
    assert call(WeightedSum([rubric(), Short()], weights=[0.5, 0.5]), *step) == pytest.approx(0.8)
    assert call(Gate(rubric(), threshold=0.7), *step) == 0.0
    assert call(Sequential(Short(), rubric()), *step) == 0.6
    with pytest.raises(NoVerdict):
        call(WeightedSum([rubric(), Short()], weights=[0.5, 0.5]), action(message="lost"), observation())


def test_an_action_of_several_fields_is_shown_whole() -> None:
    judge = Choosy()
    rubric(judge)(action(tool="search", query="worth 4"), observation())
    assert all(text in judge.asked[0] for text in ("search", "worth 4"))


def test_what_the_judge_sees_can_be_chosen() -> None:
    judge = Choosy()
    made = rubric(judge, read=lambda action, _: sample_of("Pick a colour.", action.message.upper()))
    made(action(message="worth 4, blue"), observation())
    assert "WORTH 4, BLUE" in judge.asked[0]


def test_a_missing_verdict_raises_and_is_no_score() -> None:
    made = rubric()
    with pytest.raises(NoVerdict):
        made(action(message="lost"), observation())
    assert made.last_score is None


def test_a_key_that_is_refused_ends_the_environment_before_the_first_generation() -> None:
    with refused_before_generating() as options:
        JudgedRubric(JUDGE, **options)


def test_a_judge_that_compares_responses_has_nothing_to_compare() -> None:
    with pytest.raises(ConfigError, check=about("judge")):
        JudgedRubric(Group("Is it kind?"), url="http://127.0.0.1:9/v1", model="m")


@pytest.mark.parametrize("is_async", [True, False], ids=["step_async", "step"])
def test_clients_of_a_server_get_rewards_and_gaps_but_not_the_solution(is_async: bool) -> None:
    judge = Choosy()

    class Sync(Environment):  # type: ignore[misc, unused-ignore]
        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self) -> None:
            super().__init__(
                rubric=JudgedRubric(JUDGE, read=self.read, max_failure_rate=1.0, **judge.options)
            )

        def read(self, action: Any, observation: Any) -> Any:
            return sample_of("Why is the sky blue?", action.message, "It scatters.")

        def reset(self, seed: Any = None, episode_id: Any = None, **_: Any) -> Any:
            return Observation()

        def step(self, action: Any, timeout_s: Any = None, **_: Any) -> Any:
            made = Observation(done=True)
            try:
                made.reward = self._apply_rubric(action, made)
            except NoVerdict:
                made.reward = None
            return made

        @property
        def state(self) -> Any:
            return State()

    class Async(Sync):
        async def step_async(self, action: Any, timeout_s: Any = None, **_: Any) -> Any:
            made = Observation(done=True)
            try:
                made.reward = await self._apply_rubric_async(action, made)
            except NoVerdict:
                made.reward = None
            return made

    make, action_kind = Async if is_async else Sync, type(action(message=""))
    app = create_fastapi_app(make, action_kind, Observation, max_concurrent_envs=8)
    with served_app(app) as url:  # with a session for each client

        async def play(answer: str) -> Any:
            async with GenericEnvClient(base_url=url) as client:
                await client.reset()
                return await client.step({"message": answer})

        async def main() -> Any:
            return await asyncio.gather(*(play(answer) for answer in ("worth 9", "lost", "worth 3")))

        results = asyncio.run(main())
    assert [one.reward for one in results] == [0.9, None, 0.3]
    assert all("It scatters." in text for text in judge.asked)
    assert not any("It scatters." in str(one) for one in results)


def test_environments_share_the_limits_of_one_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback(INSTANT) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        before = threading.active_count()
        for number in range(5):
            JudgedRubric(JUDGE)(action(message=f"Because {number}."), observation())
        one_engine = threading.active_count() - before
        JudgedRubric(JUDGE)(action(message="Because."), observation())
        assert threading.active_count() - before == one_engine <= 3


def test_what_the_judge_could_not_see_is_named_and_is_no_missing_verdict() -> None:
    step = action(message="worth 7"), Observation()
    with pytest.raises(ConfigError, check=about("observation.metadata")):
        rubric()(*step)
    with pytest.raises(ConfigError, check=about("read", "sample_of")):
        rubric(read=lambda action, _: ("Why?", action.message))(*step)
    with pytest.raises(ConfigError, check=about("read")):
        rubric(read="question")
