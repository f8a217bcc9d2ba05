"""The parser against replies by the thousand: the judge's own verdict, or none."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge_replies import HIGH, LOW, Case, honest, noise, tampered

from plaudit.errors import Declined, UnreadableVerdict
from plaudit.judges import Rubric
from plaudit.types import Reply, Sample

RUBRIC = Rubric("Is it correct?", scale=(LOW, HIGH))
SAMPLE = Sample("6 x 7?", "42")
thorough = settings(max_examples=250, deadline=None, derandomize=True, database=None)


def read(reply: Reply) -> float | None:
    """The score, or None where the parser declines in one of its two ways, with a short reason."""
    try:
        verdict = RUBRIC.parse(reply, SAMPLE)
    except (UnreadableVerdict, Declined) as declined:
        assert 0 < len(str(declined)) <= 120
        str(declined).encode()
        return None
    assert verdict.score is not None
    verdict.reason.encode()
    return verdict.score


def scores_written_in(text: str) -> Iterator[float]:
    """Every score that any reader may see in the text, and some that none would: slow, obviously complete."""
    yield from map(float, re.findall(r"score[\"']?\s*:\s*[\"']?(-?\d+)", text, re.IGNORECASE))
    decoder = json.JSONDecoder(strict=False)
    for start, character in enumerate(text):
        if character == "{":
            try:
                value, _ = decoder.raw_decode(text, start)
            except ValueError:
                continue
            if isinstance(value.get("score"), (int, float)):
                yield value["score"]


@thorough
@given(honest())
def test_an_honest_verdict_is_read_whatever_stands_around_it(case: Case) -> None:
    assert read(case.reply) == case.score


@thorough
@given(tampered())
def test_a_verdict_that_may_be_somebody_elses_is_not_read(case: Case) -> None:
    assert read(case.reply) is None


@thorough
@given(st.one_of(noise, st.text(max_size=80)), st.sampled_from(["stop", "length", ""]))
def test_whatever_comes_a_score_is_read_only_where_the_reply_holds_that_one_alone(
    text: str, finish_reason: str
) -> None:
    score = read(Reply(text, finish_reason=finish_reason))
    if score is not None:
        assert LOW <= score <= HIGH
        written = set(scores_written_in(text))
        assert written == {score} or (score in written and "</think>" in text)


@thorough
@given(honest(), st.data())
def test_a_reply_cut_anywhere_gives_its_own_score_or_none(case: Case, data: st.DataObject) -> None:
    end = data.draw(st.integers(0, len(case.reply.text)))
    assert read(Reply(case.reply.text[:end], finish_reason="length")) in (case.score, None)


@pytest.mark.parametrize("kind", [honest(), tampered()])
def test_reading_twice_gives_the_same(kind: st.SearchStrategy[Case]) -> None:
    @settings(max_examples=50, deadline=None, derandomize=True, database=None)
    @given(kind)
    def check(case: Case) -> None:
        assert read(case.reply) == read(case.reply)

    check()
