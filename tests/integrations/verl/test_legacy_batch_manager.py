"""BatchRewardManager on real verl batches: scored by plaudit, by a judge, or by a function."""

from __future__ import annotations

import math
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from complaints import about
from legacy_data import RESPONSE_WIDTH, Letters, batch, rewards_of
from legacy_rows import RUBRIC, Watched
from loopback import HANGING, INSTANT, Loopback, loopback
from until import PATIENCE_S

from plaudit import compute_score
from plaudit.errors import BatchFailed, ConfigError
from plaudit.integrations.verl import BatchRewardManager
from plaudit.rewards import advantages
from plaudit.simulator import Fault

pytestmark = pytest.mark.trainers

RESPONSES = [f"It is {number}." for number in range(16)]
MIXED = ["a", "b", "c", "d"] * 4


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    with loopback() as found:
        monkeypatch.setenv("OPENAI_BASE_URL", found.url)
        monkeypatch.setenv("PLAUDIT_MODEL", "m")
        yield found


def lengths(*, solution_strs: list[str], **_: Any) -> list[float]:
    return [float(len(text)) for text in solution_strs]


# -- by a function ----------------------------------------------------------------------------------------


def test_a_function_is_called_once_with_the_whole_batch() -> None:
    calls: list[dict[str, Any]] = []

    def score(**call: Any) -> list[float]:
        calls.append(call)
        return [float(number) for number in range(16)]

    data = batch(RESPONSES, uids=MIXED)
    tensor = BatchRewardManager(Letters(), 0, score, weight=2)(data)
    assert rewards_of(tensor) == [float(number) for number in range(16)]
    assert [int(row.nonzero().max()) for row in tensor[1:]] == [len(text) - 1 for text in RESPONSES[1:]]
    (call,) = calls
    assert call["solution_strs"] == RESPONSES
    assert call["data_sources"] == ["my/essays"] * 16
    assert call["ground_truths"] == ["4"] * 16
    assert call["weight"] == 2
    assert call["extra_infos"][5]["uid"] == "b"
    assert call["extra_infos"][5]["raw_prompt"] == [{"role": "user", "content": "What is b?"}]
    assert call["extra_infos"][5]["index"] == 5
    assert "uid" not in data.non_tensor_batch["extra_info"][5]


def test_dictionaries_become_columns_with_a_value_on_every_row() -> None:
    def score(*, solution_strs: list[str], **_: Any) -> list[Any]:
        return [{"score": 0.5, "acc": 1.0, "pred": "x"} if n % 3 else 0.25 for n in range(len(solution_strs))]

    result = BatchRewardManager(Letters(), 0, score)(batch(RESPONSES), return_dict=True)
    info = result["reward_extra_info"]
    assert info["score"] == [0.5 if n % 3 else 0.25 for n in range(16)]
    assert info["acc"] == [1.0 if n % 3 else 0.0 for n in range(16)]
    assert info["pred"] == ["x" if n % 3 else "" for n in range(16)]
    assert info["plaudit/valid"] == [1.0] * 16


def test_what_is_no_score_gets_the_mean_of_its_group() -> None:
    scores = [float(number) for number in range(16)]
    scores[4] = math.nan  # of group a, with 0, 8 and 12
    data = batch(RESPONSES, uids=MIXED)
    result = BatchRewardManager(Letters(), 0, lambda **_: scores)(data, return_dict=True)
    rewards = rewards_of(result["reward_tensor"])
    assert rewards[4] == pytest.approx(20 / 3)
    assert abs(advantages(rewards, MIXED)[4]) < 1e-6
    assert result["reward_extra_info"]["plaudit/valid"][4] == 0.0


def test_a_function_that_fails_on_too_many_stops_training() -> None:
    with pytest.raises(BatchFailed, match="compute_score gave None, which is not a score"):
        BatchRewardManager(Letters(), 0, lambda **_: [None] * 16)(batch(RESPONSES))


def test_a_function_that_raises_is_heard_and_the_next_batch_may_come() -> None:
    def broken(**_: Any) -> list[float]:
        raise RuntimeError("no such table")

    manager = BatchRewardManager(Letters(), 0, broken)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no such table"):
            manager(batch(RESPONSES))


def test_one_score_for_each_response_is_demanded() -> None:
    with pytest.raises(ConfigError, check=about("", "compute_score", "3", "16")):
        BatchRewardManager(Letters(), 0, lambda **_: [1.0] * 3)(batch(RESPONSES))


def test_submit_returns_while_the_function_is_at_work() -> None:
    go = threading.Event()

    def slow(**call: Any) -> list[float]:
        assert go.wait(PATIENCE_S)
        return lengths(**call)

    manager = BatchRewardManager(Letters(), 0, slow)
    manager.submit(batch(RESPONSES))
    go.set()
    assert rewards_of(manager.collect()) == [float(len(text)) for text in RESPONSES]


def test_for_debugging_the_function_runs_on_the_callers_thread() -> None:
    seen: list[str] = []

    def where(**call: Any) -> list[float]:
        seen.append(threading.current_thread().name)
        return lengths(**call)

    manager = BatchRewardManager(Letters(), 0, where, use_async_io=False)
    manager.submit(batch(RESPONSES))
    assert seen == [threading.current_thread().name]
    assert manager.collect().shape == (16, RESPONSE_WIDTH)


def test_a_function_that_takes_too_long_counts_as_missing() -> None:
    go = threading.Event()
    manager = BatchRewardManager(Letters(), 0, lambda **_: go.wait(PATIENCE_S) and [], time_limit=0.1)
    with pytest.raises(BatchFailed, match=r"16 deadline.*within time_limit"):
        manager(batch(RESPONSES))
    go.set()


def test_plaudits_own_function_sees_task_and_group(server: Loopback) -> None:
    def wrapped(**call: Any) -> Any:  # as verl wraps a custom_reward_function
        return compute_score(**call, details=True)

    data = batch(RESPONSES, uids=MIXED, truth=None)
    result = BatchRewardManager(Letters(), 0, wrapped)(data, return_dict=True)
    assert result["reward_extra_info"]["task_valid"] == [1.0] * 16
    assert server.stats.answered == 16


# -- by plaudit -------------------------------------------------------------------------------------------


def test_without_a_function_a_rule_scores_mathematics_and_a_judge_the_rest(server: Loopback) -> None:
    sources = ["openai/gsm8k"] * 8 + ["my/essays"] * 8
    data = batch(["#### 4", "#### 5"] * 4 + RESPONSES[:8], uids=MIXED, data_source=sources)
    result = BatchRewardManager(Letters(), 0)(data, return_dict=True)
    assert rewards_of(result["reward_tensor"])[:8] == [1.0, 0.0] * 4
    assert server.stats.answered == 8
    assert result["reward_extra_info"]["reward_valid"] == [1.0] * 16


def test_verls_function_for_single_rows_is_no_function_for_a_batch(server: Loopback) -> None:
    from verl.utils.reward_score import default_compute_score

    tensor = BatchRewardManager(Letters(), 0, default_compute_score)(batch(RESPONSES, truth=None))
    assert tensor.shape == (16, RESPONSE_WIDTH)
    assert server.stats.answered == 16


def test_the_monitor_is_heard_where_it_is_wanted(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAIN_WITH_MONITOR", "true")
    result = BatchRewardManager(Letters(), 0)(batch(RESPONSES), return_dict=True)
    assert any(value > 0 for value in result["reward_extra_info"]["monitor"])


def test_the_time_limit_leaves_what_came_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback(INSTANT.replace(faults=(Fault("hang", requests=(12, 999)),))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("PLAUDIT_MODEL", "m")
        data = batch(RESPONSES, uids=MIXED, truth=None)
        manager = BatchRewardManager(Letters(), 0, time_limit=2.0, max_failure_rate=0.5)
        valid = manager(data, return_dict=True)["reward_extra_info"]["reward_valid"]
        assert 4 <= sum(valid) <= 12


def test_no_key_says_how_to_set_it() -> None:
    with pytest.raises(ConfigError, check=about("base_url", "export OPENAI_API_KEY=")):
        BatchRewardManager(Letters(), 0)(batch(RESPONSES))


# -- by a judge -------------------------------------------------------------------------------------------


def test_a_judge_alone_scores_every_row_from_0_to_1(server: Loopback) -> None:
    judge = Watched()
    result = BatchRewardManager(Letters(), 0, judge=judge)(batch(RESPONSES, uids=MIXED), return_dict=True)
    rewards = rewards_of(result["reward_tensor"])
    assert rewards == pytest.approx(result["reward_extra_info"]["plaudit/judge"])
    assert len(set(rewards)) > 1
    assert server.stats.answered == 16
    assert judge.samples[0].prompt == ({"role": "user", "content": "What is a?"},)


def test_a_judge_that_hangs_stops_at_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback(HANGING) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with pytest.raises(BatchFailed, match="16 deadline"):
            BatchRewardManager(Letters(), 0, judge=RUBRIC, time_limit=0.2)(batch(RESPONSES))


# -- the rest ---------------------------------------------------------------------------------------------


def test_a_pickled_manager_scores_alike(server: Loopback) -> None:
    data = batch(RESPONSES, uids=MIXED)
    for manager in (
        BatchRewardManager(Letters(), 0),
        BatchRewardManager(Letters(), 0, judge=RUBRIC),
        BatchRewardManager(Letters(), 0, lengths),
    ):
        tensor = manager(data)
        assert torch.equal(pickle.loads(pickle.dumps(manager))(data), tensor)
        manager.shutdown_workers()


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, check=about("compute_score")):
        BatchRewardManager(Letters(), 0, lengths, judge=RUBRIC)
    with pytest.raises(ConfigError, check=about("", "'weight'", "compute_score")):
        BatchRewardManager(Letters(), 0, weight=2)
    with pytest.raises(ConfigError, check=about("", "submit(data)")):
        BatchRewardManager(Letters(), 0, lengths).collect()


def test_a_judge_that_will_never_answer_ends_the_run_when_the_manager_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with loopback(INSTANT.replace(api_key="sk-right")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong")
        monkeypatch.setenv("PLAUDIT_MODEL", "m")
        for judge in (None, RUBRIC):
            with pytest.raises(BatchFailed, match=r"will never answer: .* 401"):
                BatchRewardManager(Letters(), 0, judge=judge)
