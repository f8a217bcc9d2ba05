"""The parser on replies as models write them: no number that is none, and hardly a verdict lost."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).with_name("replies")))

from eighth_replies import REPLIES as EIGHTH
from fifth_replies import REPLIES as FIFTH
from fourth_replies import REPLIES as FOURTH
from ninth_replies import REPLIES as NINTH
from reply_case import TASK, ReplyCase
from seen_replies import REPLIES
from seventh_replies import REPLIES as SEVENTH
from several_replies import REPLIES as SEVERAL
from sixth_replies import REPLIES as SIXTH
from third_replies import REPLIES as THIRD
from unseen_replies import REPLIES as SECOND

from plaudit.errors import Declined, UnreadableVerdict
from plaudit.judges import Checklist, Criterion, Group, Monitor, Pairwise, Reference, Rubric
from plaudit.types import Reply, Sample

POINTS = [Criterion("correct", "It is right."), Criterion("brief", "It is short.")]
LATER = [*SECOND, *THIRD, *FOURTH, *FIFTH, *SIXTH, *SEVENTH, *EIGHTH, *SEVERAL, *NINTH]
JUDGES: dict[str, Any] = {
    "rubric": Rubric("Is it correct and brief?", scale=(0, 10)),
    "reference": Reference(),
    "monitor": Monitor("It edits the tests."),
    "checklist": Checklist(POINTS),
    "pairwise": Pairwise("Which one is correct?"),
    "group": Group("Is it correct?"),
}


def read(case: ReplyCase) -> float | None:
    """The score that the judge reads, or None where it declines to read one."""
    judge = JUDGES[case.judge]
    sample = Sample(TASK, case.response, "100 °C", "g")
    text = case.text
    if hasattr(judge, "split"):
        others = [sample, Sample(TASK, "It boils at 90 °C.", "100 °C", "g")]
        question = next(iter(judge.split(others)))
        judge, sample = question.judge, question.sample
        if case.judge == "group":
            one, two = judge._answers(sample)
            text = text.replace("ONE", one).replace("TWO", two)
    try:
        return judge.parse(Reply(text, finish_reason=case.finish), sample).score  # type: ignore[no-any-return]
    except (UnreadableVerdict, Declined):
        return None


def ids(case: ReplyCase) -> str:
    return f"{case.style}-{case.kind}"


@pytest.mark.parametrize("case", REPLIES, ids=ids)
def test_a_reply_is_read_as_a_person_would_read_it(case: ReplyCase) -> None:
    assert read(case) == case.score


@pytest.mark.parametrize("case", LATER, ids=ids)
def test_no_reply_gives_a_number_that_it_does_not_state(case: ReplyCase) -> None:
    assert read(case) in (case.score, None)


def test_at_most_one_clear_verdict_in_fifty_is_lost() -> None:
    clear = [case for case in (*REPLIES, *LATER) if case.score is not None]
    lost = [case.text for case in clear if read(case) is None]
    assert len(lost) <= len(clear) / 50, lost


def test_there_are_replies_of_every_family() -> None:
    counts = Counter(case.style for case in REPLIES)
    assert len(REPLIES) >= 150
    assert len(counts) >= 10 and min(counts.values()) >= 4
