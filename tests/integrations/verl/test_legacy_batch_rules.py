"""Rules of verl's and of the user's: a failure costs its own row, and says what to do."""

from __future__ import annotations

import functools
import logging
import math
from typing import Any

import pytest
from complaints import about
from legacy_rows import row

from plaudit.errors import ConfigError
from plaudit.integrations.verl.rule_score import BatchRules, is_verls_own
from plaudit.types import Cause, Status


def default_compute_score(data_source: str, solution_str: str, ground_truth: str, extra_info: Any) -> float:
    """Named as verl's own."""
    if data_source != "known":
        raise NotImplementedError(data_source)
    return float(ground_truth in solution_str)


def test_scores_come_in_the_order_of_the_rows() -> None:
    rule = BatchRules(lambda *, solution_str, **_: float(solution_str))
    assert [ruling.verdict.score for ruling in rule.score([row("3"), row("1"), row("2")])] == [3.0, 1.0, 2.0]


def test_the_function_gets_what_verls_functions_get() -> None:
    seen: list[dict[str, Any]] = []
    given = row("So 4.", source="s", truth="4")

    def remember(**call: Any) -> float:
        seen.append(call)
        return 1.0

    BatchRules(remember).score([given])
    assert seen == [
        {"data_source": "s", "solution_str": "So 4.", "ground_truth": "4", "extra_info": {"index": 1}}
    ]


def test_what_a_function_writes_into_extra_info_stays_with_it() -> None:
    given = row("4")

    def spoil(*, extra_info: dict[str, Any], **_: Any) -> float:
        extra_info.clear()
        return 1.0

    BatchRules(spoil).score([given])
    assert given.extra_info == {"index": 1}


def test_a_dictionary_gives_its_score_and_the_rest_beside_it() -> None:
    (ruling,) = BatchRules(lambda **_: {"score": 0.5, "acc": True, "pred": "4"}).score([row("4")])
    assert ruling.verdict.score == 0.5
    assert ruling.extra == {"acc": True, "pred": "4"}


@pytest.mark.parametrize("score", [None, math.nan, math.inf, "good", {"acc": 1.0}])
def test_what_is_no_score_is_a_failure_of_its_row(score: object) -> None:
    given = iter([1.0, score, 0.0])
    rulings = BatchRules(lambda **_: next(given)).score([row("a"), row("b"), row("c")])
    assert [ruling.verdict.score for ruling in rulings] == [1.0, None, 0.0]
    assert rulings[1].verdict.status is Status.FAILED
    assert rulings[1].is_known
    assert (rulings[1].verdict.cause, bool(rulings[1].verdict.error)) == (Cause.CODE, True)


def test_a_function_that_raises_costs_its_row_and_its_text_stays_out_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def strict(*, solution_str: str, **_: Any) -> float:
        return float(solution_str)

    with caplog.at_level(logging.INFO, logger="plaudit"):
        rulings = BatchRules(strict).score([row("1"), row("two words")])
    assert [ruling.verdict.score for ruling in rulings] == [1.0, None]
    assert "1 rows have no score by rule" in caplog.text
    assert "ValueError" in caplog.text
    assert "could not convert" not in caplog.text


def test_without_a_rule_for_the_data_source_key_row_and_remedy_are_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rule = BatchRules(default_compute_score)
    with caplog.at_level(logging.WARNING, logger="plaudit"):
        for _ in range(3):
            known, unknown = rule.score([row("4", source="known"), row("5", source="other")])
    assert known.verdict.score == 1.0
    assert (unknown.is_known, unknown.verdict.score) == (False, None)
    assert len(caplog.records) == 1
    assert "row '5'" in caplog.text
    assert "data_source='other'" in caplog.text
    assert "custom_reward_function.path" in caplog.text


def test_verls_own_rule_is_not_asked_without_a_ground_truth() -> None:
    (ruling,) = BatchRules(default_compute_score).score([row("4", source="known", truth=None)])
    assert not ruling.is_known
    assert 'reward_model["ground_truth"] is missing' in (ruling.verdict.error or "")


def test_a_function_of_the_users_may_do_without_a_ground_truth() -> None:
    (ruling,) = BatchRules(lambda **_: 0.25).score([row("4", truth=None)])
    assert ruling.verdict.score == 0.25


def test_verls_own_rule_is_known_also_behind_a_partial() -> None:
    assert is_verls_own(default_compute_score)
    assert is_verls_own(functools.partial(default_compute_score, extra_info=None))
    assert not is_verls_own(lambda **_: 0.0)


def test_an_asynchronous_function_is_refused_before_its_coroutine_becomes_a_score() -> None:
    async def compute_score(**_: Any) -> float:
        return 1.0

    for given in (compute_score, functools.partial(compute_score)):
        with pytest.raises(ConfigError, check=about("", "async def")):
            BatchRules(given)


def test_what_is_no_function_is_refused_before_it_fails_every_row() -> None:
    with pytest.raises(ConfigError, check=about("compute_score", "'gsm8k'")):
        BatchRules("gsm8k")  # type: ignore[arg-type]
