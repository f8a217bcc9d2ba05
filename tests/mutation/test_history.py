"""What a training remembers: the curve, the best rewrites, what failed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from plaudit.mutation.history import History, Recorder


def turn(question: str = "why?", query: str = "why so?", total: float = 0.3, **other: Any) -> dict[str, Any]:
    return {
        "question": question,
        "operator": "clarify",
        "query": query,
        "total": total,
        "quality": 0.7,
        "gain": 0.3,
        "failed": False,
        "failed_at": "",
        "error": "",
        **other,
    }


def test_a_rollout_becomes_a_point() -> None:
    recorder = Recorder(History())
    recorder.turn(turn(total=0.1), False)
    recorder.turn(turn(total=0.2), True)
    recorder.turn(turn(total=0.4, operator="keep"), True)
    recorder.turn(turn(failed=True, failed_at="judge", error="no verdict"), False)
    recorder.turn(turn(failed=True, failed_at="check", error="the rewrite is empty"), False)
    point = recorder.close_rollout()
    assert point.steps == 5
    assert point.operators == {"clarify": 4, "keep": 1}
    assert point.reward == pytest.approx(0.3)
    assert (point.failed, point.rejected) == (0.4, 0.2)
    assert recorder.close_rollout().reward is None


def test_failures_are_counted_by_stage_and_message() -> None:
    recorder = Recorder(History())
    for error in ("refused after 3 s", "refused after 4.5 s", "late"):
        recorder.turn(turn(failed=True, failed_at="answer", error=error), False)
    assert recorder.history.failures == {"answer": 3}
    assert recorder.history.errors == {"answer: refused after # s": 2, "answer: late": 1}
    assert recorder.history.steps_failed() == 3


def test_the_best_rewrite_of_a_question_stays_whoever_came_first() -> None:
    turns = [turn(query="b", total=0.3), turn(query="a", total=0.3), turn(query="c", total=0.1)]
    found = []
    for order in (turns, turns[::-1]):
        recorder = Recorder(History())
        for info in order:
            recorder.turn(info, True)
        found.append(recorder.history.top(5))
    assert found[0] == found[1]
    assert [(one.before, one.after) for one in found[0]] == [("why?", "a")]
    assert found[0][0].quality_before == pytest.approx(0.4)


def test_what_did_not_help_is_no_best_rewrite() -> None:
    recorder = Recorder(History())
    recorder.turn(turn(gain=0.0, total=-0.02), True)
    assert recorder.history.top(5) == []


def test_a_history_survives_json() -> None:
    recorder = Recorder(History())
    recorder.turn(turn(), True)
    recorder.close_rollout()
    assert msgspec.json.decode(msgspec.json.encode(recorder.history), type=History) == recorder.history
