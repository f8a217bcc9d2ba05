"""Where reasoning ends and the answer begins."""

from __future__ import annotations

import pytest

from plaudit.reasoning import BOUND, without_reasoning


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("42", "42"),
        ("<think>hm</think>42", "42"),
        ("<think>\nhm\n</think>\n\n42\n", "42"),
        ("hm, so\n</think>\n42", "42"),
        ("<think>hm", ""),
        ("42 <think>hm", "42 <think>hm"),
        ("<think>a</think>42 <think>hm", "42 <think>hm"),
        ("[THINK]hm[/THINK]42", "42"),
        ("[THINK]hm", ""),
        ("<seed:think>hm</seed:think>42", "42"),
        ("◁think▷hm◁/think▷42", "42"),
        ("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>42", "42"),
        ("<|start|>assistant<|channel|>analysis<|message|>hm", ""),
        ("a<think>b</think>c<think>d</think>e", "ace"),
        ("<think>a<think>b</think>c</think>d", "d"),
        ("<thinking>hm</thinking>42", "42"),
        ("a<think>b</think>c</think>d<think>e", "d<think>e"),
        ("  42, I think <b>surely</b>  ", "  42, I think <b>surely</b>  "),
        ("<think></think>", ""),
        ("I think a < b", "I think a < b"),
        (
            "Write `<think>` before and `</think>` after it.",
            "Write `<think>` before and `</think>` after it.",
        ),
    ],
)
def test_reasoning_is_hidden(response: str, answer: str) -> None:
    assert without_reasoning(response) == answer


@pytest.mark.parametrize("answer", ["42", "It writes `</think>` itself.", "42 <think>hm"])
def test_reasoning_is_hidden_in_a_text_of_any_length(answer: str) -> None:
    for length in (1_000, BOUND):
        assert without_reasoning(f"<think>{'hm ' * length}</think>{answer}") == answer
        assert without_reasoning("hm " * length + "</think>" + answer) == answer
        assert without_reasoning(f"<think>{'hm ' * length}") == ""
        assert without_reasoning("hm " * length + "`</think>`") == "hm " * length + "`</think>`"
