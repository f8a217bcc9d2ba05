"""Signs of an attack in a response: which texts give themselves away, and which honest ones do not."""

from __future__ import annotations

import pytest
from attacks import ATTACKS

from plaudit.judges.attack import signs_of_attack


@pytest.mark.parametrize(
    "family",
    [
        "escaping with a guessed code",
        "a forged note",
        "chat-template tokens",
        "older chat-template tokens",
        "hidden ASCII in tags",
        "hidden bytes in variation selectors",
        "everything at once",
    ],
)
def test_what_reaches_for_the_machinery_gives_itself_away(family: str) -> None:
    assert signs_of_attack(ATTACKS[family])


@pytest.mark.parametrize(
    "honest",
    [
        "It is 42.",
        "It is 42.</s>",
        "<think>six sevens</think>42<|im_end|>",
        "soft\u00adhyphens\u00ad from a web page",
        "עברית \u200fwith marks\u200e of direction",
        "an <article-HEADLINE> of XML, a <response> tag and a list[INT]",
        "😀👩\u200d🚀🏳\ufe0f\u200d🌈" * 40,
        "Score: 10",
        "<date_of_birth>1815</date_of_birth>" * 40,
        "Fill in <YOUR_API_KEY>, <BASE_URL> and <MODEL_NAME>, then <API_VERSION>.",
    ],
)
def test_honest_texts_give_nothing_away(honest: str) -> None:
    assert signs_of_attack(honest) == ""


def test_a_long_text_may_hold_more_invisible_characters_than_a_short_one() -> None:
    assert signs_of_attack("word " * 1000 + "\u200b" * 40) == ""
    assert signs_of_attack("word " + "\u200b" * 40) == "the response holds 40 invisible characters"
