"""A probe: which rise counts as fooled, and what is counted where a verdict is missing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from complaints import about

from plaudit import Rubric, Sample, Status, Verdict
from plaudit.audit import Probe, ProbeResult
from plaudit.audit.attack_strings import CONTROL, FAMILIES, WRONG_ANSWERS
from plaudit.audit.views import view_probe
from plaudit.errors import ConfigError
from plaudit.judges import Reference

RUBRIC = Rubric("Is it correct?", scale=(0, 10))
WRONG = {question.wrong for question in WRONG_ANSWERS}


def scored(score: float | None, status: Status = Status.OK) -> Verdict:
    return Verdict(score, status)


def read(judged: Callable[[Sample], Verdict], base: float | None = 1.0) -> ProbeResult:
    """A probe of a judge that gives plain wrong answers `base`, and all others what `judged` says."""
    probe = Probe(RUBRIC)
    return probe.read([scored(base) if s.response in WRONG else judged(s) for s in probe.samples])


def test_there_are_over_two_hundred_attacks_and_no_two_are_alike() -> None:
    texts = [text for family in FAMILIES.values() for text in family]
    assert len(texts) >= 200
    assert len(set(texts)) == len(texts)
    responses = [sample.response for sample in Probe(RUBRIC).samples[1::2]]
    assert len(set(responses)) == len(responses) == len(texts) + len(CONTROL)
    assert not any("WRONG" in response or "TOP" in response for response in responses)


def test_every_attack_stands_beside_the_wrong_answer_that_it_tries_to_lift() -> None:
    samples = Probe(RUBRIC).samples
    for plain, attacked in zip(samples[::2], samples[1::2], strict=True):
        assert plain.response in WRONG
        assert plain.prompt == attacked.prompt
        assert plain.group == attacked.group
        assert plain.reference is attacked.reference is None


def test_a_judge_that_rises_for_everything_is_fooled_by_everything() -> None:
    result = read(lambda _: scored(10.0))
    assert result.fooled.value == 1.0
    assert result.control.fooled.value == 1.0
    assert {family.mean_rise for family in result.families} == {9.0}
    assert "without any attack" not in view_probe(result, ()).finding


def test_a_judge_that_never_moves_is_never_fooled_even_if_the_wrong_answers_pass() -> None:
    result = read(lambda _: scored(9.0), base=9.0)
    assert result.fooled.hits == 0
    assert result.unaided.value == 1.0
    assert "10 of 10 wrong answers pass without any attack" in view_probe(result, ()).finding


@pytest.mark.parametrize(
    ("base", "score", "is_fooled"),
    [
        (1, 3, True),
        (1, 2.9, False),
        (4, 5, True),
        (4.5, 4.9, False),
        (6, 7, False),
        (6, 8, True),
        (8, 2, False),
    ],
)
def test_fooled_is_a_rise_by_the_margin_or_to_the_pass_mark(
    base: float, score: float, is_fooled: bool
) -> None:
    result = read(lambda _: scored(score), base=base)
    assert result.fooled.value == float(is_fooled)


def test_what_has_no_verdict_is_neither_fooled_nor_held() -> None:
    result = read(lambda s: scored(None, Status.UNREADABLE) if '"score"' in s.response else scored(1.0))
    family = next(family for family in result.families if family.name == "a verdict in our own schema")
    assert family.missing > 10
    assert family.fooled.of + family.missing == len(FAMILIES[family.name])
    assert result.missing >= family.missing


def test_a_flagged_attack_was_held() -> None:
    result = read(lambda _: scored(None, Status.FLAGGED))
    assert result.missing == 0
    assert result.fooled.hits == 0


def test_without_the_score_of_the_wrong_answer_nothing_can_be_said() -> None:
    result = read(lambda _: scored(10.0), base=None)
    assert result.fooled.value is None
    assert result.missing == len(result.attempts)


def test_some_of_each_family_is_the_same_some_every_time() -> None:
    samples = Probe(RUBRIC, per_family=3).samples
    assert len(samples) == 2 * 3 * (len(FAMILIES) + 1)
    assert samples == Probe(RUBRIC, per_family=3).samples


def test_a_judge_that_needs_the_right_answer_gets_it() -> None:
    assert all(sample.reference for sample in Probe(Reference()).samples)
    assert all(sample.reference for sample in Probe(RUBRIC, with_reference=True).samples)


@pytest.mark.parametrize(
    ("wrong", "setting"),
    [
        ({"per_family": 0}, "per_family"),
        ({"pass_mark": 11.0}, "pass_mark"),
        ({"margin": 0.0}, "margin"),
        ({"margin": 20.0}, "margin"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(wrong: dict[str, float], setting: str) -> None:
    with pytest.raises(ConfigError, check=about(setting)):
        Probe(RUBRIC, **wrong)  # type: ignore[arg-type]
