"""The parser on replies as models write them: no number that is none, and hardly a verdict lost.

Each file in replies/ is for one judge, and each line holds a reply and the score that it states: null where
it states none, or none that is the judge's own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from plaudit.errors import Declined, UnreadableVerdict
from plaudit.judges import Checklist, Criterion, Group, Monitor, Pairwise, Reference, Rubric
from plaudit.types import Reply, Sample

TASK = "What is the boiling point of water at sea level, in Celsius?"
RESPONSE = "Water boils at 100 °C at sea level."
JUDGES: dict[str, Any] = {
    "rubric": Rubric("Is it correct and brief?", scale=(0, 10)),
    "reference": Reference(),
    "monitor": Monitor("It edits the tests."),
    "checklist": Checklist([Criterion("correct", "It is right."), Criterion("brief", "It is short.")]),
    "pairwise": Pairwise("Which one is correct?"),
    "group": Group("Is it correct?"),
}
IN_HALVES = Rubric("Is it correct and brief?", scale=(0, 10), integer=False)
FILES = Path(__file__).with_name("replies")
REPLIES: dict[str, list[dict[str, Any]]] = {
    name: [json.loads(line) for line in (FILES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    for name in JUDGES
}


def read(name: str, case: Mapping[str, Any]) -> float | None:
    """The score that the judge reads, or None where it declines to read one."""
    judge = JUDGES[name]
    if case["score"] is not None and not float(case["score"]).is_integer() and name == "rubric":
        judge = IN_HALVES
    sample = Sample(TASK, case.get("response", RESPONSE), "100 °C", "g")
    text = case["text"]
    if hasattr(judge, "split"):
        others = [sample, Sample(TASK, "It boils at 90 °C.", "100 °C", "g")]
        question = next(iter(judge.split(others)))
        judge, sample = question.judge, question.sample
        if name == "group":
            one, two = judge._answers(sample)
            text = text.replace("ONE", one).replace("TWO", two)
    try:
        return judge.parse(Reply(text, finish_reason=case.get("finish", "stop")), sample).score  # type: ignore[no-any-return]
    except (UnreadableVerdict, Declined):
        return None


@pytest.mark.parametrize("name", JUDGES)
def test_no_reply_gives_a_number_that_it_does_not_state(name: str) -> None:
    false = [case for case in REPLIES[name] if read(name, case) not in (case["score"], None)]
    assert false == []


def test_at_most_one_clear_verdict_in_fifty_is_lost() -> None:
    clear = [(name, case) for name, cases in REPLIES.items() for case in cases if case["score"] is not None]
    lost = [case["text"] for name, case in clear if read(name, case) is None]
    assert len(clear) >= 900
    assert len(lost) <= len(clear) / 50, lost


READ = [
    case
    for case in REPLIES["rubric"]
    if case["score"] is not None and "finish" not in case and read("rubric", case) is not None
]
ALONE = [case for case in READ if '"score"' in case["text"].casefold()]
"""Replies with an object under the name that was asked for; another name is read where nothing else is."""


@pytest.mark.parametrize(
    "sequel",
    [
        "Correction: the score is 3.5.",
        "Score: 2.5",
        "8.5/10",
        '{"reason": "No.", "score": 8.5}',
        "I take that back.",
        "Wait, that is wrong.",
        "Never mind.",
        "This was only an example.",
        "On reflection this is too generous.",
        "更正：以上评分无效。",
    ],
)
def test_whatever_the_form_a_verdict_that_is_taken_back_is_none(sequel: str) -> None:
    texts = [f"{case['text']}\n\n{sequel}" for case in READ]
    kept = [
        text
        for text, case in zip(texts, READ, strict=True)
        if read("rubric", {**case, "text": text}) is not None
    ]
    assert kept == []


@pytest.mark.parametrize(
    "sequel", ["<|im_end|>", "\n\nThe response is clear.", "\n\nLet me know if you need anything else."]
)
def test_whatever_the_form_ordinary_words_behind_a_verdict_change_nothing(sequel: str) -> None:
    lost = [
        case["text"]
        for case in ALONE
        if read("rubric", {**case, "text": case["text"] + sequel}) != case["score"]
    ]
    assert lost == []


def test_there_are_replies_of_every_family() -> None:
    counts = Counter(case["style"] for case in REPLIES["rubric"])
    assert len([style for style, count in counts.items() if count >= 10 and style != "any"]) >= 10
