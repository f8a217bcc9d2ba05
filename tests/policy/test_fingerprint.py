"""The key covers everything that could change the answer, and is the same in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plaudit.policy.fingerprint import Fingerprinter, get_request_hash, jitter, sample_id
from plaudit.types import ChatRequest, EmbedRequest, GenerateRequest, Message, Request, Sample

thorough = settings(max_examples=100, deadline=None, derandomize=True, database=None)

fingerprint = Fingerprinter(model="m", version="v")
REQUEST = ChatRequest(
    messages=({"role": "system", "content": "Judge."}, {"role": "user", "content": "2 + 2 = 4"}),
    max_tokens=512,
    temperature=0.0,
    schema={"type": "object", "properties": {"score": {"type": "integer"}}},
    top_logprobs=0,
)

CHANGES: list[dict[str, Any]] = [
    {"messages": REQUEST.messages[:1]},
    {"messages": REQUEST.messages[::-1]},
    {"messages": ({"role": "user", "content": "Judge."}, REQUEST.messages[1])},
    {"messages": (REQUEST.messages[0], {"role": "user", "content": "2 + 2 = 5"})},
    {"messages": (REQUEST.messages[0], {"role": "user", "content": "2 + 2 = 4 "})},
    {"max_tokens": 513},
    {"temperature": 0.1},
    {"schema": None},
    {"schema": {"type": "object", "properties": {"score": {"type": "number"}}}},
    {"top_logprobs": 5},
    {"top_p": 0.9},
    {"seed": 0},
    {"reasoning_effort": "low"},
    {"extra": {"top_k": 20}},
    {"images": ("https://pictures.example/cat.png",)},
]

names = st.text(alphabet="ab|1\ud800é", max_size=4)


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_any_change_of_any_field_changes_the_key(change: dict[str, Any]) -> None:
    assert fingerprint(replace(REQUEST, **change)) != fingerprint(REQUEST)


def test_every_field_of_a_request_is_covered_above() -> None:
    covered = {name for change in CHANGES for name in change}
    assert covered == set(REQUEST.__dataclass_fields__) - {"is_fixed"}, "which changes nothing that is sent"


def test_the_key_does_not_depend_on_what_was_fingerprinted_before() -> None:
    requests = [REQUEST, *(replace(REQUEST, **change) for change in CHANGES)]
    alone = [Fingerprinter(model="m", version="v")(request) for request in requests]
    assert [fingerprint(request) for request in requests] == alone
    assert [fingerprint(request) for request in reversed(requests)] == alone[::-1]


def test_what_else_a_message_carries_is_covered() -> None:
    named: Any = {"role": "user", "content": "2 + 2 = 4", "name": "Ada"}
    assert fingerprint(replace(REQUEST, messages=(named,))) != fingerprint(
        replace(REQUEST, messages=({"role": "user", "content": "2 + 2 = 4"},))
    )


def test_the_key_is_a_sha256_digest_whatever_the_size_of_the_request() -> None:
    large = ChatRequest(({"role": "user", "content": "x" * 1_000_000},))
    assert len(fingerprint(large)) == 32


def test_the_key_does_not_depend_on_the_order_of_names() -> None:
    one: Message = {"role": "user", "content": "hi"}
    other: Message = {"content": "hi", "role": "user"}
    schema = {"type": "object", "required": ["score"]}
    turned = {"required": ["score"], "type": "object"}
    assert get_request_hash(ChatRequest((one,), schema=schema)) == get_request_hash(
        ChatRequest((other,), schema=turned)
    )


def test_another_rubric_model_or_judge_version_has_another_key() -> None:
    keys = {
        get_request_hash(REQUEST),
        get_request_hash(REQUEST, model="m"),
        get_request_hash(REQUEST, version="m"),
        get_request_hash(REQUEST, model="m", version="1"),
        get_request_hash(REQUEST, model="m", version="2"),
        get_request_hash(REQUEST, model="n", version="1"),
    }
    assert len(keys) == 6


@thorough
@given(names, names, names, names)
def test_fields_never_run_into_each_other(model: str, version: str, model2: str, version2: str) -> None:
    same = (model, version) == (model2, version2)
    one = get_request_hash(REQUEST, model=model, version=version)
    other = get_request_hash(REQUEST, model=model2, version=version2)
    assert (one == other) == same


@thorough
@given(
    st.lists(names.filter(lambda t: "\ud800" not in t)), st.lists(names.filter(lambda t: "\ud800" not in t))
)
def test_texts_never_run_into_each_other(one: list[str], other: list[str]) -> None:
    keys = [get_request_hash(EmbedRequest(tuple(texts))) for texts in (one, other)]
    assert (keys[0] == keys[1]) == (one == other)


def test_kinds_of_request_do_not_share_keys() -> None:
    requests: list[Request] = [
        ChatRequest(({"role": "user", "content": "a"},)),
        GenerateRequest("a"),
        EmbedRequest(("a",)),
    ]
    assert len({get_request_hash(request) for request in requests}) == 3


def test_every_process_computes_the_same_key() -> None:
    program = (
        "from plaudit.policy.fingerprint import get_request_hash, jitter\n"
        "from plaudit.types import ChatRequest\n"
        "schema = {name: name for name in 'zyxabc'}\n"
        "request = ChatRequest(({'role': 'user', 'content': 'hé'},), schema=schema)\n"
        "print(get_request_hash(request, model='m', version='v'), jitter(b'k', 3))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


@thorough
@given(st.binary(max_size=64), st.integers(min_value=0, max_value=2**40))
def test_jitter_lies_in_0_to_1_and_repeats(key: bytes, attempt: int) -> None:
    assert 0.0 <= jitter(key, attempt) <= 1.0
    assert jitter(key, attempt) == jitter(key, attempt)


def test_jitter_spreads_over_keys_and_attempts() -> None:
    values = [jitter(bytes([key]), attempt) for key in range(40) for attempt in range(25)]
    assert len(set(values)) == 1000
    for tenth in range(10):
        share = sum(tenth / 10 <= value < (tenth + 1) / 10 for value in values) / 1000
        assert 0.05 < share < 0.15


def test_samples_with_other_pictures_or_tool_calls_have_other_names() -> None:
    def named(**turn: Any) -> str:
        asked: Any = {"role": "user", "content": "What is it? [image]", **turn}
        return sample_id(Sample((asked,), "a cat"))

    call = {"id": "1", "function": {"name": "look", "arguments": "{}"}}
    names = [named(), named(images=["data:,a"]), named(images=["data:,b"]), named(tool_calls=[call])]
    assert len(set(names)) == 4
    assert named(images=("data:,a",)) == named(images=["data:,a"])  # as it comes back from a journal
