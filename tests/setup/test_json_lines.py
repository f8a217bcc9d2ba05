"""One line: what is read from it, what is wrong with it, and what is left exactly as it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaudit.setup.json_lines import BadLine, Line, parse, read_back, render
from plaudit.types import Source, Status, Usage, Verdict

VERDICT = Verdict(
    score=7.0,
    status=Status.OK,
    reason="Right.",
    model="m",
    attempts=2,
    latency_s=0.25,
    source=Source.CACHE,
    usage=Usage(prompt_tokens=11, completion_tokens=3, cost=0.5),
)


def good(text: str | bytes) -> Line:
    line = parse(1, text.encode() if isinstance(text, str) else text)
    assert isinstance(line, Line), line
    return line


def reason(text: str | bytes) -> str:
    line = parse(7, text.encode() if isinstance(text, str) else text)
    assert isinstance(line, BadLine), line
    assert str(line).startswith("line 7: ")
    return line.reason


def test_prompt_response_reference_group_and_the_rest_are_read() -> None:
    line = good('{"id": 3, "prompt": "2+2?", "response": "4", "reference": "4", "group": "a", "tag": [1]}')
    assert line.sample.prompt == "2+2?"
    assert line.sample.response == "4"
    assert line.sample.reference == "4"
    assert line.sample.group == "a"
    assert line.sample.extra == {"id": 3, "tag": [1]}


def test_a_prompt_may_be_messages_with_text_or_parts_of_text() -> None:
    line = good(
        '{"prompt": [{"role": "system", "content": "Be brief."}, '
        '{"role": "user", "content": [{"type": "text", "text": "2+"}, {"type": "text", "text": "2?"}]}], '
        '"response": "4"}'
    )
    assert line.sample.prompt == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "2+2?"},
    )


def test_numbers_serve_as_reference_and_group() -> None:
    sample = good('{"prompt": "p", "response": "r", "reference": 42, "group": 7}').sample
    assert (sample.reference, sample.group) == ("42", "7")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"prompt": "p"', "not JSON"),
        ('{"prompt": "p', "not JSON: Unterminated string at character 12"),
        ("prompt,response", "not JSON: Expecting value at character 1"),
        ('["p", "r"]', "a list where an object is expected"),
        ("null", "null where an object is expected"),
        ('{"response": "r"}', "no 'prompt'; its fields are: response"),
        ('{"prompt": "p", "text": "r"}', "no 'response'; its fields are: prompt, text"),
        ("{}", "no 'prompt'; its fields are: none at all"),
        ('{"prompt": "p", "response": 4}', "'response' is a number, neither"),
        ('{"prompt": "p", "response": null}', "'response' is null, neither"),
        ('{"prompt": "p", "response": ["r"]}', "'response' is a list of texts; give each its own row"),
        ('{"prompt": 4, "response": "r"}', "'prompt' is a number, neither text nor a list of messages"),
        ('{"prompt": [], "response": "r"}', "'prompt' is an empty list"),
        ('{"prompt": ["hi"], "response": "r"}', "'prompt' is a list of texts"),
        (
            '{"prompt": [{"role": "user", "content": {}}], "response": "r"}',
            "message 1 of 'prompt' has an object among its content parts",
        ),
        ('{"prompt": [{"role": "user"}], "response": "r"}', "message 1 of 'prompt' is not like"),
        ('{"prompt": [{"role": "user", "content": 5}], "response": "r"}', "has a number as its content"),
        ('{"prompt": "p", "response": "r", "group": true}', "'group' is true or false, not text"),
        ('{"prompt": "p", "response": "r", "x": NaN}', "NaN is not valid in JSON; write null instead"),
        (b'{"prompt": "\xff", "response": "r"}', "not UTF-8 text (byte 13)"),
        ('{"prompt": "p"}'.encode("utf-16"), "UTF-16 text; save the file as UTF-8"),
        (b"\x1f\x8b\x08\x00\x00\xff\xfe", "decompress it first"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_a_bad_line_says_what_is_wrong(text: str | bytes, words: str) -> None:
    assert words in reason(text)


def test_the_verdict_is_added_after_all_other_fields() -> None:
    written = render(good('{"id": 1, "prompt": "p", "response": "r"}'), VERDICT)
    assert written.endswith(b"\n")
    assert list(json.loads(written)) == ["id", "prompt", "response", "score", "status", "reason", "judge"]
    assert json.loads(written)["judge"] == {
        "model": "m",
        "attempts": 2,
        "latency_s": 0.25,
        "source": "cache",
        "usage": {"prompt_tokens": 11, "completion_tokens": 3, "cost": 0.5},
    }


def test_a_failure_has_no_score_and_says_why() -> None:
    failed = Verdict(score=None, status=Status.FAILED, error="503 five times")
    record = json.loads(render(good('{"prompt": "p", "response": "r"}'), failed))
    assert record["score"] is None
    assert record["status"] == "failed"
    assert record["error"] == "503 five times"


def test_other_fields_keep_every_digit_and_escape() -> None:
    numbers = '"big": 123456789012345678901234567890, "f": 1.10, "e": 1E400'
    text = f'{{{numbers}, "u": "\\u00e9é", "prompt":"p","response":"r" }}'
    written = render(good(text), VERDICT).decode()
    assert written.startswith(text.removesuffix(" }"))


def test_fields_of_an_earlier_run_are_replaced_and_the_rest_stays() -> None:
    text = (
        '{"score": 1, "big": 123456789012345678901234567890, "prompt": "p", "response": "r", "error": "old"}'
    )
    written = render(good(text), VERDICT)
    record = json.loads(written)
    assert record["score"] == 7.0
    assert "error" not in record
    assert list(record) == ["big", "prompt", "response", "score", "status", "reason", "judge"]
    assert b'"big":123456789012345678901234567890' in written


def test_a_lone_surrogate_passes_in_every_place() -> None:
    for text in (
        '{"prompt": "p", "response": "\\ud800", "x": "\\udfff"}',
        '{"prompt": "p", "response": "\\ud800", "status": "ok"}',
    ):
        line = good(text)
        assert line.sample.response == "\ud800"
        said = Verdict(score=1.0, status=Status.OK, reason="odd \udc00 text")
        record = json.loads(render(line, said))
        assert record["response"] == "\ud800"
        assert record["reason"] == "odd \udc00 text"
        assert list(record).count("status") == 1


def test_score_and_group_are_found_again_in_a_written_line() -> None:
    assert read_back(render(good('{"group": 7, "prompt": "p", "response": "r"}'), VERDICT)) == (7.0, "7")
    assert read_back(render(good('{"prompt": "p", "response": "r"}'), VERDICT)) == (7.0, None)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(), json_values, max_size=5),
    st.text(st.characters(codec=None), max_size=20),
    st.booleans(),
)
def test_whatever_else_a_line_holds_comes_out_as_it_went_in(
    others: dict[str, object], response: str, ensure_ascii: bool
) -> None:
    ascii_only = ensure_ascii or any(0xD800 <= ord(char) <= 0xDFFF for char in response)
    for name in ("prompt", "reference", "group"):
        others.pop(name, None)
    record = {**others, "prompt": "p", "response": response}
    written = render(good(json.dumps(record, ensure_ascii=ascii_only)), VERDICT)
    assert written.count(b"\n") == 1
    back = json.loads(written)
    for name, value in record.items():
        if name not in ("score", "status", "reason", "judge", "error"):
            assert back[name] == value
    assert back["score"] == 7.0
