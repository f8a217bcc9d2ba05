"""A real GRPO training in two processes: a group lies across both, and limits hold for both together."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from loopback import INSTANT, LOSING_A_TENTH, loopback, reserved_port, taking
from until import PATIENCE_S

from plaudit.simulator import Fault

pytestmark = [pytest.mark.trainers, pytest.mark.filterwarnings("ignore")]

SCRIPT = Path(__file__).with_name("rank_training.py")
THREE_FAIL = INSTANT.replace(faults=(Fault("refusal", requests=(0, 3)),))


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> str:
    from tiny_policy import save_tiny_policy

    return save_tiny_policy(tmp_path_factory.mktemp("policy"))


def train_two_ranks(policy: str, folder: Path, **options: Any) -> list[dict[str, Any]]:
    """What each rank saw, by TRL's own code."""
    with reserved_port() as port:
        ranks = [
            subprocess.Popen(
                [sys.executable, str(SCRIPT), policy, str(folder), json.dumps({"cache": None, **options})],
                env={
                    **os.environ,
                    "RANK": str(rank),
                    "LOCAL_RANK": str(rank),
                    "WORLD_SIZE": "2",
                    "MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": str(port),
                    "ACCELERATE_USE_CPU": "true",
                    "HF_HUB_OFFLINE": "1",
                },
            )
            for rank in range(2)
        ]
        assert [rank.wait(timeout=PATIENCE_S) for rank in ranks] == [0, 0]
    return [json.loads((folder / f"rank{rank}.json").read_text(encoding="utf-8")) for rank in range(2)]


def test_failures_on_one_rank_cost_no_valid_sibling_its_advantage(policy: str, tmp_path: Path) -> None:
    with loopback(THREE_FAIL) as failing, loopback(INSTANT) as sound:
        first, second = train_two_ranks(policy, tmp_path, urls=[failing.url, sound.url])
    (rewards,) = first["rewards"]
    assert [math.isnan(reward) for reward in rewards[4:]] == [False] * 4
    assert sum(map(math.isnan, rewards)) == 3  # of four on the first rank, and the fourth counts
    check_advantages(first, second)


def check_advantages(first: dict[str, Any], second: dict[str, Any]) -> None:
    """A lost row has none, and the others have what they would have in a group without it."""
    assert str(first["rewards"]) == str(second["rewards"])  # nan is not equal to itself
    for rewards, *halves in zip(first["rewards"], first["advantages"], second["advantages"], strict=True):
        valid = [reward for reward in rewards if not math.isnan(reward)]
        spread = statistics.stdev(valid) + 1e-4
        expected = [
            0.0 if math.isnan(reward) else (reward - statistics.mean(valid)) / spread for reward in rewards
        ]
        assert halves[0] + halves[1] == pytest.approx(expected, abs=1e-4)


def test_a_tenth_lost_on_both_ranks_has_no_advantage_and_changes_no_other(
    policy: str, tmp_path: Path
) -> None:
    with loopback(INSTANT.replace(faults=LOSING_A_TENTH)) as judge:
        first, second = train_two_ranks(policy, tmp_path, urls=[judge.url], steps=6, max_failure_rate=0.5)
    lost = sum(math.isnan(reward) for rewards in first["rewards"] for reward in rewards)
    assert 1 <= lost <= 16  # of 48
    check_advantages(first, second)


def test_too_many_failures_on_one_rank_end_both(policy: str, tmp_path: Path) -> None:
    with loopback(THREE_FAIL) as failing, loopback(INSTANT) as sound:
        ranks = train_two_ranks(policy, tmp_path, urls=[failing.url, sound.url], max_failure_rate=0.01)
    assert [rank.get("raised") for rank in ranks] == ["BatchFailed", "BatchFailed"]


def test_a_ceiling_on_calls_holds_for_both_ranks_together(policy: str, tmp_path: Path) -> None:
    with loopback(INSTANT.replace(latency=taking(0.2))) as server:
        train_two_ranks(policy, tmp_path, urls=[server.url], max_concurrent=3)
        assert server.stats.answered == 8
        assert server.stats.peak_in_flight <= 3
