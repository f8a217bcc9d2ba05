"""What a line without a verdict gets, by choice, and never by accident."""

from __future__ import annotations

import json

import pytest
from complaints import about

from plaudit.cli.stream import OnFailure
from plaudit.errors import ConfigError
from plaudit.setup.json_lines import Line, parse, render
from plaudit.types import Status, Verdict

FAILED = Verdict(
    score=None, status=Status.FAILED, reason='said "score":null,"status": in its reason', error="503"
)


def line(number: int, group: str | None = None) -> Line:
    record = {"prompt": "p", "response": "r", "note": {"score": None, "status": 1}, "group": group}
    read = parse(number, json.dumps(record, separators=(",", ":")).encode())
    assert isinstance(read, Line)
    return read


def scores(choice: str, groups: list[tuple[str | None, float | None]]) -> list[float | None]:
    on_failure = OnFailure(choice)
    written = []
    for number, (group, score) in enumerate(groups, start=1):
        verdict = FAILED if score is None else Verdict(score=score, status=Status.OK)
        one = line(number, group)
        written.append(render(one, on_failure.settle(one, verdict)))
    records = [json.loads(on_failure.fill_in(raw)) for raw in written]
    assert all(record["note"] == {"score": None, "status": 1} for record in records)
    assert [record["status"] for record in records] == [
        "failed" if score is None else "ok" for _, score in groups
    ]
    return [record["score"] for record in records]


def test_null_stays_null() -> None:
    assert scores("null", [("a", 1.0), ("a", 3.0), ("a", None)]) == [1.0, 3.0, None]


def test_a_number_takes_its_place_but_the_status_tells() -> None:
    assert scores("-1.5", [("a", 1.0), (None, None)]) == [1.0, -1.5]


def test_the_mean_of_the_group_gives_zero_advantage() -> None:
    assert scores("group-mean", [("a", 1.0), ("b", 9.0), ("a", None), ("a", 2.0)]) == [1.0, 9.0, 1.5, 2.0]


@pytest.mark.parametrize(
    "group",
    [
        [("a", 1.0), ("a", None)],
        [("a", 1.0), ("a", 2.0), ("a", None), ("a", None), ("a", None)],
        [(None, 1.0), (None, 2.0), (None, None)],
    ],
    ids=["one valid verdict", "less than half valid", "no group"],
)
def test_a_group_that_says_too_little_leaves_null(group: list[tuple[str | None, float | None]]) -> None:
    assert scores("group-mean", group) == [score for _, score in group]


def test_exactly_half_is_enough() -> None:
    assert scores("group-mean", [("a", 1.0), ("a", 2.0), ("a", None), ("a", None)]) == [1.0, 2.0, 1.5, 1.5]


def test_the_first_failure_is_the_one_with_the_lowest_number() -> None:
    on_failure = OnFailure("raise")
    assert on_failure.is_raising
    assert on_failure.first is None
    for number in (9, 4, 12):
        on_failure.settle(line(number), FAILED)
    on_failure.settle(line(1), Verdict(score=1.0, status=Status.OK))
    assert on_failure.first == (4, FAILED)


@pytest.mark.parametrize("choice", ["mean", "nan", "inf", ""])
def test_anything_else_is_refused_with_the_choices(choice: str) -> None:
    with pytest.raises(ConfigError, check=about("on_failure")):
        OnFailure(choice)
