"""The adapter for SkyRL, with the real skyrl-gym: made by its registry, stepped in its threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import skyrl_gym
from choosy import JUDGE, Choosy
from loopback import INSTANT, loopback
from refusing import refused_before_generating
from skyrl_gym.envs import register

from plaudit.integrations.skyrl import JudgedEnv, env

pytestmark = pytest.mark.trainers

PROMPT = [{"role": "user", "content": "Why is the sky blue?"}]
EXTRAS = {"reward_spec": {"method": "judge", "ground_truth": "It scatters."}, "data_source": "my/essays"}


def trajectory(name: str, action: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What SkyRL's generator does with an environment."""
    made = skyrl_gym.make(name, env_config={}, extras={**EXTRAS, "max_turns": 1})
    prompt, _ = made.init(list(PROMPT))
    assert prompt == PROMPT
    output = made.step(action)
    metrics = made.get_metrics()
    made.close()
    return output, metrics


def test_threads_full_of_environments_share_one_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    register(id="judged", entry_point="plaudit.integrations.skyrl:JudgedEnv")
    with loopback(INSTANT) as server, ThreadPoolExecutor(32) as pool:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        answers = [f"Answer {number % 20}." for number in range(60)]
        found = list(pool.map(lambda action: trajectory("judged", action), answers))
        assert server.stats.answered == 20
    assert all(output["done"] and 0.0 <= output["reward"] <= 1.0 for output, _ in found)
    assert {metrics["judge_valid"] for _, metrics in found} == {1.0}
    assert found[0][0]["reward"] == found[20][0]["reward"] == found[40][0]["reward"]


def test_a_missing_verdict_is_the_mean_of_the_prompt_so_far_and_is_marked() -> None:
    judge = Choosy()
    register(id="brief", entry_point=env(JUDGE, **judge.options))
    for worth in (2, 4):
        trajectory("brief", f"worth {worth}")
    output, metrics = trajectory("brief", "lost")
    assert output["reward"] == pytest.approx(0.3)
    assert output["metadata"] == {"judge_valid": False, "judge_status": "failed"}
    assert metrics == {"judge_valid": 0.0}
    assert all(text in judge.asked[0] for text in ("Why is the sky blue?", "It scatters.", "worth 2"))


def test_a_row_without_ground_truth_is_judged_too() -> None:
    judge = Choosy()
    made = env(JUDGE, **judge.options)(env_config=None, extras={})
    made.init(PROMPT)
    assert made.step("worth 9")["reward"] == 0.9
    assert issubclass(type(made), JudgedEnv)


def test_a_key_that_is_refused_ends_the_run_before_the_first_generation() -> None:
    with refused_before_generating() as options:
        register(id="refused", entry_point=env(JUDGE, **options))
        skyrl_gym.make("refused", env_config={}, extras=EXTRAS).init(list(PROMPT))
