"""Scores at a glance: bins between round numbers, and the lines at both ends."""

from __future__ import annotations

import random

from plaudit.report.score_digest import ScoreDigest


def digest_of(*scores: float) -> ScoreDigest:
    digest = ScoreDigest()
    for number, score in enumerate(scores, start=1):
        digest.add(score, number)
    return digest


def test_every_score_is_in_one_bin_between_round_numbers() -> None:
    chance = random.Random(7)
    digest = digest_of(0.0, 10.0, *(chance.uniform(0, 10) for _ in range(500)))
    bins = digest.histogram()
    assert sum(count for _, _, count in bins) == 502
    assert (bins[0][0], bins[-1][1]) == (0.0, 10.0)
    assert all(low == int(low) for low, _, _ in bins)


def test_equal_scores_make_one_bin_that_holds_them_all() -> None:
    assert sum(count for _, _, count in digest_of(7.0, 7.0).histogram()) == 2
    assert digest_of().histogram() == []


def test_the_worst_and_the_best_come_in_order_the_first_line_first() -> None:
    digest = digest_of(5, 1, 9, 1, 3, 9, 2, 8)
    assert [(one.score, one.number) for one in digest.worst] == [(1, 2), (1, 4), (2, 7)]
    assert [(one.score, one.number) for one in digest.best] == [(9, 3), (9, 6), (8, 8)]
