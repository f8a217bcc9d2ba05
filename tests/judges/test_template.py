"""Templates are filled in one pass."""

from __future__ import annotations

import pytest

from plaudit.judges.template import fill, prompt_file


def test_a_value_that_looks_like_a_slot_stays_what_it_is() -> None:
    assert fill("{{a}} {{b}}", {"a": "{{b}}", "b": "{{a}} {x} \\1"}) == "{{b}} {{a}} {x} \\1"


def test_single_braces_are_text() -> None:
    assert fill('{"score": {{form}}}', {"form": "7"}) == '{"score": 7}'


def test_a_slot_without_a_value_is_an_error() -> None:
    with pytest.raises(KeyError):
        fill("{{missing}}", {})


def test_prompts_ship_with_the_package() -> None:
    assert "{{criteria}}" in prompt_file("rubric_system")
