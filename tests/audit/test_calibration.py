"""Agreement with labels, with itself and with length, on pairs small enough to count by hand."""

from __future__ import annotations

import pytest

from plaudit import Engine, Status, Verdict
from plaudit.audit import Pair, calibrate, samples_of
from plaudit.audit.calibration import markdown_marks
from plaudit.judges import Pairwise
from plaudit.types import Reply, Request

SCALE = (0.0, 10.0)
PAIRS = [
    Pair("1", "q", "long and right", "short", "a"),
    Pair("2", "q", "right", "long and wrong", "a"),
    Pair("3", "q", "same", "size", "b"),
    Pair("4", "q", "right", "wrong", "b"),
]


def verdicts(*scores: float | None) -> list[Verdict]:
    return [Verdict(score, Status.OK if score is not None else Status.FAILED) for score in scores]


def test_agreement_ties_and_missing_pairs_are_counted_apart() -> None:
    result = calibrate(PAIRS, verdicts(9, 1, 2, 8, 5, 5, 7, None), scale=SCALE)
    assert (result.agreement.hits, result.agreement.of) == (1, 3)
    assert (result.decided.hits, result.decided.of) == (1, 2)
    assert (result.ties.hits, result.missing) == (1, 1)
    assert [(name, share.hits, share.of) for name, share in result.subsets] == [("a", 1, 2), ("b", 0, 1)]
    assert len(result.points) == 7


def test_a_judge_of_length_is_found_out() -> None:
    scores = [float(len(response)) for pair in PAIRS for response in (pair.better, pair.worse)]
    result = calibrate(PAIRS, verdicts(*scores), scale=(0.0, 100.0))
    assert result.length.correlation == pytest.approx(1.0)
    assert result.length.preferred.value == 1.0, "whichever is longer wins"
    assert (result.length.labelled.hits, result.length.labelled.of) == (1, 2), "where lengths differ by label"


def test_markdown_is_counted_by_its_marks() -> None:
    assert markdown_marks("plain words, 3 * 4 = 12, a - b") == 0
    assert markdown_marks("# Title\n\n- one\n- **two**\n\n1. three\n> four\n\n`five`\n") == 7
    pairs = [Pair(str(n), "q", "plain", "- **bold**") for n in range(4)]
    result = calibrate(pairs, verdicts(*[1, 9] * 4), scale=SCALE)
    assert (result.markdown.preferred.value, result.markdown.labelled.value) == (1.0, 0.0)


def test_asking_again_shows_what_changed() -> None:
    first, second = verdicts(9, 1, 2, 8, 5, 5, 7, 6), verdicts(9, 1, 8, 2, 5, 5, 7, 5)
    retest = calibrate(PAIRS, first, scale=SCALE, again=second).retest
    assert retest is not None
    assert (retest.same.hits, retest.same.of) == (5, 8)
    assert retest.mean_change == pytest.approx((6 + 6 + 1) / 8 / 10)
    assert (retest.flipped.hits, retest.flipped.of) == (1, 4)


def test_a_judge_that_sees_no_order_has_no_swap_consistency() -> None:
    assert calibrate(PAIRS, verdicts(*[1] * 8), scale=SCALE).swap is None


class FirstAlwaysWins:
    """A model with nothing but position bias."""

    async def send(self, request: Request) -> Reply:
        return Reply('{"reason": "it came first", "winner": "first"}')

    async def close(self) -> None:
        """Nothing to free."""


def test_a_pairwise_judge_that_follows_the_order_is_found_out() -> None:
    judge = Pairwise("Which one is right?", against="group")
    with Engine("http://biased/v1", model="m", cache=None, transport=lambda _: FirstAlwaysWins()) as engine:
        result = calibrate(PAIRS, engine.score(samples_of(PAIRS), judge), scale=judge.scale)
    assert result.swap is not None
    assert (result.swap.hits, result.swap.of) == (0, 4)
    assert result.ties.value == 1.0
