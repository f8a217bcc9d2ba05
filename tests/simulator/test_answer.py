"""What a simulated judge says, and that only the seed and the question decide it."""

from __future__ import annotations

import math
from statistics import fmean, pstdev
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaudit.judges.template import prompt_file
from plaudit.mutation.batch_functions import rewriting
from plaudit.mutation.completion import Text
from plaudit.mutation.operators import builtin_operators
from plaudit.simulator import Fault, Scenario
from plaudit.simulator.answer import REASONS, answer
from plaudit.simulator.ask import Ask, ask_of
from plaudit.simulator.chance import fault_of, output_tokens, uniform
from plaudit.types import ChatRequest
from simulator.asking import QUICK, chat

PLAIN = Scenario()


def text_for(schema: dict[str, Any] | None, question: str = "a", seed: int = 0) -> Any:
    reply = answer(Scenario(seed=seed), chat(question, schema=schema), tokens=10)
    return msgspec.json.decode(reply.text)


def score_schema(kind: str, low: float, high: float) -> dict[str, Any]:
    score = {"type": kind, "minimum": low, "maximum": high}
    return {"type": "object", "properties": {"reason": {"type": "string"}, "score": score}}


def test_without_a_schema_the_score_is_from_0_to_10() -> None:
    scores = [text_for(None, str(number))["score"] for number in range(300)]
    assert set(scores) == set(range(11))
    assert list(text_for(None)) == ["reason", "score"]


def test_a_reason_goes_with_its_score() -> None:
    found = [text_for(None, str(number)) for number in range(300)]
    places = [(one["score"], REASONS.index(one["reason"])) for one in found]
    assert all(place == min(score // 2, 4) for score, place in places)


@QUICK
@given(st.integers(-20, 20), st.integers(0, 30), st.text())
def test_the_score_is_on_the_scale_asked_for(low: int, width: int, question: str) -> None:
    whole = text_for(score_schema("integer", low, low + width), question)["score"]
    assert isinstance(whole, int)
    assert low <= whole <= low + width
    assert low <= text_for(score_schema("number", low, low + width), question)["score"] <= low + width


def test_other_schemas_are_followed_too() -> None:
    schema = {
        "type": "object",
        "properties": {
            "verdict": {"enum": ["good", "bad"]},
            "met": {"type": "array", "items": {"type": "boolean"}, "minItems": 4},
            "kind": {"const": "v1"},
            "nested": {"$ref": "#/$defs/inner"},
            "maybe": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 1}]},
            "optional": {"type": ["string", "null"]},
        },
        "$defs": {"inner": {"properties": {"x": {"type": "number", "minimum": 0, "maximum": 1}}}},
    }
    value = text_for(schema)
    assert value["verdict"] in ("good", "bad")
    assert [type(item) for item in value["met"]] == [bool] * 4
    assert value["kind"] == "v1"
    assert 0 <= value["nested"]["x"] <= 1
    assert value["maybe"] == 1
    assert isinstance(value["optional"], str)


def test_a_list_of_verdicts_has_one_for_each_response_shown() -> None:
    entry = {"type": "object", "properties": {"id": {"type": "string"}, "score": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"verdicts": {"type": "array", "items": entry}}}
    question = '<response-AB-X>\n42\n</response-AB-X>\n\n<response-CD-Y note="">\n41\n</response-CD-Y>'
    rows = text_for(schema, question)["verdicts"]
    assert [row["id"] for row in rows] == ["AB", "CD"]
    assert all(0 <= row["score"] <= 10 for row in rows)


_JUNK = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["type", "properties", "items", "enum", "$ref", "minItems", "minimum", "anyOf", "x"]),
        inner,
        max_size=4,
    ),
    max_leaves=10,
)  # fmt: skip


@QUICK
@given(st.dictionaries(st.sampled_from(["type", "properties", "$ref", "anyOf", "minItems"]), _JUNK))
def test_a_nonsensical_schema_still_gets_an_answer(schema: dict[str, Any]) -> None:
    assert answer(PLAIN, chat("a", schema=schema, top_logprobs=3), tokens=10).text


def test_a_schema_that_refers_to_itself_comes_to_an_end() -> None:
    assert text_for({"type": "object", "properties": {"again": {"$ref": "#"}}})["again"]


def test_yes_or_no_comes_with_probabilities_that_add_up() -> None:
    reply = answer(PLAIN, chat("Is it right? Answer yes or no.", top_logprobs=5), tokens=1)
    (choice,) = reply.tokens
    assert reply.text == choice.token
    assert {token for token, _ in choice.top} >= {"yes", "no"}
    assert choice.logprob == max(logprob for _, logprob in choice.top)
    likely = dict(choice.top)
    assert math.exp(likely["yes"]) + math.exp(likely["no"]) == pytest.approx(1.0)


def test_scores_come_with_probabilities_of_their_neighbours() -> None:
    schema = score_schema("integer", 1, 5)
    reply = answer(PLAIN, chat("a", schema=schema, top_logprobs=5), tokens=1)
    assert "".join(choice.token for choice in reply.tokens) == reply.text
    scored = reply.tokens[1]
    assert scored.token == str(msgspec.json.decode(reply.text)["score"])
    assert all(1 <= int(token) <= 5 for token, _ in scored.top)
    assert sum(math.exp(logprob) for _, logprob in scored.top) <= 1.0 + 1e-9


@pytest.mark.parametrize(
    ("fault", "text", "finish", "has_refusal"),
    [
        ("refusal", "", "stop", True),
        ("filtered", "", "content_filter", False),
        ("babble", "What a lovely answer!", "stop", False),
        ("truncated", '{"reason"', "length", False),
    ],
)
def test_a_spoiled_reply_says_how(fault: str, text: str, finish: str, has_refusal: bool) -> None:
    reply = answer(PLAIN, chat("a"), tokens=10, fault=fault)
    assert reply.text.startswith(text)
    assert reply.finish_reason == finish
    assert (reply.refusal is not None) == has_refusal
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(reply.text)


def test_lengths_are_log_normal_with_the_mean_asked_for() -> None:
    lengths = [output_tokens(PLAIN, chat(str(number))) for number in range(4000)]
    logs = [math.log(length) for length in lengths]
    assert fmean(lengths) == pytest.approx(200.0, rel=0.05)
    assert pstdev(logs) == pytest.approx(0.6, rel=0.05)
    assert fmean(logs) == pytest.approx(math.log(200.0) - 0.18, rel=0.01)


def test_an_answer_is_no_longer_than_allowed() -> None:
    lengths = [output_tokens(PLAIN, chat(str(number), max_tokens=50)) for number in range(100)]
    assert max(lengths) == 50
    assert output_tokens(PLAIN, Ask("embed", "m", ("a",))) == 0


@QUICK
@given(st.lists(st.text(), min_size=1, max_size=4), st.lists(st.text(), min_size=1, max_size=4))
def test_different_questions_have_different_keys(one: list[str], two: list[str]) -> None:
    same = Ask("chat", "m", tuple(one)).key == Ask("chat", "m", tuple(two)).key
    assert same == (one == two)


def test_the_model_and_the_kind_are_part_of_the_question() -> None:
    keys = {Ask("chat", "m", ("a",)).key, Ask("chat", "n", ("a",)).key, Ask("generate", "m", ("a",)).key}
    assert len(keys) == 3
    assert ask_of(ChatRequest(({"role": "user", "content": "\ud800"},)), model="m").key


@QUICK
@given(st.integers(), st.binary(max_size=16), st.text())
def test_chance_lies_strictly_between_0_and_1_and_repeats(seed: int, key: bytes, label: str) -> None:
    assert 0.0 < uniform(seed, key, label) < 1.0
    assert uniform(seed, key, label) == uniform(seed, key, label)


def test_the_seed_changes_answers_lengths_and_faults() -> None:
    questions = [chat(str(number)) for number in range(50)]

    def all_of(seed: int) -> list[tuple[str, int, bool]]:
        scenario = Scenario(seed=seed, faults=(Fault("reset", probability=0.5),))
        return [
            (
                answer(scenario, ask, tokens=1).text,
                output_tokens(scenario, ask),
                fault_of(scenario, ask, attempt=1, at=0.0, arrival=0) is None,
            )
            for ask in questions
        ]

    assert all_of(1) == all_of(1) != all_of(2)


def test_faults_strike_as_often_as_they_should_and_anew_at_each_attempt() -> None:
    scenario = Scenario(faults=(Fault("reset", probability=0.2),))

    def struck(attempt: int) -> set[int]:
        return {
            number
            for number in range(2000)
            if fault_of(scenario, chat(str(number)), attempt=attempt, at=0.0, arrival=0)
        }

    assert len(struck(1)) == pytest.approx(400, rel=0.15)
    assert len(struck(1) & struck(2)) == pytest.approx(80, rel=0.4)


def test_faults_keep_to_their_schedule_and_the_first_wins() -> None:
    scenario = Scenario(
        faults=(Fault("reset", during=(5.0, 6.0)), Fault("html", requests=(2, 4)), Fault("slow"))
    )

    def kind(at: float, arrival: int) -> str:
        fault = fault_of(scenario, chat("a"), attempt=1, at=at, arrival=arrival)
        assert fault is not None
        return fault.kind

    assert [kind(4.9, 0), kind(5.0, 2), kind(6.0, 3), kind(6.0, 4)] == ["slow", "reset", "html", "slow"]


def test_one_digit_comes_with_its_neighbours_on_the_scale() -> None:
    scores = set()
    for number in range(100):
        reply = answer(PLAIN, chat(f"{number}? Reply with one digit from 1 to 5.", top_logprobs=20), tokens=1)
        (choice,) = reply.tokens
        assert reply.text == choice.token == choice.top[0][0]
        assert {token for token, _ in choice.top} <= set("12345")
        assert math.fsum(math.exp(logprob) for _, logprob in choice.top) == pytest.approx(1.0)
        scores.add(reply.text)
    assert scores == set("12345")


def test_a_question_shown_to_a_rewriter_comes_back_rewritten() -> None:
    clarify = builtin_operators()[1]
    ask = ask_of(Text().render(rewriting("What is 2 + 2?", clarify)), model="m")
    text = answer(PLAIN, ask, tokens=10).text
    assert text.endswith("What is 2 + 2?") and text != "What is 2 + 2?"
    assert clarify.check.fault("What is 2 + 2?", text, instruction=clarify.instruction or "") is None


def test_a_target_answers_in_prose_that_a_judge_can_judge() -> None:
    system = prompt_file("answer_system", package="plaudit.mutation")
    messages = ({"role": "system", "content": system}, {"role": "user", "content": "What is 2 + 2?"})
    text = answer(PLAIN, ask_of(ChatRequest(messages), model="m"), tokens=10).text  # type: ignore[arg-type]
    assert text.startswith("I would say ") and "{" not in text


@pytest.mark.parametrize("kind", ["chat", "generate"])
def test_a_request_without_any_text_gets_an_answer_too(kind: Any) -> None:
    assert answer(PLAIN, Ask(kind, "m", ()), tokens=10).text
