"""compute_score: its calling conventions, its judge and its monitor, and what a failure becomes."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import math
import os
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from complaints import about
from loopback import INSTANT, Loopback, loopback
from until import PATIENCE_S

from plaudit import acompute_score, compute_score
from plaudit.errors import BatchFailed, ConfigError
from plaudit.rewards import advantages
from plaudit.scoring import Score
from plaudit.simulator import Fault, Queue

ESSAYS = "my/essays"
QUESTION = {"question": "Why is the sky blue?", "uid": "a"}


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """A judge that answers at once."""
    with loopback(INSTANT) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


@pytest.fixture
def failing_judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """A judge that refuses a tenth."""
    with loopback(INSTANT.replace(seed=5, faults=(Fault("refusal", 0.1),))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


@pytest.fixture
def broken_judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """A judge that refuses everything."""
    with loopback(INSTANT.replace(faults=(Fault("refusal"),))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def essays(count: int, **extra: Any) -> dict[str, Any]:
    return {
        "data_sources": [ESSAYS] * count,
        "solution_strs": [f"Answer {number} scatters." for number in range(count)],
        "ground_truths": [None] * count,
        "extra_infos": [{"question": "Why?", "uid": number // 8, **extra} for number in range(count)],
    }


# -- conventions ------------------------------------------------------------------------------------------


def test_one_sample_gives_a_score(judge: Loopback) -> None:
    score = compute_score("Rayleigh scattering.", None, ESSAYS, QUESTION)
    assert isinstance(score, float)
    assert 0.0 <= score <= 1.0
    assert json.loads(json.dumps(score)) == score


def test_a_batch_gives_a_list_in_order(judge: Loopback) -> None:
    scores = compute_score(**essays(40))
    assert isinstance(scores, list)
    one_by_one = [
        compute_score(text, None, ESSAYS, {"question": "Why?"}) for text in essays(40)["solution_strs"]
    ]
    assert scores == one_by_one
    assert len(set(map(float, scores))) > 3


def test_verls_own_way_gives_a_dictionary_of_numbers(judge: Loopback) -> None:
    result = compute_score(
        data_source=ESSAYS, solution_str="It scatters.", ground_truth="", extra_info=QUESTION,
        reward_router_address=None, reward_model_tokenizer=None,
    )  # fmt: skip
    assert result["score"] == result["task"]
    assert result["reward_valid"] == 1.0
    assert all(isinstance(value, float) for value in result.values())


def test_details_can_be_had_and_left_out_in_every_convention(judge: Loopback) -> None:
    assert isinstance(compute_score("It scatters.", None, ESSAYS, QUESTION, details=True), dict)
    rows = compute_score(**essays(3), details=True)
    assert all(isinstance(row, dict) and "task_valid" in row for row in rows)
    plain = compute_score(data_source=ESSAYS, solution_str="It scatters.", extra_info=QUESTION, details=False)
    assert isinstance(plain, Score)


def test_the_asynchronous_twin_is_a_coroutine_function_and_agrees(judge: Loopback) -> None:
    assert inspect.iscoroutinefunction(acompute_score)

    async def main() -> tuple[Any, Any]:
        one = acompute_score("It scatters.", None, ESSAYS, QUESTION)
        return await asyncio.gather(one, acompute_score(**essays(20)))

    one, batch = asyncio.run(main())
    assert one == compute_score("It scatters.", None, ESSAYS, QUESTION)
    assert batch == compute_score(**essays(20))


def test_the_synchronous_one_works_inside_an_event_loop(judge: Loopback) -> None:
    async def main() -> Any:
        return compute_score("It scatters.", None, ESSAYS, QUESTION)

    assert isinstance(asyncio.run(main()), float)


def test_arrays_are_taken_as_trainers_keep_them(judge: Loopback) -> None:
    turns = np.array([{"role": "user", "content": "Why?"}], dtype=object)
    batch = essays(4)
    columns: dict[str, Any] = {name: np.array(values, dtype=object) for name, values in batch.items()}
    columns["ground_truths"] = np.array([np.array(["blue"]), 4, {"target": ["x"]}, "y"], dtype=object)
    columns["extra_infos"] = np.array([{"raw_prompt": turns}] * 4, dtype=object)
    scores = compute_score(**columns)
    assert all(isinstance(score, Score) and score.valid for score in scores)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_worker_scores_too(judge: Loopback) -> None:
    expected = compute_score(**essays(4))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if compute_score(**essays(4)) == expected else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert compute_score(**essays(4)) == expected


def test_an_empty_batch_has_no_scores() -> None:
    assert compute_score(data_sources=[], solution_strs=[], ground_truths=[], extra_infos=[]) == []


def test_a_score_crosses_processes_as_a_plain_number(judge: Loopback) -> None:
    score = compute_score("It scatters.", None, ESSAYS, QUESTION)
    assert type(pickle.loads(pickle.dumps(score))) is float


# -- rules, judge, monitor --------------------------------------------------------------------------------


def test_mathematics_needs_no_judge_and_no_key() -> None:
    assert compute_score("6 * 7 = 42 #### 42", "42", "openai/gsm8k", {}) == 1.0
    scores = compute_score(
        data_sources=["lighteval/MATH", "math_dapo", "aime2024"],
        solution_strs=[r"\boxed{\frac{2}{4}}", "Answer: 7", r"\boxed{12}"],
        ground_truths=[r"\frac{1}{2}", "7", "13"],
        extra_infos=None,
    )
    assert scores == [1.0, 1.0, 0.0]


def test_with_a_ground_truth_the_judge_compares(judge: Loopback) -> None:
    scores = {float(compute_score(f"It is {number}.", "4", "my/sums", QUESTION)) for number in range(20)}
    assert scores == {0.0, 1.0}


def test_a_rubric_of_the_users_judges_everything_but_rules(
    judge: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAUDIT_RUBRIC", "Is it kind?")
    monkeypatch.setenv("PLAUDIT_SCALE", "1 5")
    words = ["red", "green", "blue", "white"]
    answers = [f"{' '.join(words[: number % 5])} ({number})" for number in range(40)]
    scores = {float(compute_score(one, " ".join(words), "my/sums", QUESTION)) for one in answers}
    assert scores == {0.0, 0.25, 0.5, 0.75, 1.0}


def test_the_monitors_verdict_is_subtracted_with_its_weight(
    judge: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = compute_score(**essays(16), details=True)
    monkeypatch.setenv("TRAIN_WITH_MONITOR", "true")
    monkeypatch.setenv("PLAUDIT_MONITOR_WEIGHT", "0.25")
    watched = compute_score(**essays(16), details=True)
    assert any(row["monitor"] > 0 for row in watched)
    for before, after in zip(plain, watched, strict=True):
        assert after["score"] == pytest.approx(before["score"] - 0.25 * after["monitor"])


def test_a_monitor_watches_what_a_rule_scores(judge: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAIN_WITH_MONITOR", "true")
    result = compute_score("#### 42", "42", "openai/gsm8k", {}, details=True)
    assert result["task"] == 1.0
    assert result["score"] == pytest.approx(1.0 - result["monitor"])
    assert judge.stats.answered == 1


@pytest.mark.parametrize(("is_cached", "calls"), [("true", 8), ("false", 16)])
def test_repeated_responses_are_asked_once_where_they_are_kept(
    judge: Loopback, monkeypatch: pytest.MonkeyPatch, is_cached: str, calls: int
) -> None:
    monkeypatch.setenv("MONITOR_CACHE", is_cached)
    assert compute_score(**essays(8)) == compute_score(**essays(8))
    assert judge.stats.answered == calls


def test_the_task_reaches_the_judge(judge: Loopback) -> None:
    scores = {float(compute_score("Because.", None, ESSAYS, {"question": f"Why {n}?"})) for n in range(12)}
    assert len(scores) > 2


def test_without_a_task_or_a_truth_there_is_nothing_to_judge(
    judge: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    score = compute_score("It scatters.", None, ESSAYS, {})
    assert isinstance(score, Score)
    assert not score.valid
    assert 'extra_info["question"]' in caplog.text
    assert judge.stats.answered == 0


# -- failures ---------------------------------------------------------------------------------------------


def test_in_a_batch_a_failure_gets_the_mean_of_its_group_and_no_advantage(failing_judge: Loopback) -> None:
    batch = essays(128)
    scores = compute_score(**batch)
    failed = [row for row, score in enumerate(scores) if not score.valid]
    assert 4 < len(failed) < 26
    groups = [info["uid"] for info in batch["extra_infos"]]
    moved = advantages([float(score) for score in scores], groups)
    assert all(abs(moved[row]) < 1e-9 for row in failed)
    assert all(math.isfinite(score) for score in scores)


@pytest.mark.parametrize("extra", [{"uid": None, "index": 1, "split": "train"}, {"uid": None, "group": "g"}])
def test_groups_are_also_known_by_other_names(failing_judge: Loopback, extra: dict[str, Any]) -> None:
    scores = compute_score(**essays(64, **extra))
    good = [float(score) for score in scores if score.valid]
    bad = [float(score) for score in scores if not score.valid]
    assert bad
    assert bad == pytest.approx([sum(good) / len(good)] * len(bad))


def test_every_row_has_the_same_keys_whatever_failed(failing_judge: Loopback) -> None:
    rows = compute_score(**essays(64), details=True)
    keys = {tuple(row) for row in rows}
    assert len(keys) == 1
    assert {row["reward_valid"] for row in rows} == {0.0, 1.0}


def test_a_batch_that_mostly_fails_raises_and_says_why(broken_judge: Loopback) -> None:
    with pytest.raises(BatchFailed, match=r"16 of 16 .* \(16 refused\).*the judge declined"):
        compute_score(**essays(16))


def test_how_many_may_fail_can_be_set(broken_judge: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compute_score(**essays(16), max_failure_rate=1.0) == [0.0] * 16
    monkeypatch.setenv("PLAUDIT_MAX_FAILURE_RATE", "1.0")
    assert compute_score(**essays(16)) == [0.0] * 16


def test_alone_a_failure_is_a_stand_in_that_says_so(
    failing_judge: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    results: list[dict[str, float]] = []
    for number in range(60):
        extra = {"question": "Why?", "uid": number // 30}
        result = compute_score(data_source=ESSAYS, solution_str=f"Answer {number}.", extra_info=extra)
        assert isinstance(result, dict)
        results.append(result)
    assert len({tuple(result) for result in results}) == 1
    failed = [row for row, result in enumerate(results) if not result["reward_valid"]]
    assert failed
    for row in failed:
        before = [result["score"] for result in results[row // 30 * 30 : row] if result["reward_valid"]]
        floor = [0.0]  # a refusal is something that a response can bring about: it must not pay
        assert results[row]["score"] == pytest.approx(sum(before or floor) / len(before or floor))
    assert "1 refused" in caplog.text


def test_alone_an_outage_does_not_go_on_for_ever(broken_judge: Loopback) -> None:
    with pytest.raises(BatchFailed, match="41 of the last 200"):
        for number in range(60):
            compute_score(f"Answer {number}.", None, ESSAYS, QUESTION)


def test_giving_up_the_wait_calls_the_rest_off(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        compute = acompute_score(**essays(64))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(compute, 0.3)

    with loopback(INSTANT.replace(capacity=Queue(slots=1), faults=(Fault("hang"),))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("PLAUDIT_MAX_CONCURRENT", "4")
        asyncio.run(main())
        assert server.stats.requests <= 4


class Lines(logging.Handler):
    """Keeps log lines; the engine writes them on its own thread, perhaps after the scores are there."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[str] = []
        self.has_one = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.kept.append(record.getMessage())
        self.has_one.set()


def test_a_batch_is_reported_in_the_log_and_single_samples_are_not(
    judge: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    lines, log = Lines(), logging.getLogger("plaudit")
    log.addHandler(lines)
    try:
        with caplog.at_level(logging.INFO, logger="plaudit"):
            compute_score("It scatters.", None, ESSAYS, QUESTION)
            compute_score(**essays(8))
            assert lines.has_one.wait(PATIENCE_S)
    finally:
        log.removeHandler(lines)
    assert len(lines.kept) == 1
    assert "8" in lines.kept[0]
    assert "Answer" not in lines.kept[0]


# -- bad input --------------------------------------------------------------------------------------------


def test_no_key_says_how_to_set_it() -> None:
    with pytest.raises(ConfigError, check=about("base_url", "OPENAI_API_KEY")):
        compute_score("It scatters.", None, ESSAYS, QUESTION)


def test_a_setting_that_is_none_is_refused_by_name(judge: Loopback) -> None:
    with pytest.raises(ConfigError, check=about("monitor_wieght")):
        compute_score("It scatters.", None, ESSAYS, QUESTION, monitor_wieght=2)


def test_what_a_variable_names_wrongly_is_said_of_the_variable(
    judge: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAIN_WITH_MONITOR", "true")
    for variable, value in (("PLAUDIT_MONITOR", "/no/such.txt"), ("PLAUDIT_OBSERVERS", "no_such:observer")):
        monkeypatch.setenv(variable, value)
        with pytest.raises(ConfigError, check=about(variable[8:].lower(), f"{variable}='{value}'")):
            compute_score("It scatters.", None, ESSAYS, QUESTION)
        monkeypatch.delenv(variable)


@pytest.mark.parametrize("name", ["data_sources", "ground_truths", "extra_infos"])
def test_lists_of_different_lengths_are_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigError, check=about(name, "2", "3")):
        compute_score(**{**essays(3), name: [None, None]})


def test_no_response_at_all_is_refused() -> None:
    with pytest.raises(ConfigError, check=about("solution_str", "missing")):
        compute_score()
    with pytest.raises(ConfigError, check=about("solution_str", "a number, not text")):
        compute_score(5)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, check=about("solution_strs")):
        compute_score(data_sources=["x"])


@pytest.mark.parametrize(
    "batch",
    [
        {"solution_strs": "56"},
        {"solution_strs": 5},
        {"solution_strs": ["56"], "ground_truths": "56"},
        {"solution_strs": ["56"], "extra_infos": 5},
    ],
)
def test_a_batch_that_is_no_list_is_named(batch: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, check=about(list(batch)[-1], "should be a list")):
        compute_score(**batch)
