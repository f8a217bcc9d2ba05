"""What a judge demands of its samples is asked before the first call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pytest

from plaudit.engine import Engine
from plaudit.errors import ConfigError
from plaudit.judges import Jury, Reference, Rubric
from plaudit.judges.base import Question
from plaudit.judges.check import check_samples
from plaudit.testing import ScriptedTransport
from plaudit.types import Reply, Sample, Verdict

GOOD, BAD = Sample("6 x 7?", "42", reference="42"), Sample("6 x 8?", "48")


@dataclass(frozen=True)
class Pair:
    """A panel that hands every sample on to a reference judge."""

    version: str = "pair"

    def split(self, samples: Sequence[Sample]) -> Iterable[Question]:
        judge = Reference()
        return [Question(judge, sample, (index,)) for index, sample in enumerate(samples)]

    def combine(self, index: int, sample: Sample, verdicts: Sequence[Verdict]) -> Verdict:
        return verdicts[0]


def test_the_first_sample_that_will_not_do_is_named() -> None:
    with pytest.raises(ConfigError, match="sample 7: reference=None cannot be compared with"):
        check_samples(Reference(), [(6, GOOD), (7, BAD), (8, BAD)])


def test_a_jury_demands_what_its_members_demand() -> None:
    jury = Jury([Rubric("Is it right?"), Reference()])
    check_samples(jury, [(0, GOOD)])
    with pytest.raises(ConfigError, match="sample 1: reference=None"):
        check_samples(jury, [(0, GOOD), (1, BAD)])


def test_judges_without_demands_take_every_sample() -> None:
    check_samples(Rubric("Is it right?"), [(0, BAD)])


@pytest.mark.parametrize("judge", [Reference(), Pair()])
def test_nothing_is_sent_when_one_sample_will_not_do(judge: Reference | Pair) -> None:
    transport = ScriptedTransport([Reply('{"reason": "r", "equivalent": true}')])
    with (
        Engine("http://127.0.0.1:9/v1", model="m", cache=None, transport=lambda _: transport) as engine,
        pytest.raises(ConfigError, match="sample 1: reference=None"),
    ):
        engine.submit([GOOD, BAD], judge)
    assert transport.sent == []


def test_samples_that_will_do_are_judged() -> None:
    transport = ScriptedTransport([Reply('{"reason": "r", "equivalent": true}')])
    with Engine("http://127.0.0.1:9/v1", model="m", cache=None, transport=lambda _: transport) as engine:
        assert [verdict.score for verdict in engine.score([GOOD, GOOD], Reference())] == [1.0, 1.0]
        assert [verdict.score for verdict in engine.score([GOOD], Pair())] == [1.0]
