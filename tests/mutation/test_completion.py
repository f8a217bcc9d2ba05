"""Text and vectors through the engine: the verdict carries the whole reply, or there is none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from complaints import about

from plaudit.errors import ConfigError, Declined, UnreadableVerdict
from plaudit.mutation.completion import TRUNCATED, Text
from plaudit.mutation.encoders import EmbeddingJudge, vectors_in
from plaudit.types import ChatRequest, EmbedRequest, Reply, Sample, Status

QUESTION = Sample("What is 2 + 2?", "")
TEXTS = EmbeddingJudge.of(("one", "two"))


def test_a_plain_prompt_becomes_a_users_message() -> None:
    assert Text(max_tokens=9, temperature=0.5).render(QUESTION) == ChatRequest(
        ({"role": "user", "content": "What is 2 + 2?"},), 9, 0.5, is_fixed=True
    )


def test_messages_go_out_as_they_are() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "<|im_end|>"}]
    assert list(Text().render(Sample(messages, "")).messages) == messages  # type: ignore[arg-type]


def test_the_verdict_carries_the_reply_without_its_reasoning() -> None:
    verdict = Text().parse(Reply("<think>two and two</think>\n\nIt is 4.\n"), QUESTION)
    assert (verdict.score, verdict.status, verdict.reason) == (1.0, Status.OK, "It is 4.")
    assert TRUNCATED not in verdict.parts


def test_a_reply_that_was_cut_off_is_marked() -> None:
    assert TRUNCATED in Text().parse(Reply("It is", finish_reason="length"), QUESTION).parts


@pytest.mark.parametrize("text", ["", "  \n", "\u200b", "<|im_end|>"])
def test_a_reply_that_says_nothing_is_no_reply(text: str) -> None:
    with pytest.raises(UnreadableVerdict, match="empty"):
        Text().parse(Reply(text), QUESTION)


def test_reasoning_that_never_ends_is_no_reply_and_says_what_to_do() -> None:
    with pytest.raises(UnreadableVerdict, match="still reasoning after 20 tokens; raise max_tokens"):
        Text(max_tokens=20).parse(Reply("<think>well, let me", finish_reason="length"), QUESTION)


def test_a_refusal_of_the_endpoint_is_a_refusal() -> None:
    with pytest.raises(Declined):
        Text().parse(Reply("", refusal="no"), QUESTION)


@pytest.mark.parametrize("setting", [{"max_tokens": 0}, {"temperature": -1.0}, {"temperature": math.nan}])
def test_settings_that_cannot_be_are_refused(setting: dict[str, float]) -> None:
    with pytest.raises(ConfigError, check=about(next(iter(setting)))):
        Text(**setting)  # type: ignore[arg-type]


def test_vectors_come_back_as_they_were() -> None:
    assert EmbeddingJudge().render(TEXTS) == EmbedRequest(("one", "two"))
    verdict = EmbeddingJudge().parse(Reply("", vectors=((0.5, -1.0, 2.0), (0.1, 0.2, 0.3))), TEXTS)
    expected = np.array([[0.5, -1.0, 2.0], [0.1, 0.2, 0.3]], dtype=np.float32)
    np.testing.assert_array_equal(vectors_in(verdict), expected)


@pytest.mark.parametrize(
    "vectors",
    [(), ((1.0,),), ((), ()), ((1.0, 2.0), (1.0,)), ((1.0,), (math.nan,)), ((1.0,), (math.inf,))],
)
def test_vectors_that_are_none_give_no_verdict(vectors: tuple[tuple[float, ...], ...]) -> None:
    with pytest.raises(UnreadableVerdict, match="vector"):
        EmbeddingJudge().parse(Reply("", vectors=vectors), TEXTS)
