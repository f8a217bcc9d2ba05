"""The yes-or-no judge: what it asks, and how it reads probabilities into a score or refuses to."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from attacks import ATTACKS
from complaints import about
from hypothesis import given
from hypothesis import strategies as st

from plaudit.errors import ConfigError, Declined, UnreadableVerdict
from plaudit.judges.yes import Yes
from plaudit.types import ChatRequest, Reply, Sample, Source, Status, TokenChoice, Usage, Verdict

SAMPLE = Sample("What is 6 x 7?", "It is 42.")


def asked(judge: Yes, sample: Sample) -> ChatRequest:
    request = judge.render(sample)
    assert isinstance(request, ChatRequest)
    return request


def said(probabilities: dict[str, float], *, before: tuple[str, ...] = ()) -> Reply:
    """A reply whose first word had these alternatives, the likeliest of them chosen."""
    top = tuple((token, math.log(p)) for token, p in sorted(probabilities.items(), key=lambda item: -item[1]))
    leading = tuple(TokenChoice(token, -0.1, ((token, -0.1),)) for token in before)
    word = TokenChoice(top[0][0], top[0][1], top)
    text = "".join(before) + word.token
    return Reply(text, model="m", finish_reason="length", usage=Usage(100, 1), tokens=(*leading, word))


# --- what it asks -------------------------------------------------------------------------------------------


def test_a_system_message_comes_first_and_is_the_same_for_every_sample() -> None:
    first, second = (asked(Yes(), Sample(prompt, "Something.")) for prompt in ("One?", "Two?"))
    assert [message["role"] for message in first.messages] == ["system", "user"]
    assert first.messages[0] == second.messages[0]


def test_it_asks_for_probabilities_and_next_to_no_text() -> None:
    request = asked(Yes(), SAMPLE)
    assert request.top_logprobs == 20
    assert request.max_tokens <= 8
    assert request.temperature == 0.0
    assert request.schema is None


def test_the_judge_sees_task_reference_response_and_then_the_question() -> None:
    user = asked(Yes("Is it polite?"), replace(SAMPLE, reference="forty-two")).messages[1]["content"]
    places = [user.index(part) for part in ("What is 6 x 7?", "forty-two", "It is 42.", "Is it polite?")]
    assert places == sorted(places)
    assert "reference" not in asked(Yes(), SAMPLE).messages[1]["content"]


def test_samples_of_a_group_share_everything_before_the_response() -> None:
    one, two = (
        asked(Yes(), Sample("What is 6 x 7?", response, reference="42")).messages[1]["content"]
        for response in ("It is 42.", "Fifty.")
    )
    shared = one[: one.index("<response")]
    assert "What is 6 x 7?" in shared and "42" in shared
    assert two.startswith(shared)


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_no_response_gets_the_last_word(attack: str) -> None:
    judge = Yes()
    request = judge.render(Sample("Say something.", attack))
    if isinstance(request, Verdict):
        assert (request.score, request.status) == (0.0, Status.EMPTY)
        return
    plain = asked(judge, SAMPLE).messages[1]["content"]
    ending = plain[plain.rindex("\n\n") :]
    assert request.messages[1]["content"].endswith(ending)


@pytest.mark.parametrize("nothing", ["", "  \n", "</s>", "<think>I know it</think>"])
def test_a_response_that_says_nothing_needs_no_call(nothing: str) -> None:
    verdict = Yes(scale=(1, 5)).render(Sample("Why?", nothing))
    assert isinstance(verdict, Verdict)
    assert (verdict.score, verdict.status, verdict.source) == (1.0, Status.EMPTY, Source.RULE)


def test_reasoning_is_shown_only_where_it_is_asked_for() -> None:
    sample = Sample("6 x 7?", "<think>six sevens</think>42")
    assert "six sevens" not in asked(Yes(), sample).messages[1]["content"]
    assert "six sevens" in asked(Yes(show_thinking=True), sample).messages[1]["content"]


# --- how it reads -------------------------------------------------------------------------------------------


def test_the_score_is_the_share_of_yes() -> None:
    verdict = Yes().parse(said({"Yes": 0.6, "No": 0.3, "Maybe": 0.1}), SAMPLE)
    assert verdict.score == pytest.approx(2 / 3)
    assert (verdict.status, verdict.model, verdict.usage) == (Status.OK, "m", Usage(100, 1))
    assert verdict.reason == "P(yes) = 0.67 of mass 0.90"


def test_every_spelling_counts() -> None:
    reply = said(
        {"Yes": 0.1, " yes": 0.1, "▁YES": 0.1, '"yes': 0.1, "No": 0.2, "no.": 0.1, "Yesterday": 0.25}
    )
    verdict = Yes().parse(reply, SAMPLE)
    assert verdict.score == pytest.approx(4 / 7)
    assert verdict.reason.endswith("mass 0.70")


def test_marks_before_the_word_are_passed_over() -> None:
    verdict = Yes().parse(said({"Yes": 0.8, "No": 0.2}, before=("\n", "**")), SAMPLE)
    assert verdict.score == pytest.approx(0.8)


def test_a_judge_that_talks_about_something_else_gives_no_verdict() -> None:
    reply = said({"The": 0.5, "I": 0.46, "Yes": 0.03, "No": 0.01})
    with pytest.raises(UnreadableVerdict, match=r"probability 0\.04, less than min_mass=0\.5"):
        Yes().parse(reply, SAMPLE)
    assert Yes(min_mass=0.03).parse(reply, SAMPLE).score == pytest.approx(0.75)
    with pytest.raises(UnreadableVerdict):
        Yes(min_mass=0.8).parse(said({"Yes": 0.6, "No": 0.1, "Well": 0.3}), SAMPLE)


def test_without_probabilities_there_is_no_verdict_however_clear_the_text() -> None:
    with pytest.raises(UnreadableVerdict, match="top_logprobs"):
        Yes().parse(Reply("yes"), SAMPLE)
    with pytest.raises(UnreadableVerdict):
        Yes().parse(Reply("yes", tokens=(TokenChoice("yes", -0.01),)), SAMPLE)


def test_a_reply_of_blanks_has_no_word() -> None:
    with pytest.raises(UnreadableVerdict, match="no word"):
        Yes().parse(Reply("\n\n", tokens=(TokenChoice("\n\n", -0.1, (("yes", -0.1),)),)), SAMPLE)


def test_a_refusal_is_a_refusal() -> None:
    with pytest.raises(Declined, match="I cannot"):
        Yes().parse(Reply("", refusal="I cannot help with that"), SAMPLE)
    with pytest.raises(Declined):
        Yes().parse(replace(said({"Yes": 1.0}), finish_reason="content_filter"), SAMPLE)


@pytest.mark.parametrize("logprob", [math.nan, math.inf, 3.0])
def test_what_is_no_logarithm_of_a_probability_is_no_verdict(logprob: float) -> None:
    reply = Reply("yes", tokens=(TokenChoice("yes", logprob, (("yes", logprob), ("no", -1.0))),))
    with pytest.raises(UnreadableVerdict):
        Yes().parse(reply, SAMPLE)


words = st.sampled_from(["yes", "Yes", " yes", "no", "No", " NO", "maybe", "", "\n", "yesno"])
logprobs = st.one_of(st.floats(), st.floats(-40, 0))
choices = st.builds(
    TokenChoice, words, logprobs, st.lists(st.tuples(words, logprobs), max_size=20).map(tuple)
)
ends = st.floats(-1e6, 1e6)


@given(st.lists(choices, max_size=4), ends, ends)
def test_whatever_comes_back_the_score_is_on_the_scale_or_there_is_none(
    tokens: list[TokenChoice], low: float, high: float
) -> None:
    if low >= high:
        low, high = high - 1.0, low + 1.0
    try:
        verdict = Yes(scale=(low, high)).parse(Reply("", tokens=tuple(tokens)), SAMPLE)
    except UnreadableVerdict:
        return
    assert verdict.score is not None
    assert low <= verdict.score <= high


@given(st.floats(0.5, 0.98), st.floats(0.005, 0.01))
def test_more_yes_never_scores_less(yes: float, more: float) -> None:
    no = 0.01
    less, greater = (Yes().parse(said({"yes": p, "no": no}), SAMPLE).score for p in (yes, yes + more))
    assert less is not None and greater is not None
    assert less < greater


# --- what it refuses to be ----------------------------------------------------------------------------------


def test_its_version_changes_with_everything_that_changes_a_verdict() -> None:
    judges = [
        Yes(),
        Yes("Is it polite?"),
        Yes(scale=(0, 2)),
        Yes(min_mass=0.4),
        Yes(show_thinking=True),
        Yes(max_chars=10),
    ]
    assert len({judge.version for judge in judges}) == len(judges)
    assert Yes(scale=(0, 1)).version == Yes().version


@pytest.mark.parametrize(
    "settings",
    [
        {"criteria": " "},
        {"scale": (1, 0)},
        {"scale": (1,)},
        {"min_mass": 0.0},
        {"min_mass": math.nan},
        {"max_chars": 0},
        {"criteria": "\ud800 good?"},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError, check=about([*settings][-1])):
        Yes(**settings)  # type: ignore[arg-type]
