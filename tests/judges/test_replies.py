"""The parser on replies as models write them: no number that is none, and hardly a verdict lost.

Each file in replies/ is for one judge, and each line holds a reply and the score that it states: null where
it states none, or none that is the judge's own.
"""

from __future__ import annotations

import json
import re
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
FILES = Path(__file__).with_name("replies")
REPLIES: dict[str, list[dict[str, Any]]] = {
    name: [json.loads(line) for line in (FILES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    for name in JUDGES
}


def read(name: str, case: Mapping[str, Any]) -> Any:
    """The score that the judge reads, or each part where that is what is known; None where it reads none."""
    judge, text = JUDGES[name], case["text"]
    sample = Sample(TASK, case.get("response", RESPONSE), "100 °C", "g")
    if name == "rubric":
        is_whole = case["score"] is None or float(case["score"]).is_integer()
        judge = Rubric("Is it good?", scale=case.get("scale", (0, 10)), integer=is_whole)
    elif "criteria" in case:
        judge = Checklist([Criterion(name, f"It is {name}.") for name in case["criteria"]])
    ids = case.get("ids", ["ONE", "TWO"])
    if hasattr(judge, "split"):
        if name == "group":
            scores = case["score"].values() if "ids" in case and case["score"] else ()
            is_whole = all(float(score).is_integer() for score in scores)
            judge = Group("Is it correct?", scale=case.get("scale", (0, 10)), integer=is_whole)
        others = [Sample(TASK, f"It boils at {degrees} °C.", "100 °C", "g") for degrees in range(1, len(ids))]
        question = next(iter(judge.split([sample, *others])))
        judge, sample = question.judge, question.sample
    if name == "group":
        names = dict(zip(ids, judge._answers(sample), strict=True))
        pattern = (
            r"(?<![A-Za-z0-9.])(" + "|".join(ids) + r")(?=[^\w.]|\.\s|$)"
            if is_named(ids)
            else "|".join(
                rf'(?<=")({one})(?=")|(?<=\| )({one})(?=\s+\|)|(?<="id": )({one})(?=,)|(?<=esponse )({one})\b'
                for one in ids
            )
        )
        text = re.sub(pattern, lambda found: names[found[0]], text)
    try:
        verdict = judge.parse(Reply(text, finish_reason=case.get("finish", "stop")), sample)
    except (UnreadableVerdict, Declined):
        return None
    if "ids" in case:
        return {one: verdict.parts[names[one]] for one in ids}
    return verdict.parts if "criteria" in case else verdict.score


def is_named(ids: list[str]) -> bool:
    """Whether ids are words that nothing but a response goes by."""
    return all(len(one) > 1 for one in ids)


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
    if case["score"] not in (None, 8.5)
    and "finish" not in case
    and case["text"].count("{") == case["text"].count("}")
    and not re.search(r"<\|(?:im_start|start_header_id)\|>user", case["text"])
    and read("rubric", case) is not None
]
"""Whole replies with a verdict, and no turn behind them that the judge made up."""
ALONE = [case for case in READ if '"score"' in case["text"].casefold()]
"""Replies with an object under the name that was asked for."""


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
        "Let's make it 3.5.",
        "I have not actually read the response.",
        "A stricter judge would say 2.5.",
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


def test_whatever_the_form_a_verdict_that_is_quoted_line_by_line_is_none() -> None:
    cases = [case for case in READ if not re.search(r"[<◁]|\[/|assistantfinal", case["text"])]
    texts = ["\n".join(f"> {line}" for line in case["text"].split("\n")) for case in cases]
    kept = [text for text, case in zip(texts, cases, strict=True) if read("rubric", {**case, "text": text})]
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
