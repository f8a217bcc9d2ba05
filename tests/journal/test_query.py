"""What records say together."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from journals import judged, write
from msgspec import structs

from plaudit.journal.base import Judged
from plaudit.journal.index import JournalIndex
from plaudit.journal.query import Query, overview, words_of
from plaudit.judges.rubric import Rubric
from plaudit.types import Cause, Verdict


def together(path: Path, records: list[Judged]) -> dict[str, Any]:
    write(path, records)
    with JournalIndex(path) as index:
        return overview(index, Query().rows(index))


def failed(number: int, message: str, *, step: int = 0) -> Judged:
    one = judged(number, extra={"training_step": step})
    return structs.replace(one, verdict=Verdict.failed(Cause.SERVER_ERROR, message))


def test_what_is_lost_is_told_by_its_commonest_messages_whatever_their_numbers(tmp_path: Path) -> None:
    records = [failed(n, f"HTTP 502 after {n} s") for n in range(5)]
    records += [failed(10, "no route to host"), failed(11, "no route to host"), judged(12, score=None)]
    transport, unreadable = together(tmp_path / "j", records)["missing"]
    assert (transport["cause"], transport["count"]) == (Cause.SERVER_ERROR, 7)
    assert [(one["error"], one["count"]) for one in transport["messages"]] == [
        ("HTTP 502 after 4 s", 5),
        ("no route to host", 2),
    ]
    assert (unreadable["cause"], unreadable["count"]) == ("unreadable", 1)


def test_what_came_too_late_costs_money_and_counts_nowhere_else(tmp_path: Path) -> None:
    given = structs.replace(judged(0), verdict=Verdict.failed(Cause.DEADLINE, "deadline"))
    late = structs.replace(judged(0, score=10.0), is_late=True)
    found = together(tmp_path / "j", [given, late, judged(1, score=5.0)])
    assert (found["records"], found["score"]["mean"]) == (2, 0.5)
    assert [one["cause"] for one in found["missing"]] == ["deadline"]
    assert found["money"]["spent"] == pytest.approx(0.002)


def test_each_step_tells_its_gap_to_gold_its_canaries_and_its_unreadable_replies(tmp_path: Path) -> None:
    records = [
        judged(n, score=10.0, extra={"training_step": step, "gold": 1.0 - step})
        for n, step in enumerate((0, 0, 1, 1))
    ]
    records += [judged(9, score=8.0, extra={"training_step": 1, "canary": 5.0})]
    records += [judged(10, score=None, extra={"training_step": 1})]
    first, second = together(tmp_path / "j", records)["trend"]["columns"]
    assert (first["gold_gap"], second["gold_gap"]) == (0.0, 1.0)
    assert (first["canaries"], second["canaries"]) == ({"seen": 0, "passed": 0}, {"seen": 1, "passed": 1})
    assert (first["unsound"]["unreadable"], second["unsound"]["unreadable"]) == (0, 1)
    assert first["latency_s"]["p50"] == 0.0 and first["spent"] == pytest.approx(0.002)


def test_several_judges_have_a_histogram_each_at_every_step(tmp_path: Path) -> None:
    other = Rubric("Is it kind?", scale=(0, 10))
    records = [judged(n, score=0.0, extra={"training_step": n}) for n in range(3)]
    records += [
        structs.replace(one, judge=other, verdict=replace(one.verdict, score=10.0)) for one in records[1:]
    ]
    first, second = together(tmp_path / "j", records)["judges"]
    assert [one["x"] for one in first["histograms"]] == [0, 1, 2]
    assert [one["x"] for one in second["histograms"]] == [1, 2]
    assert all(one["counts"][-1] == 1 for one in second["histograms"])


def test_plain_words_are_found_where_the_pattern_is(tmp_path: Path) -> None:
    chance = random.Random(7)
    letters = "aAbS .\\-$^|()[]*+?"
    texts = ["".join(chance.choices(letters, k=8)) for _ in range(40)]
    write(tmp_path / "j", [judged(n, prompt=text, response=text) for n, text in enumerate(texts)])
    with JournalIndex(tmp_path / "j") as index:
        for _ in range(300):
            wanted = re.escape("".join(chance.choices(letters, k=chance.randint(1, 3))))
            found = {index.text(int(row)).response for row in Query(text=wanted).rows(index)}
            plain = {text for text in texts if re.search(wanted, text, re.IGNORECASE)}
            assert found >= plain and all(
                any(re.search(wanted, said, re.IGNORECASE) for said in words_of(index.text(int(row))))
                for row in Query(text=wanted).rows(index)
            )
