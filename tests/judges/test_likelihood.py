"""The likelihood judge: the log-probability of the response itself."""

from __future__ import annotations

import math

import pytest

from plaudit import ConfigError, Engine, Sample, Status
from plaudit.errors import UnreadableVerdict
from plaudit.judges import Likelihood
from plaudit.simulator import Scenario, SimulatedTransport
from plaudit.types import LikelihoodRequest, Reply, TokenChoice

TOWN = Sample("What is the capital of France?", "Paris.")


def told(*logprobs: float) -> Reply:
    return Reply("", tokens=tuple(TokenChoice("x", logprob) for logprob in logprobs))


def test_it_asks_for_the_response_after_the_question() -> None:
    expected = LikelihoodRequest("Question: What is the capital of France?\nAnswer:", " Paris.")
    assert Likelihood().render(TOWN) == expected


def test_a_conversation_is_asked_about_like_its_text() -> None:
    chat = Sample([{"role": "user", "content": "What is the capital of France?"}], "Paris.")
    assert Likelihood().render(chat) == Likelihood().render(TOWN)


def test_hidden_reasoning_is_no_part_of_the_answer() -> None:
    thought = Sample(TOWN.prompt, "<think>Lyon? No.</think>Paris.")
    assert Likelihood().render(thought) == Likelihood().render(TOWN)


def test_the_score_is_the_sum_of_the_log_probabilities() -> None:
    verdict = Likelihood().parse(told(-1.5, -0.25), TOWN)
    assert (verdict.score, verdict.parts) == (-1.75, {"tokens": 2.0})


def test_the_score_stays_on_the_scale() -> None:
    judge = Likelihood(floor=-10.0)
    assert judge.scale == (-10.0, 0.0)
    assert judge.parse(told(-7.0, -7.0), TOWN).score == -10.0
    assert judge.parse(told(0.001), TOWN).score == 0.0


@pytest.mark.parametrize("logprobs", [(), (math.nan,), (0.5,), (-math.inf,)])
def test_numbers_that_are_no_log_probabilities_are_no_verdict(logprobs: tuple[float, ...]) -> None:
    with pytest.raises(UnreadableVerdict):
        Likelihood().parse(told(*logprobs), TOWN)


def test_an_empty_response_gets_the_lowest_score_without_a_call() -> None:
    verdict = Likelihood().render(Sample("Q", " "))
    assert not isinstance(verdict, LikelihoodRequest)
    assert (verdict.status, verdict.score) == (Status.EMPTY, -300.0)


def test_the_version_changes_with_the_template_and_the_floor() -> None:
    versions = {Likelihood().version, Likelihood("Q: {prompt}\nA:").version, Likelihood(floor=-5.0).version}
    assert len(versions) == 3


@pytest.mark.parametrize(
    ("setting", "options"), [("template", {"template": "Answer:"}), ("floor", {"floor": 1.0})]
)
def test_a_setting_that_makes_no_sense_is_named(setting: str, options: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as caught:
        Likelihood(**options)  # type: ignore[arg-type]
    assert caught.value.setting == setting


def test_the_engine_scores_by_it() -> None:
    with Engine("http://s/v1", cache=None, transport=lambda _: SimulatedTransport(Scenario())) as engine:
        right, other = engine.score([TOWN, Sample(TOWN.prompt, "Lyon.")], Likelihood())
    assert right.score is not None and other.score is not None
    assert -300.0 <= right.score < 0.0 and right.score != other.score
