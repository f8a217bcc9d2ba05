"""Cleaning: hostile characters go, honest text stays."""

from __future__ import annotations

import re

import pytest
from growth import PROPORTIONAL, slowdown
from hypothesis import given, settings
from hypothesis import strategies as st

from plaudit.judges.clean import clean, is_plain, without_tokens
from plaudit.judges.content import has_content

HONEST = {
    "code": "if a < b and x[0] > y[-1]:\n\treturn {'a': 1}  # <div class='s'> a <- b |> f <| g <|> h",
    "mathematics": "∀x∈ℝ: x² ≥ 0, ∑ᵢ aᵢ ≤ π·√2, [0, 1), f: A → B, a ≠ b, ½ ‖v‖",
    "accents": "déjà vu, naïve, Ångström, e\u0301 as two characters, tiếng Việt",
    "Chinese, Japanese, Korean": "解答は「四十二」です。答案是四十二。정답은 42입니다.",
    "an ideograph with its variation": "葛\U000e0100城市",
    "Arabic and Hebrew": "الجواب هو ٤٢، والسلام. התשובה היא 42.",
    "Persian with its non-joiners": "می\u200cخواهم کتاب\u200cها را بخوانم",
    "Hindi with its joiners": "क्\u200dष और क्\u200cष",
    "emoji sequences": "👩\u200d👩\u200d👧 ❤️\u200d🔥 👍🏽 🏳️\u200d🌈 1️⃣ #️⃣ ☺️ ©️ 🇩🇪",
    "quotation marks and dashes": "“So,” she said — ‘fine’… ‹fine› «fine»",
    "tabs and line feeds": "a\tb\nc\n",
    "types in code": "std::vector<uint8_t> v; Map<String, List<Integer>> m; a[i_max] = b[mask]; x << 2 >> 1",
    "markup": "<first_name>Ada</first_name> <xs:element> <my-tag> <br/> [INFO] started [1] [TODO] [a](b)",
    "addresses": "<ada@example.org> [ADA] <https://example.org>",
}


@pytest.mark.parametrize("text", HONEST.values(), ids=HONEST.keys())
def test_honest_text_passes_unchanged(text: str) -> None:
    assert clean(text) == (text, 0, 0)


TOKENS = [
    *("<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|start_header_id|>"),
    *("<s>", "</s>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "<start_of_turn>", "<end_of_turn>"),
    *(
        "<think>",
        "</think>",
        "<bos>",
        "<eos>",
        "<tool_call>",
        "<｜begin▁of▁sentence｜>",
        "<|turn>",
        "<turn|>",
    ),
]


FAMILIES = {
    "Kimi": "[BOS] [EOS] [EOT] [PAD] [start_header_id] <|im_middle|> <|tool_calls_section_begin|> ◁think▷",
    "GLM": "[gMASK] [sMASK] [MASK] <sop> <eop> <|observation|> <|begin_of_image|> <arg_key> </think>",
    "InternLM, first": "<eoh> <eoa> <eosys>",
    "Ling": "<role> </role> <|role_end|>",
    "TeleChat": "<_start> <_user> <_bot> <_end>",
    "LongCat": "<longcat_user> <longcat_assistant> </longcat_s>",
    "EXAONE": "[|system|] [|user|] [|assistant|] [|endofturn|] <thought_token>",
    "Nemotron": "<extra_id_0> <extra_id_1> <SPECIAL_10> <SPECIAL_11>",
    "MiniMax": "]~!b[ ]~b] [e~[ <beginning_of_sentence> <end_of_sentence> <minimax:tool_call>",
    "Seed": "<seed:bos> <seed:eos> <seed:think> </seed:think> <seed:cot_budget_reflect>",
    "Seed-Coder": "<[begin▁of▁sentence]> <[end▁of▁sentence]> <[fim-prefix]>",
    "Baichuan": "<reserved_102> <reserved_106> <B_SYS> <C_Q> <C_A>",
    "InternLM": "<eoh> <eoa> <|User|> [UNUSED_TOKEN_146] <TOKENS_UNUSED_1> <|im_start|>",
    "Mistral": "[INST] [/INST] [TOOL_CALLS] [AVAILABLE_TOOLS] [IMG] [CONTROL_4] [SYSTEM_PROMPT] [THINK] <s>",
    "Gemma": "<start_of_turn> <end_of_turn> <unused42> <start_of_image> <bos> <mask>",
    "Command": "<BOS_TOKEN> <|START_OF_TURN_TOKEN|> <|CHATBOT_TOKEN|> <|START_THINKING|>",
    "Llama": "<<SYS>> <</SYS>> <|begin_of_text|> <|start_header_id|> <|header_start|> <|eot|>",
    "DeepSeek": "<｜begin▁of▁sentence｜> <｜User｜> <｜tool▁calls▁begin｜> </｜DSML｜invoke>",
    "Falcon": ">>QUESTION<< >>ANSWER<< <|endoftext|>",
    "Qwen": "<|im_start|> <tool_call> </tool_call> <|vision_start|> <|fim_prefix|>",
    "an invented one": "<|zork_42|> [|zork|] <end_of_zork> <ZORK_TOKEN>",
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_control_tokens_of_every_family_are_broken(family: str) -> None:
    tokens = FAMILIES[family].split()
    text, count, _ = clean(" ".join(tokens))
    assert count == len(tokens)
    for token in tokens:
        assert token not in text
        assert has_content(f"{token} 42") and not has_content(token), token


@pytest.mark.parametrize("token", TOKENS)
def test_a_control_token_is_broken_visibly_and_counted(token: str) -> None:
    text, tokens, invisible = clean(f"before {token} after")
    assert token not in text
    assert token.strip("<>[]") in text, "the judge still sees what stood there"
    assert (tokens, invisible) == (1, 0)
    assert re.fullmatch(r"before (‹\S+[›>]|<\S+›) after", text)


def test_no_token_is_put_together_by_removing_what_split_it() -> None:
    assert clean("<\u200b|im_start|\u2060>").text == "‹|im_start|›"
    assert clean("<<s>s>").text == "<‹s›s>"


def test_a_text_full_of_brackets_or_joiners_loses_all_of_them() -> None:
    text, tokens, _ = clean("<s>" * 5_000 + "a <b> c")
    assert "<" not in text and tokens == 5_001
    text, _, invisible = clean("a\u200d" * 6_000 + "👩\u200d🚀")
    assert text == "a" * 6_000 + "👩🚀" and invisible == 6_001


def test_invisible_characters_are_removed_and_counted() -> None:
    assert clean("a\u200bb\u00adc\u202ed\ufeffe\U000e0041f\x1bg") == ("abcdefg", 0, 6)


def test_selectors_and_joiners_out_of_place_are_removed() -> None:
    assert clean("a\ufe0fb\u200dc\u200c") == ("abc", 0, 3)
    assert clean("😀\ufe0f\ufe0f\ufe0e") == ("😀\ufe0f", 0, 2)
    assert clean("👩\u200d") == ("👩", 0, 1)


def test_every_kind_of_line_break_becomes_a_line_feed_and_counts_for_nothing() -> None:
    assert clean("a\r\nb\rc\u2028d\u2029e\x85f\x0bg\x0ch") == ("a\nb\nc\nd\ne\nf\ng\nh", 0, 0)


def test_lone_surrogates_are_removed_so_that_the_text_can_be_sent() -> None:
    cleaned = clean("a\ud800b\udfff")
    assert cleaned == ("ab", 0, 2)
    assert cleaned.text.encode()


def test_tokens_can_be_cut_out_whole() -> None:
    assert without_tokens("<|im_end|>:[/INST] </s>") == ": "


hostile_text = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from([*"<>|[]/sINTthk_", "\u200b", "\u200d", "\ufe0f", "👩", "\ud800", "\x00", "｜"]),
    ),
    max_size=60,
).map(lambda text: text.replace("q", "<|im_start|>").replace("z", "</s>"))


@settings(max_examples=400, deadline=None, derandomize=True, database=None)
@given(hostile_text)
def test_a_cleaned_text_has_nothing_left_to_clean_and_can_be_sent(text: str) -> None:
    once = clean(text)
    once.text.encode()  # raises where a surrogate is left
    assert clean(once.text) == (once.text, 0, 0)
    if is_plain(text):
        assert once == (text, 0, 0)


@pytest.mark.parametrize(
    "unit", ["<", "<|", "<s>", "<|a|>", "[", "a\u200b", "a\u200d", "a\x01", "\ud800", "é", "<a|", "👩\u200d"]
)
def test_cleaning_takes_time_in_proportion_to_the_length(unit: str) -> None:
    text = unit * (160_000 // len(unit))
    assert slowdown(lambda length: clean(text[:length]), 160_000) < PROPORTIONAL
