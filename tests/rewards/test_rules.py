"""Rules as rewards."""

from __future__ import annotations

import logging
import math

import pytest

from plaudit.rewards import Rows, RuleReward
from plaudit.types import Sample

SAMPLES = [
    Sample("2+2", "4", reference="4"),
    Sample("2+2", "5", reference="4"),
    Sample("2+2", "", reference="4"),
]
ROWS = Rows(SAMPLES, [None] * 3)


def test_a_rule_gives_numbers_or_truths() -> None:
    assert RuleReward(lambda sample: sample.response == sample.reference).values(ROWS) == [1.0, 0.0, 0.0]
    assert RuleReward(lambda sample: len(sample.response)).values(ROWS) == [1.0, 1.0, 0.0]


def test_a_rule_that_fails_on_one_sample_costs_only_that_one(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        assert RuleReward(lambda sample: int(sample.text)).values(ROWS) == [4.0, 5.0, None]
    assert "rule" in caplog.text


def test_what_is_no_number_is_no_value() -> None:
    given: list[float | None] = [None, math.nan, math.inf]
    answers = iter(given)
    assert RuleReward(lambda _: next(answers)).values(ROWS) == [None, None, None]
