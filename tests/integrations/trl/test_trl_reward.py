"""reward_function without a trainer: what it gives, what it logs, what it says when something is wrong."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import pickle
from pathlib import Path
from typing import Any

import pytest
from choosy import JUDGE, Choosy
from complaints import about
from loopback import HANGING, INSTANT, loopback, reserved_port, taking
from until import until

from plaudit import Endpoint, Engine, EngineConfig, Group, Monitor, Pairwise, Price, Reference, Rubric, Sample
from plaudit.errors import BatchFailed, ConfigError
from plaudit.integrations.trl import overlap, reward_function
from plaudit.integrations.trl.ranks import rank_share
from plaudit.integrations.trl.trainer_facts import check_version, warn_of_split
from plaudit.journal import JournalIndex
from plaudit.rewards import Component, LengthPenalty, RuleReward
from plaudit.rewards.failure import OnFailure
from plaudit.simulator import Fault


class Wishing(Choosy):
    """The same for other judges, too, and without a cache."""

    def verdict(self, worth: int) -> str:
        is_right = "true" if worth > 4 else "false"
        return f'{{"reason": "as wished", "score": {worth}, "equivalent": {is_right}, "suspicion": 8}}'

    @property
    def options(self) -> dict[str, Any]:
        return {**super().options, "cache": None}


class Trainer:
    """As much of a trainer as a reward function gets to see."""

    def __init__(self, *reward_funcs: Any, num_generations: int = 4) -> None:
        self.reward_funcs = list(reward_funcs)
        self.num_generations = num_generations
        self.metrics: dict[str, float] = {}
        self.extra: dict[str, list[Any]] = {}

    def log_metric(self, name: str, value: float) -> None:
        self.metrics[name] = value

    def log_extra(self, column: str, values: list[Any]) -> None:
        self.extra[column] = values

    def rewards(self, completions: list[Any], **columns: Any) -> list[float | None]:
        rewards: list[float | None] = asyncio.run(
            self.reward_funcs[0](
                prompts=["What is 7 x 8?"] * len(completions),
                completions=completions,
                completion_ids=[[1] * 10] * len(completions),
                trainer_state=None,
                log_metric=self.log_metric,
                log_extra=self.log_extra,
                **columns,
            )
        )
        return rewards


def worth(*scores: int) -> list[str]:
    return [f"answer {number}, worth {score}" for number, score in enumerate(scores)]


# -- what it is -------------------------------------------------------------------------------------------


def test_it_is_an_async_function_with_a_name_and_trls_signature() -> None:
    function = reward_function(JUDGE, **Wishing().options)
    assert inspect.iscoroutinefunction(function)
    assert function.__name__ == "judged_reward"
    assert list(inspect.signature(function).parameters) == [
        "prompts", "completions", "completion_ids", "columns",
    ]  # fmt: skip


def test_it_works_without_anything_but_prompts_and_completions() -> None:
    function = reward_function(JUDGE, **Wishing().options)
    assert asyncio.run(function(["q"], ["worth 3"])) == [0.3]


def test_it_works_on_one_event_loop_after_another() -> None:
    function = reward_function(JUDGE, **Wishing().options)
    assert [asyncio.run(function(["q"], [text])) for text in worth(3, 9)] == [[0.3], [0.9]]


def test_it_crosses_processes_as_its_settings() -> None:
    with loopback(INSTANT) as judge:
        function = reward_function(JUDGE, penalty=LengthPenalty(), url=judge.url, model="m", cache=None)
        again = pickle.loads(pickle.dumps(function))
        assert inspect.iscoroutinefunction(again)
        first, second = (asyncio.run(f(["q"] * 4, worth(1, 2, 3, 4), [[1]] * 4)) for f in (function, again))
        assert first == second


def test_a_live_engine_does_not_cross_and_the_error_says_what_does() -> None:
    with Engine(**Wishing().options) as engine:
        function = reward_function(JUDGE, engine=engine)
        with pytest.raises(TypeError, match="url= and model="):
            pickle.dumps(function)


def test_equal_options_share_an_engine_and_what_it_remembers() -> None:
    wishing = Wishing()
    options = wishing.options | {"cache": "memory"}
    for function in (reward_function(JUDGE, **options), reward_function(JUDGE, **options)):
        assert asyncio.run(function(["q"], ["worth 3"])) == [0.3]
    assert len(wishing.asked) == 1


# -- rewards ----------------------------------------------------------------------------------------------


def test_a_row_without_a_verdict_is_none_and_its_neighbours_are_not(caplog: pytest.LogCaptureFixture) -> None:
    trainer = Trainer(reward_function(JUDGE, **Wishing().options))
    assert trainer.rewards([*worth(9, 5, 1), "lost"]) == [0.9, 0.5, 0.1, None]
    assert "1 of 4 completions have no verdict (1 failed)" in caplog.text


def test_judge_rules_and_penalty_add_up() -> None:
    def accuracy(completions: list[str], solution: list[str], **_: Any) -> list[float]:
        return [float(answer in text) for text, answer in zip(completions, solution, strict=True)]

    def tone(sample: Sample) -> float:
        return 0.0 if sample.extra["solution"] == "never" else 0.01

    function = reward_function(
        JUDGE,
        weight=0.5,
        rules=[accuracy, Component("tone", RuleReward(tone))],
        penalty=LengthPenalty(side="over"),
        **Wishing().options,
    )
    rewards = asyncio.run(
        function(
            ["q"] * 4,
            worth(8, 6, 4, 2),
            [[1] * n for n in (10, 10, 10, 20)],
            solution=["answer 0", "no", "no", "never"],
        )
    )
    assert rewards == pytest.approx([0.4 + 1 + 0.01, 0.3 + 0.01, 0.2 + 0.01, 0.1 - 1])


def test_rules_have_weights_may_be_async_and_may_be_silent() -> None:
    async def length(completions: list[str], **_: Any) -> list[float | None]:
        await asyncio.sleep(0)
        return [1.0, None, 1.0, 1.0]

    trainer = Trainer(reward_function(JUDGE, rules=[length], rule_weights=[0.1], **Wishing().options))
    assert trainer.rewards(worth(4, 4, 4, 4)) == pytest.approx([0.5, None, 0.5, 0.5])


def test_groups_follow_the_trainers_size_so_that_a_median_is_of_one_prompt() -> None:
    trainer = Trainer(reward_function(JUDGE, penalty=LengthPenalty(), **Wishing().options), num_generations=2)
    call = trainer.reward_funcs[0]
    lengths = [[1] * n for n in (10, 10, 30, 30)]
    columns = {"log_metric": trainer.log_metric}
    assert asyncio.run(call(["q"] * 4, worth(5, 5, 5, 5), lengths, **columns)) == [0.5] * 4


def test_an_empty_completion_is_settled_without_a_call() -> None:
    wishing = Wishing()
    trainer = Trainer(reward_function(JUDGE, **wishing.options))
    assert trainer.rewards(["", " ", "worth 4", "worth 6"]) == [0.0, 0.0, 0.4, 0.6]
    assert len(wishing.asked) == 2
    assert trainer.extra["judge_status"] == ["empty", "empty", "ok", "ok"]


def test_a_failure_can_be_the_mean_of_its_group_a_number_or_an_error() -> None:
    texts = [*worth(8, 6, 4), "lost"]
    cases: list[tuple[OnFailure, float]] = [("group_mean", 0.6), (-1.0, -1.0)]
    for on_failure, expected in cases:
        trainer = Trainer(reward_function(JUDGE, on_failure=on_failure, **Wishing().options))
        assert trainer.rewards(texts)[3] == pytest.approx(expected)
    with pytest.raises(BatchFailed, match="1 of 4"):
        Trainer(reward_function(JUDGE, on_failure="raise", **Wishing().options)).rewards(texts)


def test_too_many_failures_raise_with_the_error_after_the_good_ones_are_stored() -> None:
    wishing = Wishing()
    options = wishing.options | {"cache": "memory"}
    trainer = Trainer(reward_function(JUDGE, **options))
    texts = [*worth(*[5] * 100), *(f"lost {number}" for number in range(100))]
    with pytest.raises(BatchFailed, match=r"100 of the last 200 .*request is too long.*max_failure_rate="):
        trainer.rewards(texts)
    asked = len(wishing.asked)
    tolerant = Trainer(reward_function(JUDGE, max_failure_rate=None, **options))
    assert tolerant.rewards(texts)[:100] == [0.5] * 100
    assert len(wishing.asked) == asked + 100


def test_a_judge_that_never_answers_is_stopped_at_the_first_batch() -> None:
    trainer = Trainer(reward_function(JUDGE, **Wishing().options))
    with pytest.raises(BatchFailed, match="no verdict at all, on 8 completions"):
        trainer.rewards([f"lost {number}" for number in range(8)])


def test_a_judge_that_hangs_is_waited_for_until_the_deadline() -> None:
    with loopback(HANGING) as judge:
        options: Any = {"url": judge.url, "model": "m", "cache": None, "deadline": 0.05}
        trainer = Trainer(reward_function(JUDGE, **options))
        assert trainer.rewards(worth(1, 2)) == [None, None]
    assert trainer.extra["judge_status"] == ["deadline"] * 2


def test_a_call_that_is_given_up_calls_the_judge_off() -> None:
    async def main(url: str) -> None:
        reward = reward_function(JUDGE, url=url, model="m", cache=None, max_concurrent=1)
        given_up = asyncio.create_task(reward(["q"] * 4, worth(1, 2, 3, 4)))
        await asyncio.sleep(0)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        await reward(["Another question?"], ["Yes."])

    with loopback(INSTANT.replace(latency=taking(0.01))) as judge:
        asyncio.run(main(judge.url))
        assert judge.stats.requests < 5  # the four that were given up come first, or not at all


def test_a_monitor_penalises_and_speaks_in_the_table() -> None:
    monitor = Monitor("It games the score.", use="penalise")
    trainer = Trainer(reward_function(JUDGE, monitor=monitor, **Wishing().options))
    assert trainer.rewards(worth(9, 8)) == pytest.approx([0.1, 0.0])
    assert trainer.extra["monitor_reason"] == ["as wished"] * 2


# -- what is logged ---------------------------------------------------------------------------------------


def test_metrics_and_the_judges_words_reach_the_trainer() -> None:
    trainer = Trainer(reward_function(JUDGE, **Wishing().options))
    trainer.rewards([*worth(9, 5, 1), "lost"])
    assert trainer.metrics["judge/score_mean"] == pytest.approx(0.5)
    assert trainer.metrics["judge/failure_rate/failed"] == 0.25
    assert trainer.metrics["judge/wait_s"] >= 0.0
    assert trainer.extra["judge_status"] == ["ok", "ok", "ok", "failed"]
    assert trainer.extra["judge_reason"][0] == "as wished"
    assert "too long" in trainer.extra["judge_reason"][3]


def test_the_table_of_completions_names_the_records_of_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "j"
    trainer = Trainer(reward_function(JUDGE, journal=str(path), **Wishing().options))
    completions = worth(9, 5, 1)
    trainer.rewards(completions)
    with JournalIndex(path) as index:
        until(lambda: (index.refresh(), len(index))[1] >= 3)
        rows = [index.row_of(record) for record in trainer.extra["judge_record"]]
        assert [index.text(row).response for row in rows if row is not None] == completions


def test_other_reward_functions_beside_it_are_warned_of_with_the_arithmetic(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def brevity(completions: list[str], **_: Any) -> list[float]:
        return [1.0] * len(completions)

    trainer = Trainer(reward_function(JUDGE, **Wishing().options), brevity)
    trainer.rewards(worth(1, 2))
    trainer.rewards(worth(3, 4))
    (record,) = [record for record in caplog.records if "brevity" in record.getMessage()]
    assert "+0.5, +0.5, +0.5, -1.5" in record.getMessage()
    assert "rules=[...]" in record.getMessage()


def test_alone_it_warns_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    Trainer(reward_function(JUDGE, penalty=LengthPenalty(), **Wishing().options)).rewards(worth(1, 2, 3, 4))
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_group_that_is_split_over_processes_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    assert warn_of_split(["0", "0", "1"], 2)
    assert "only 1 of them in this process" in caplog.text
    assert not warn_of_split(["0", "0"], 2)
    assert not warn_of_split(["0"], None)


def test_the_parts_of_the_ranks_add_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = Endpoint("http://host/v1", model="m", max_concurrent=5, price=Price(1.0, 1.0))
    limited = EngineConfig(endpoints=(endpoint,), rpm=61, budget=10.0)
    monkeypatch.setenv("WORLD_SIZE", "4")
    parts = []
    for rank in range(4):
        monkeypatch.setenv("RANK", str(rank))
        parts.append(rank_share(limited))
    assert [part.rpm for part in parts] == [16, 15, 15, 15]
    assert [part.endpoints[0].max_concurrent for part in parts] == [2, 1, 1, 1]
    assert sum(part.budget or 0.0 for part in parts) == 10.0
    assert {part.tpm for part in parts} == {None}


def test_a_limit_that_no_rank_could_keep_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "8")
    with pytest.raises(ConfigError, check=about("rpm")):
        reward_function(JUDGE, rpm=6, **Wishing().options)


# -- bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "setting"),
    [
        ({"penality": LengthPenalty()}, "penality"),
        ({"max_concurent": 3}, "max_concurent"),
        ({"judge": "Is it good?"}, "judge"),
        ({"judge": Rubric}, "judge"),
        ({"rules": ["accuracy"]}, "rules[0]"),
        ({"rules": 1.0}, "rules[0]"),
        ({"rules": [len], "rule_weights": [1, 2]}, "rule_weights"),
        ({"rules": [len], "rule_weights": 2}, "rule_weights"),
        ({"rules": [Component("a", RuleReward(lambda _: 1.0))], "rule_weights": [2.0]}, "rule_weights[0]"),
        ({"on_failure": "maks"}, "on_failure"),
        ({"url": "judge:8000"}, "url"),
    ],
)
def test_what_is_wrong_is_named_before_anything_is_sent(options: dict[str, Any], setting: str) -> None:
    with pytest.raises(ConfigError, check=about(setting)):
        reward_function(**{"judge": JUDGE, **Wishing().options, **options})


def test_an_engine_and_its_options_exclude_each_other() -> None:
    with (
        Engine(**Wishing().options) as engine,
        pytest.raises(ConfigError, check=about("engine")),
    ):
        reward_function(JUDGE, engine=engine, rpm=3)


def test_a_judge_that_compares_asks_for_the_column() -> None:
    trainer = Trainer(reward_function(Reference(), **Wishing().options))
    with pytest.raises(ConfigError, check=about("", "reference=None", "reference=", "solution")):
        trainer.rewards(worth(9, 9), solution=["56", "56"])


def test_one_row_without_a_reference_costs_only_itself(caplog: pytest.LogCaptureFixture) -> None:
    trainer = Trainer(reward_function(Reference(), reference="solution", **Wishing().options))
    assert trainer.rewards(worth(9, 9, 9, 1), solution=["56", None, "56", "56"]) == [1.0, None, 1.0, 0.0]
    assert "row 1: reference=None is not a right answer to compare with" in caplog.text


def test_a_rule_that_gives_too_few_is_named() -> None:
    def short(**_: Any) -> list[float]:
        return [1.0]

    with pytest.raises(ConfigError, check=about("", "'short'", "1", "2")):
        Trainer(reward_function(JUDGE, rules=[short], **Wishing().options)).rewards(worth(1, 2))


def test_a_penalty_without_lengths_names_what_is_missing() -> None:
    function = reward_function(JUDGE, penalty=LengthPenalty(), **Wishing().options)
    with pytest.raises(ConfigError, check=about("completion_ids")):
        asyncio.run(function(["q"], ["worth 1"]))
    with pytest.raises(ConfigError, check=about("completion_ids", "1 entries for 2 completions")):
        asyncio.run(function(["q", "q"], worth(1, 2), completion_ids=[[1]]))


def test_a_row_that_broke_the_judge_has_a_floor_and_its_rule_counts() -> None:
    def one(completions: list[str], **_: Any) -> list[float]:
        return [1.0] * len(completions)

    class Puzzled(Wishing):
        def verdict(self, worth: int) -> str:
            return super().verdict(worth) if worth else "I cannot say."

    options: Any = {"rules": one, "on_content_failure": "floor", **Puzzled().options}
    assert Trainer(reward_function(JUDGE, **options)).rewards(worth(9, 5, 1, 0)) == [1.9, 1.5, 1.1, 1.0]


@pytest.mark.parametrize("version", ["0.29.0", "1.5.1"])
def test_a_trl_that_would_train_on_failures_is_refused(version: str) -> None:
    with pytest.raises(ConfigError, check=about("", f"TRL {version}", "pip install 'trl>=1.6'")):
        check_version("mask", version)


def test_an_old_trl_will_do_where_no_row_is_none() -> None:
    check_version("group_mean", "1.5.1")
    check_version("mask", "1.16.0")
    check_version("mask", "2.0.0.dev0")


def test_a_class_that_is_built_otherwise_is_given_back_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Other:
        """No trainer of TRL's."""

    assert overlap(Other) is Other
    assert "knows TRL 1.6 to 1.16" in caplog.text
    assert "Other has no method _generate" in caplog.text


def test_a_group_judge_compares_the_completions_of_one_prompt() -> None:
    with loopback(INSTANT) as judge:
        function = reward_function(
            Group("Which is best?"), num_generations=4, url=judge.url, model="m", cache=None
        )
        rewards = asyncio.run(function(["q"] * 8, worth(*range(8))))
        assert judge.stats.requests == 2
    assert len(rewards) == 8
    assert None not in rewards


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"api_key": "sk-wrong"}, "401.*api_key"),
        ({"model": "missing"}, "404.*missing"),
        ({"route": "/v2"}, "404.*base URL"),
    ],
)
def test_a_judge_that_will_never_answer_is_named_before_there_is_a_trainer(
    wrong: dict[str, str], named: str
) -> None:
    with loopback(INSTANT.replace(api_key="sk-right")) as judge:
        given: dict[str, Any] = {"model": "m", "api_key": "sk-right", **wrong}
        url = judge.url.replace("/v1", given.pop("route", "/v1"))
        with pytest.raises(BatchFailed, match=named) as caught:
            reward_function(JUDGE, url=url, cache=None, max_failure_rate=None, **given)
        assert "checkpoint" not in str(caught.value)  # there is none yet
        assert "sk-" not in str(caught.value)
        reward_function(JUDGE, url=judge.url, model="m", api_key="sk-right", cache=None)


def test_a_server_that_was_mended_is_asked_anew() -> None:
    with loopback(INSTANT.replace(api_key="sk-right")) as judge:
        options: Any = {"url": judge.url, "model": "m", "api_key": "sk-wrong", "cache": None}
        with pytest.raises(BatchFailed, match="401"):
            reward_function(JUDGE, **options)
        judge.server.become(INSTANT, now=0.0)
        assert asyncio.run(reward_function(JUDGE, **options)(["q"], worth(1))) != [None]


@pytest.mark.parametrize(("given", "calls"), [({}, 0), ({"headers": {"X-Team": "rl"}}, 1)])
def test_a_judge_is_called_once_for_an_engine_where_its_list_of_models_does_not_tell(
    given: dict[str, Any], calls: int
) -> None:
    with loopback(INSTANT) as judge:
        options: Any = {"url": judge.url, "model": "m", "cache": None, **given}
        for _ in range(3):
            reward_function(JUDGE, **options)
        assert judge.stats.requests == calls
        with Engine(**options) as engine:
            for _ in range(3):
                reward_function(JUDGE, engine=engine)
        assert judge.stats.requests == 2 * calls


def test_a_judge_that_refuses_later_is_named_with_the_first_completion() -> None:
    with loopback(INSTANT) as judge:
        options: Any = {"url": judge.url, "model": "m", "api_key": "sk-wrong", "cache": None}
        function = reward_function(JUDGE, **options, max_failure_rate=None)
        judge.server.become(INSTANT.replace(api_key="sk-right"), now=0.0)
        with pytest.raises(BatchFailed, match=r"will never answer.*api_key.*checkpoint"):
            asyncio.run(function(["q"], worth(1)))


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_is_busy_or_broken_for_now_ends_nothing(status: int) -> None:
    with loopback(INSTANT.replace(faults=(Fault("error", 1.0, status=status),))) as judge:
        function = reward_function(JUDGE, url=judge.url, model="m", cache=None, deadline=60.0)
        judge.server.become(INSTANT, now=0.0)
        assert asyncio.run(function(["q"], worth(1))) != [None]


def test_a_server_that_is_not_up_yet_is_found_when_it_is() -> None:
    with reserved_port() as port:
        function = reward_function(JUDGE, url=f"http://127.0.0.1:{port}/v1", model="m", cache=None)
        with loopback(INSTANT, port=port) as judge:
            assert asyncio.run(function(["q"], worth(1))) != [None]
            assert judge.stats.requests == 1


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"max_failure_rate": 20}, "from 0 to 1"),  # a share, not per cent
        ({"reference": ["4"]}, "text"),
        ({"monitor": "It cheats."}, "Monitor"),
        ({"monitor": Monitor}, "Monitor("),
        ({"weight": -1.0, "judge": Monitor("It cheats.")}, "inverted"),
        ({"rules": [len, len]}, "'len' twice"),
        ({"penalty": LengthPenalty}, "LengthPenalty()"),
        ({"penalty": 0.1}, "LengthPenalty()"),
        ({"engine": "http://localhost:8000/v1"}, "url="),
        ({"judge": "Is it correct and brief?"}, "Rubric("),
    ],
)
def test_what_a_user_of_trl_gets_wrong_is_named_by_its_option(given: dict[str, Any], named: str) -> None:
    options: Any = {"judge": JUDGE, **({} if "engine" in given else Wishing().options), **given}
    with pytest.raises(ConfigError, check=about(next(iter(given)), named)):
        reward_function(**options)


def test_a_single_rule_needs_no_list() -> None:
    def accuracy(completions: list[str], **_: Any) -> list[float]:
        return [1.0] * len(completions)

    function = reward_function(JUDGE, rules=accuracy, **Wishing().options)
    assert asyncio.run(function(["q"], ["worth 3"])) == [1.3]


def test_a_trainer_is_overlapped_before_it_is_made() -> None:
    with pytest.raises(ConfigError, check=about("", "overlap(GRPOTrainer)(")):
        overlap(Trainer())  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [None, 1.0, "1", ["1", "many"], [1.0]])
def test_a_rule_that_gives_no_list_of_numbers_is_named(given: Any) -> None:
    def accuracy(**_: Any) -> Any:
        return given

    trainer = Trainer(reward_function(JUDGE, rules=[accuracy], **Wishing().options))
    with pytest.raises(ConfigError, check=about("", "'accuracy'")):
        trainer.rewards(worth(1, 2))


def test_a_rule_may_give_any_numbers_one_by_one_and_what_is_none_fails_its_row() -> None:
    def accuracy(completions: list[str], **_: Any) -> Any:
        return (value for value in [1, math.nan, math.inf, True][: len(completions)])

    trainer = Trainer(reward_function(JUDGE, rules=[accuracy], **Wishing().options), num_generations=4)
    assert trainer.rewards(worth(1, 2, 3, 4)) == [1.1, None, None, 1.4]
    assert trainer.extra["judge_status"] == ["ok"] * 4


def test_a_judge_of_groups_judges_lone_completions_by_its_criteria_and_ends_no_evaluation() -> None:
    """num_generations_eval=1, or a rank that has one completion of a group."""
    with loopback(INSTANT) as judge:
        options: Any = {"url": judge.url, "model": "m", "cache": None, "num_generations": 4}
        function = reward_function(Group("Which is best?"), **options)
        prompts = ["a"] * 4 + ["b"]
        assert None not in asyncio.run(function(prompts, worth(1, 2, 3, 4, 5)))
        assert judge.stats.requests == 2
        assert None not in asyncio.run(function(["c", "d"], worth(6, 7)))
        pairs = reward_function(Pairwise("Which is better?", against="group"), **options)
        assert None not in asyncio.run(pairs(["a"] * 4, worth(1, 2, 3, 4)))
        assert asyncio.run(pairs(["c", "d"], worth(6, 7))) == [None, None]
