"""The report: self-contained, and safe whatever the models wrote."""

from __future__ import annotations

from plaudit.mutation.history import History, Point, Rewrite
from plaudit.mutation.training_report import finding, report
from plaudit.report.document import Curves
from plaudit.report.html import page

POINTS = [Point(512 * (number + 1), 0.1 * number, 0.12 * number, 0.0) for number in range(6)]
HOSTILE = '<script>alert("x")</script>'


def test_it_shows_the_curve_the_rewrites_and_the_failures() -> None:
    history = History(POINTS, {"why?": Rewrite("why?", "why so?", 0.4, 0.9, 0.48)}, 700, 3072)
    history.failures, history.errors = {"judge": 2}, {"judge: no verdict": 2}
    written = page(report(history, [("seed", "7")]))
    for words in (
        "3,072 in 700 episodes",
        "2, which earned nothing; by stage: judge 2",
        "why so?",
        "0.40",
        "0.90",
        "no verdict",
        "<dt>seed</dt><dd>7</dd>",
    ):
        assert words in written
    assert written.count("<svg") == 3
    assert "http" not in written.replace("http://www.w3.org/2000/svg", "")


def test_what_models_wrote_stays_text() -> None:
    history = History(POINTS, {HOSTILE: Rewrite(HOSTILE, HOSTILE, 0.0, 1.0, 1.0)}, 1, 1)
    history.errors = {HOSTILE: 1}
    assert "<script" not in page(report(history, [(HOSTILE, HOSTILE)]))


def test_the_finding_compares_the_beginning_with_the_end() -> None:
    assert finding(POINTS) == "Reward per episode: +0.100 at the beginning, +0.400 at the end."
    assert "nothing to report" in finding([])
    assert "nothing to report" in finding([Point(1, None, None, 1.0)])


def test_an_empty_history_makes_a_page_too() -> None:
    assert "No rewrite was answered better" in page(report(History(), []))


def test_it_compares_with_a_random_policy_and_shows_what_was_chosen_and_what_failed() -> None:
    points = [
        Point(100, 0.1, 0.1, 0.3, 0.1, {"clarify": 50, "keep": 50}),
        Point(200, 0.3, 0.3, 0.0, 0.0, {"clarify": 100}),
    ]
    rewards, operators, failed, *_ = report(History(points), []).parts
    assert isinstance(rewards, Curves) and isinstance(operators, Curves) and isinstance(failed, Curves)
    assert [level.value for level in rewards.levels] == [0.1]
    assert [level.value for level in operators.levels] == [0.5]
    assert {line.name: [y for _, y in line.points] for line in operators.lines} == {
        "clarify": [0.5, 1.0],
        "keep": [0.5, 0.0],
    }
    assert "keep 50% at the beginning, 0% at the end" in operators.note
    assert [[round(y, 3) for _, y in line.points] for line in failed.lines] == [[0.2, 0.0], [0.1, 0.0]]
