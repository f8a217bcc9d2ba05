"""The expected-score judge: how probabilities of digits become one number, or none."""

from __future__ import annotations

import math

import pytest
from asking import asked, considered
from attacks import ATTACKS
from complaints import about
from hypothesis import given
from hypothesis import strategies as st

from plaudit.errors import ConfigError, Declined, UnreadableVerdict
from plaudit.judges.expected import Expected
from plaudit.types import ChatRequest, Reply, Sample, Source, Status, TokenChoice, Verdict

CRITERIA = "Is it clear?"
SAMPLE = Sample("6 x 7?", "It is 42.")


def test_it_asks_for_one_digit_with_its_alternatives_and_for_no_reason() -> None:
    request = asked(Expected(CRITERIA, anchors={1: "muddled", 5: "lucid"}), SAMPLE)
    system, user = (message["content"] for message in request.messages)
    assert CRITERIA in system and "\n1: muddled\n5: lucid\n" in system
    assert user.endswith("Reply with one digit from 1 to 5.")
    assert "reason" not in system + user
    assert (request.top_logprobs, request.temperature, request.schema) == (20, 0.0, None)
    assert request.max_tokens <= 8


def test_the_score_is_the_mean_over_the_digits_of_the_scale() -> None:
    reply = considered({"4": 0.5, " 5": 0.25, "▁3": 0.15, "9": 0.05, "The": 0.05})
    verdict = Expected(CRITERIA).parse(reply, SAMPLE)
    mean = (4 * 0.5 + 5 * 0.25 + 3 * 0.15) / 0.9
    variance = (0.5 * (4 - mean) ** 2 + 0.25 * (5 - mean) ** 2 + 0.15 * (3 - mean) ** 2) / 0.9
    assert verdict.score == pytest.approx(mean, abs=1e-12)
    assert verdict.parts["mass"] == pytest.approx(0.9)
    assert verdict.parts["std"] == pytest.approx(math.sqrt(variance))
    assert (verdict.status, verdict.model) == (Status.OK, "m")


def test_a_sure_judge_has_no_spread() -> None:
    verdict = Expected(CRITERIA, scale=(0, 9)).parse(considered({"9": 1.0}), SAMPLE)
    assert verdict.score == 9.0
    assert verdict.parts == {"mass": 1.0, "std": 0.0}


def test_below_the_mass_asked_for_there_is_no_verdict() -> None:
    reply = considered({"4": 0.7, "The": 0.3})
    with pytest.raises(UnreadableVerdict, match=r"1 to 5 together have probability 0\.70.*min_mass=0\.8"):
        Expected(CRITERIA).parse(reply, SAMPLE)
    assert Expected(CRITERIA, min_mass=0.7).parse(reply, SAMPLE).score == pytest.approx(4.0)


def test_numbers_that_only_begin_with_a_digit_of_the_scale_are_no_scores() -> None:
    with pytest.raises(UnreadableVerdict, match="min_mass"):
        Expected(CRITERIA).parse(considered({"10": 0.9, "1": 0.1}), SAMPLE)
    for after in ("0", ".5", ",5", "/10", "/ 10"):
        with pytest.raises(UnreadableVerdict, match="not one digit"):
            Expected(CRITERIA).parse(considered({"1": 1.0}, after=after), SAMPLE)
    for after in (".", "\n", " because", "**"):
        assert Expected(CRITERIA).parse(considered({"1": 1.0}, after=after), SAMPLE).score == 1.0


def test_marks_before_the_digit_are_passed_over() -> None:
    assert Expected(CRITERIA).parse(considered({"3": 1.0}, before=("\n", "**")), SAMPLE).score == 3.0


def test_without_probabilities_there_is_no_verdict_however_clear_the_text() -> None:
    with pytest.raises(UnreadableVerdict, match="top_logprobs"):
        Expected(CRITERIA).parse(Reply("4"), SAMPLE)
    with pytest.raises(UnreadableVerdict):
        Expected(CRITERIA).parse(Reply("4", tokens=(TokenChoice("4", -0.01),)), SAMPLE)
    with pytest.raises(Declined):
        Expected(CRITERIA).parse(Reply("", refusal="no"), SAMPLE)


tokens = st.sampled_from(["1", "2", " 3", "4", "5", "9", "10", "", "\n", "The", "٣"])
logprobs = st.one_of(st.floats(), st.floats(-40, 0))
choices = st.builds(
    TokenChoice, tokens, logprobs, st.lists(st.tuples(tokens, logprobs), max_size=20).map(tuple)
)


@given(st.lists(choices, max_size=4))
def test_whatever_comes_back_the_score_is_on_the_scale_or_there_is_none(found: list[TokenChoice]) -> None:
    try:
        verdict = Expected(CRITERIA, min_mass=0.01).parse(Reply("", tokens=tuple(found)), SAMPLE)
    except UnreadableVerdict:
        return
    assert verdict.score is not None and 1.0 <= verdict.score <= 5.0
    assert all(math.isfinite(part) for part in verdict.parts.values())


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_no_response_gets_the_last_word(attack: str) -> None:
    request = Expected(CRITERIA, show_thinking=True).render(Sample("6 x 7?", attack))
    assert isinstance(request, ChatRequest)
    assert request.messages[1]["content"].endswith("Reply with one digit from 1 to 5.")


def test_a_response_that_says_nothing_gets_the_worst_score_without_a_call() -> None:
    verdict = Expected(CRITERIA).render(Sample("6 x 7?", " "))
    assert isinstance(verdict, Verdict)
    assert (verdict.score, verdict.status, verdict.source) == (1.0, Status.EMPTY, Source.RULE)


def test_its_version_changes_with_everything_that_changes_a_verdict() -> None:
    judges = [
        Expected(CRITERIA),
        Expected("Is it kind?"),
        Expected(CRITERIA, (0, 9)),
        Expected(CRITERIA, anchors={1: "muddled"}),
        Expected(CRITERIA, min_mass=0.5),
        Expected(CRITERIA, show_thinking=True),
        Expected(CRITERIA, max_chars=9),
    ]
    assert len({judge.version for judge in judges}) == len(judges)


@pytest.mark.parametrize(
    "settings",
    [
        {"criteria": ""},
        {"scale": (5, 1)},
        {"scale": (0, 10)},
        {"scale": (-1, 5)},
        {"scale": (1, 4.5)},
        {"scale": 5},
        {"anchors": {7: "too good"}},
        {"min_mass": 0.0},
        {"min_mass": math.nan},
        {"max_chars": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError, check=about([*settings][-1])):
        Expected(**{"criteria": CRITERIA, **settings})  # type: ignore[arg-type]
