"""The adapter for OpenRLHF: how it finds the response in a query, without torch."""

from __future__ import annotations

import inspect

import pytest

from plaudit.integrations.openrlhf import response_of, reward_func

PROMPT = "<|im_start|>user\nWhy is the sky blue? " + "Think. " * 40 + "<|im_end|>\n<|im_start|>assistant\n"


def test_the_response_is_what_follows_the_prompt() -> None:
    assert response_of(PROMPT + "It scatters.<|im_end|>", PROMPT) == "It scatters.<|im_end|>"
    assert response_of("<s>" + PROMPT + "It scatters.", PROMPT) == "It scatters."


def test_a_response_that_repeats_the_prompt_stays_whole() -> None:
    assert response_of(PROMPT + "You ask: " + PROMPT, PROMPT) == "You ask: " + PROMPT


def test_a_prompt_that_lost_its_head_is_recognised() -> None:
    assert response_of(PROMPT[50:] + "It scatters.", PROMPT) == "It scatters."


def test_a_query_without_its_prompt_is_shown_whole_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        assert response_of("Something else", PROMPT) == "Something else"
    assert caplog.text.count("does not begin with its prompt") <= 1


def test_its_signature_is_the_documented_one() -> None:
    parameters = inspect.signature(reward_func).parameters
    assert list(parameters)[:3] == ["queries", "prompts", "labels"]
    assert not inspect.iscoroutinefunction(reward_func), "OpenRLHF calls it in a thread"
