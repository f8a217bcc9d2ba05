"""Two judges on the same pairs: agreement, correlation, and each pair on which they part."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaudit import Sample, Status, Verdict
from plaudit.audit import Contender, Pair, compare, compare_answers

PAIRS = [Pair(name, f"task {name}", "right", "wrong") for name in ("one", "two", "three")]


def contender(name: str, *scores: float | None, scale: tuple[float, float] = (0.0, 10.0)) -> Contender:
    verdicts = [Verdict(s, Status.OK if s is not None else Status.FAILED) for s in scores]
    return Contender(name, scale, verdicts)


def test_judges_on_different_scales_are_compared_by_their_share_of_it() -> None:
    result = compare(
        PAIRS, contender("a", 8, 2, 6, 4, 10, 0), contender("b", 0.8, 0.2, 0.6, 0.4, 1, 0, scale=(0, 1))
    )
    assert result.agreement.value == 1.0
    assert result.correlation == pytest.approx(1.0)
    assert result.mean_difference == pytest.approx(0.0)
    assert result.disagreements == ()


def test_every_disagreement_is_listed_with_who_is_with_the_label() -> None:
    result = compare(PAIRS, contender("a", 8, 2, 5, 5, 1, 9), contender("b", 2, 8, 6, 4, 0, 3))
    assert (result.agreement.hits, result.agreement.of) == (1, 3)
    assert [(d.id, d.first, d.second, d.with_label) for d in result.disagreements] == [
        ("one", (8, 2), (2, 8), (True, False)),
        ("two", (5, 5), (6, 4), (False, True)),
    ]
    assert [share.hits for share in result.with_label] == [1, 1]


def test_a_pair_without_all_four_scores_is_missing() -> None:
    result = compare(PAIRS, contender("a", 8, 2, None, 5, 1, 9), contender("b", 8, 2, 6, 4, 0, 3))
    assert result.missing == 1
    assert result.agreement.of == 2
    assert len(result.points) == 4


ANSWERS = [Sample(f"task {number}", f"answer {number}", group=str(number // 2)) for number in range(6)]


def test_answers_without_labels_are_compared_by_their_scores() -> None:
    first = contender("a", 0, 10, 5, 5, 9, 1)
    second = contender("b", 0, 1, 0.5, 0.9, 0, 1, scale=(0, 1))
    result = compare_answers(ANSWERS, first, second)
    assert (result.close.hits, result.close.of) == (3, 6)
    assert (result.same_order.hits, result.same_order.of) == (1, 2), (
        "the second group is tied for one of them"
    )
    assert [(one.number, one.scores) for one in result.differences] == [
        (5, (9, 0)),
        (6, (1, 1)),
        (4, (5, 0.9)),
    ]
    assert result.means == pytest.approx((5.0, 3.4 / 6))


def test_an_answer_without_a_score_from_one_judge_is_counted_and_left_out() -> None:
    result = compare_answers(ANSWERS[:2], contender("a", None, 5), contender("b", 5, 5))
    assert (result.missing, result.close.of) == (1, 1)
    assert compare_answers([], contender("a"), contender("b")).means is None


SCORES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12)


@given(SCORES)
def test_pairs_of_a_group_count_as_in_the_same_order_where_both_judges_tell_them_apart(
    scores: list[tuple[int, int]],
) -> None:
    answers = [Sample("task", "answer", group="g") for _ in scores]
    ones, others = zip(*scores, strict=True)
    result = compare_answers(answers, contender("a", *ones), contender("b", *others)).same_order
    told_apart = [
        (left[0] > right[0]) == (left[1] > right[1])
        for left, right in combinations(scores, 2)
        if left[0] != right[0] and left[1] != right[1]
    ]
    assert (result.hits, result.of) == (sum(told_apart), len(told_apart))
