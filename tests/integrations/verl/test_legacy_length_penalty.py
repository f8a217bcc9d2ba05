"""LengthPenaltyRewardManager on real verl batches: tensors, extra information, submit and collect."""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from complaints import about
from legacy_data import RESPONSE_WIDTH, Letters, batch, rewards_of
from legacy_rows import RUBRIC, Watched
from loopback import HANGING, INSTANT, Loopback, loopback, taking
from until import until

from plaudit.errors import BatchFailed, ConfigError
from plaudit.integrations.verl import LengthPenaltyConfig, LengthPenaltyRewardManager
from plaudit.simulator import Fault

pytestmark = pytest.mark.trainers

RESPONSES = ["It is 4.", "Four.", "", "It is 5, or so I believe.", "4", "It is 4, since 2 and 2 make 4."]
MIXED = ["a", "b", "a", "b", "a", "b"]


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback() as found:
        yield found


def has_four(*, solution_str: str, ground_truth: str, **_: Any) -> float:
    return float(ground_truth in solution_str)


def manager(server: Loopback, **changes: Any) -> LengthPenaltyRewardManager:
    given: dict[str, Any] = {"num_examine": 0, "compute_score": has_four}
    given |= {name: changes.pop(name) for name in given if name in changes}
    table: dict[str, Any] = {"model_name": "m", "api_endpoint": server.url, "judge": RUBRIC, **changes}
    config = LengthPenaltyConfig(**table)
    return LengthPenaltyRewardManager(tokenizer=Letters(), length_penalty_config=config, **given)


# -- what verl gets ---------------------------------------------------------------------------------------


def test_the_reward_stands_on_the_last_token_of_each_response(server: Loopback) -> None:
    tensor = manager(server)(batch(RESPONSES, uids=MIXED))
    assert tensor.shape == (6, RESPONSE_WIDTH)
    assert tensor.dtype is torch.float32
    for row, response in zip(tensor, RESPONSES, strict=True):
        assert set(row.nonzero().flatten().tolist()) <= {max(len(response) - 1, 0)}
    assert (
        tensor[2, 0] == -1.0
    )  # an empty response has no last token; its group needs its reward all the same


def test_with_return_dict_extra_information_is_in_the_order_of_the_batch(server: Loopback) -> None:
    result = manager(server)(batch(RESPONSES, uids=MIXED), return_dict=True)
    info = result["reward_extra_info"]
    assert info["score"] == pytest.approx(rewards_of(result["reward_tensor"]))
    assert info["plaudit/length"] == [float(len(response)) for response in RESPONSES]
    assert info["plaudit/rule"] == [1.0, 0.0, 0.0, 0.0, 1.0, 1.0]
    assert {len(values) for values in info.values()} == {6}
    again = manager(server)(batch(RESPONSES, uids=MIXED))
    assert torch.equal(again, result["reward_tensor"])


def test_what_the_rule_says_beside_its_score_has_a_value_on_every_row(server: Loopback) -> None:
    def rule(*, solution_str: str, **_: Any) -> Any:
        if not solution_str:
            return 0.0
        return {"score": 1.0, "acc": True, "pred": solution_str[:2], "depth": len(solution_str)}

    info = manager(server, compute_score=rule)(batch(RESPONSES), return_dict=True)["reward_extra_info"]
    assert info["pred"] == ["It", "Fo", "", "It", "4", "It"]
    assert info["depth"] == [8, 5, 0.0, 25, 1, 30]
    assert len(info["acc"]) == 6


def test_what_a_reward_model_said_is_passed_on(server: Loopback) -> None:
    data = batch(RESPONSES, hint=["x"] * 6)
    data.batch["rm_scores"] = torch.ones(6, RESPONSE_WIDTH)
    data.meta_info["reward_extra_keys"] = ["hint"]
    reward = manager(server)
    assert reward(data) is data.batch["rm_scores"]
    result = reward(data, return_dict=True)
    assert result["reward_tensor"] is data.batch["rm_scores"]
    assert list(result["reward_extra_info"]["hint"]) == ["x"] * 6
    assert server.stats.requests == 0


def test_an_empty_batch_has_an_empty_tensor(server: Loopback) -> None:
    data = batch(RESPONSES)[:0]
    assert manager(server)(data).shape == (0, RESPONSE_WIDTH)


def test_rows_are_printed_as_verls_managers_do(server: Loopback, capsys: pytest.CaptureFixture[str]) -> None:
    sources = ["x", "y", "x", "x", "y", "y"]
    manager(server, num_examine=2)(batch(RESPONSES, data_source=sources))
    said = capsys.readouterr().out
    assert said.count("[prompt]") == said.count("[response]") == said.count("[ground_truth] 4") == 4
    assert "[response] It is 4.\n" in said
    assert said.count("[score]") == 4
    manager(server)(batch(RESPONSES))
    assert capsys.readouterr().out == ""


def test_the_batch_is_left_as_it_was(server: Loopback) -> None:
    data = batch(RESPONSES)
    before = pickle.dumps((sorted(data.batch.keys()), dict(data.non_tensor_batch)))
    manager(server)(data)
    assert pickle.dumps((sorted(data.batch.keys()), dict(data.non_tensor_batch))) == before


def test_verls_own_rule_scores_where_no_other_is_given(server: Loopback) -> None:
    data = batch(["#### 4", "#### 5"], data_source=["openai/gsm8k"] * 2)
    info = manager(server, compute_score=None)(data, return_dict=True)["reward_extra_info"]
    assert info["plaudit/rule"] == [1.0, 0.0]


# -- in two calls -----------------------------------------------------------------------------------------


def test_log_probs_are_computed_between_submit_and_collect() -> None:
    with loopback(INSTANT.replace(latency=taking(1.0))) as server:
        reward = manager(server)
        reward.start_workers()
        data = batch(RESPONSES, uids=MIXED)
        reward.submit(data)
        assert server.stats.answered == 0  # the trainer goes on, and the replies come without it
        until(lambda: server.stats.answered >= 5)
        tensor = reward.collect()
        reward.shutdown_workers()
        assert torch.equal(tensor, manager(server)(data))


def test_a_batch_that_was_submitted_is_collected_by_the_usual_call(server: Loopback) -> None:
    reward = manager(server, cache=None)
    data = batch(RESPONSES)
    reward.submit(data)
    data.batch["old_log_probs"] = torch.zeros(6, RESPONSE_WIDTH)  # as trainers do meanwhile
    result = reward(data.select(batch_keys=list(data.batch.keys())), return_dict=True)
    assert result["reward_tensor"].shape == (6, RESPONSE_WIDTH)
    assert server.stats.answered == 5
    with pytest.raises(ConfigError, check=about("", "submit(data)")):
        reward.collect()


def test_calls_in_the_wrong_order_say_so(server: Loopback) -> None:
    reward = manager(server)
    with pytest.raises(ConfigError, check=about("", "submit(data)")):
        reward.collect()
    reward.submit(batch(RESPONSES))
    for wrong in (reward.submit, reward):
        with pytest.raises(ConfigError, check=about("", "6", "collect()")):
            wrong(batch(RESPONSES[:3]))
    assert reward.collect().shape == (6, RESPONSE_WIDTH)
    reward.submit(batch(RESPONSES[:3]))
    reward.shutdown_workers()
    with pytest.raises(ConfigError, check=about("", "shutdown_workers()")):
        reward.collect()
    assert reward(batch(RESPONSES)).shape == (6, RESPONSE_WIDTH)


def test_rewards_of_a_reward_model_are_collected_too(server: Loopback) -> None:
    data = batch(RESPONSES)
    data.batch["rm_scores"] = torch.ones(6, RESPONSE_WIDTH)
    reward = manager(server)
    reward.submit(data)
    assert reward.collect() is data.batch["rm_scores"]


def test_after_a_failed_batch_the_next_one_may_come() -> None:
    with loopback(INSTANT.replace(faults=(Fault("refusal", requests=(0, 5)),))) as server:
        reward = manager(server, use_async_io=False)
        with pytest.raises(BatchFailed, match="refused"):
            reward(batch(RESPONSES), return_dict=True)
        assert reward(batch(RESPONSES)).shape == (6, RESPONSE_WIDTH)


def test_the_time_limit_holds_for_the_batch_and_not_for_each_group() -> None:
    with loopback(HANGING) as server:
        reward = manager(server, time_limit=1.5, max_failure_rate=1.0, enable=False)
        start = time.monotonic()
        result = reward(batch(["x"] * 16, uids=[str(n) for n in range(16)]), return_dict=True)
        assert time.monotonic() - start < 16 * 1.5
        assert result["reward_extra_info"]["plaudit/status"] == ["deadline"] * 16
        assert not result["reward_tensor"].isnan().any()


def test_both_modes_give_the_same_tensor(server: Loopback) -> None:
    data = batch(RESPONSES, uids=MIXED)
    assert torch.equal(manager(server)(data), manager(server, use_async_io=False, cache=None)(data))


def test_the_log_says_how_many_how_long_and_the_average_and_no_text(
    server: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="plaudit"):
        reward = manager(server)
        reward(batch(RESPONSES))
        reward.shutdown_workers()
    assert "scored 6 of 6 in" in caplog.text
    assert "ms a response" in caplog.text
    assert "rewards of 6 responses; waited" in caplog.text
    assert "It is" not in caplog.text


# -- in another process -----------------------------------------------------------------------------------


def test_a_pickled_manager_scores_alike_and_its_key_travels_unseen() -> None:
    with loopback(INSTANT.replace(api_key="sk-right")) as server:
        reward = manager(server, api_key="sk-right")
        data = batch(RESPONSES, uids=MIXED)
        tensor = reward(data)
        reward.submit(data)
        with pytest.raises(TypeError, match=r"a batch is in flight.*collect\(\) it before pickling"):
            pickle.dumps(reward)
        reward.collect()
        other = pickle.loads(pickle.dumps(reward))
        assert "sk-right" not in repr(other.config)
        assert torch.equal(other(data), tensor)


# -- bad input --------------------------------------------------------------------------------------------


def test_without_uid_rows_of_one_prompt_are_a_group_and_it_is_said_once(
    server: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    prompts = [f"What is {uid}?" for uid in MIXED]
    reward = manager(server)
    known = reward(batch(RESPONSES, uids=MIXED))
    for _ in range(2):
        assert torch.equal(reward(batch(RESPONSES, prompts=prompts, uid=None)), known)
    assert caplog.text.count("uid: row 0") == 1
    assert 'non_tensor_batch["uid"]' in caplog.text


def test_without_raw_prompt_the_judge_sees_the_task_as_its_tokens_say_it(
    server: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    judge = Watched()
    manager(server, judge=judge)(batch(RESPONSES[:2], prompts=["What is 2 and 2?"] * 2, raw_prompt=None))
    assert {sample.prompt for sample in judge.samples} == {"What is 2 and 2?"}
    assert "raw_prompt: row 0" in caplog.text
    assert "data.return_raw_chat=True" in caplog.text


def test_with_raw_prompt_the_judge_sees_the_conversation(server: Loopback) -> None:
    judge = Watched()
    manager(server, judge=judge)(batch(RESPONSES[:1]))
    assert judge.samples[0].prompt == ({"role": "user", "content": "What is a?"},)
    assert judge.samples[0].reference == "4"


def test_missing_ground_truth_and_unknown_data_source_are_named_with_their_rows(
    server: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    reward = manager(server, compute_score=None)
    data = batch(RESPONSES, uids=MIXED, truth=None, data_source=["openai/gsm8k"] * 6)
    assert reward(data, return_dict=True)["reward_extra_info"]["plaudit/rule_valid"] == [0.0] * 6
    assert "the first is row 0" in caplog.text
    assert 'reward_model["ground_truth"] is missing' in caplog.text
    caplog.clear()
    reward(batch(RESPONSES, uids=MIXED))
    assert "there is no rule for data_source='my/essays'" in caplog.text


def test_a_column_that_is_not_there_is_named(server: Loopback) -> None:
    with pytest.raises(ConfigError, check=about("data_source", "row 0", "data.reward_fn_key")):
        manager(server)(batch(RESPONSES, data_source=None))


def test_no_key_and_no_endpoint_are_said_when_the_manager_is_made() -> None:
    with pytest.raises(ConfigError, check=about("api_endpoint", "export OPENAI_BASE_URL")):
        LengthPenaltyRewardManager(tokenizer=Letters(), num_examine=0, compute_score=has_four)
    with pytest.raises(ConfigError, check=about("api_key_env", "export OPENAI_API_KEY")):
        LengthPenaltyRewardManager(
            tokenizer=Letters(),
            num_examine=0,
            compute_score=has_four,
            length_penalty_config={"api_endpoint": "https://api.openai.com/v1"},
        )
