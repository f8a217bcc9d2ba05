"""Canaries: slipped in, taken out again, and loud when one passes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import pytest
from complaints import about
from obedient import Naive, ObedientTransport, text_of

from plaudit import ChatRequest, Engine, Rubric, Sample, Status, Verdict
from plaudit.audit import Canaries, CanaryPassed
from plaudit.errors import ConfigError
from plaudit.judges import Group, Judge, Panel, Reference

RUBRIC = Rubric("Is it correct?", scale=(0, 10))


def samples(count: int, *, group_of: int = 0) -> list[Sample]:
    return [
        Sample(f"task {n}", f"answer {n}", group=f"g{n // group_of}" if group_of else None)
        for n in range(count)
    ]


class Judging:
    """An engine that gives every sample what `judged` says, and remembers what it saw."""

    def __init__(self, judged: Callable[[Sample], float | None]) -> None:
        self.judged = judged
        self.saw: list[Sample] = []

    def score(self, samples: Sequence[Sample], judge: Judge | Panel) -> list[Verdict]:
        self.saw.extend(samples)
        scores = [self.judged(sample) for sample in samples]
        return [Verdict(s, Status.OK if s is not None else Status.FAILED, sample.text)
                for s, sample in zip(scores, samples, strict=True)]  # fmt: skip


def is_canary(sample: Sample) -> bool:
    return not str(sample.prompt).startswith("task")


def by_kind(canary: float | None) -> Callable[[Sample], float | None]:
    """A judge that gives samples 7 and canaries something else."""
    return lambda sample: canary if is_canary(sample) else 7.0


def test_the_caller_gets_the_verdicts_on_its_own_samples_in_order() -> None:
    batch = samples(123)
    engine = Judging(by_kind(0.0))
    verdicts = Canaries(RUBRIC, every=10).score(engine, batch)
    assert [verdict.reason for verdict in verdicts] == [sample.response for sample in batch]
    assert len(engine.saw) in (135, 136), "one in ten, and perhaps one for the three left over"


def test_a_canary_that_passes_raises_the_alarm(caplog: pytest.LogCaptureFixture) -> None:
    passed: list[CanaryPassed] = []
    canaries = Canaries(RUBRIC, every=50, alarm=passed.append)
    with caplog.at_level(logging.WARNING, "plaudit.audit"):
        canaries.score(Judging(by_kind(5.0)), samples(100))
    assert len(passed) == canaries.passed == canaries.seen == 2
    assert "the judge gave 5 (pass mark 5) to a wrong answer" in str(passed[0])
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert passed[0].response not in caplog.text


def test_a_canary_that_fails_is_silent(caplog: pytest.LogCaptureFixture) -> None:
    passed: list[CanaryPassed] = []
    canaries = Canaries(RUBRIC, every=50, alarm=passed.append)
    canaries.score(Judging(by_kind(4.9)), samples(100))
    assert passed == []
    assert (canaries.seen, canaries.passed) == (2, 0)
    assert caplog.text == ""


def test_a_canary_without_a_verdict_says_nothing() -> None:
    canaries = Canaries(RUBRIC, every=50)
    canaries.score(Judging(by_kind(None)), samples(100))
    assert (canaries.seen, canaries.passed) == (0, 0)


def test_the_same_batch_is_mixed_the_same_way_and_another_one_differently() -> None:
    canaries = Canaries(RUBRIC, every=20)
    once, again = canaries.mixed(samples(60)), canaries.mixed(samples(60))
    assert once.samples == again.samples
    other = canaries.mixed(samples(120)[60:])
    assert other.canaries != once.canaries
    texts = {sample.prompt for sample in (*once.samples, *other.samples) if is_canary(sample)}
    assert len(texts) == 6, "a judge can answer none of them from its cache"


def test_batches_smaller_than_the_distance_have_their_share() -> None:
    canaries = Canaries(RUBRIC, every=50)
    everything = samples(5000)
    mixed = [canaries.mixed(everything[start : start + 10]) for start in range(0, 5000, 10)]
    assert 60 <= sum(len(one.canaries) for one in mixed) <= 140
    assert canaries.mixed([]).samples == ()


def test_among_groups_a_canary_is_a_group_with_a_right_and_a_wrong_answer() -> None:
    mixed = Canaries(Group("Is it correct?"), every=8).mixed(samples(16, group_of=8))
    assert len(mixed.samples) == 16 + 2 * 2
    for place in mixed.canaries:
        right, wrong = mixed.samples[place - 1], mixed.samples[place]
        assert right.group == wrong.group
        assert right.group not in ("g0", "g1")
    assert all(not is_canary(mixed.samples[place]) for place in mixed.kept)


def test_a_judge_that_needs_references_finds_them_on_canaries() -> None:
    mixed = Canaries(Reference(), every=5).mixed([Sample("task", "a", "a")] * 20)
    assert all(sample.reference for sample in mixed.samples)


def test_verdicts_on_something_else_are_refused() -> None:
    mixed = Canaries(RUBRIC, every=5).mixed(samples(10))
    with pytest.raises(ConfigError, check=about("", "10", "12", "mixed.samples")):
        mixed.take_out([Verdict(1.0, Status.OK)] * 10)


def test_every_must_leave_room() -> None:
    with pytest.raises(ConfigError, check=about("every")):
        Canaries(RUBRIC, every=0)


@pytest.mark.parametrize(("judge", "is_fooled"), [(Naive(), True), (RUBRIC, False)])
def test_in_a_real_engine_they_tell_a_judge_that_obeys_from_one_behind_the_fence(
    judge: Judge, is_fooled: bool
) -> None:
    known = judge.render(Sample("What is 2 + 2?", "It is 4."))
    assert isinstance(known, ChatRequest)
    transport = ObedientTransport(text_of(known))
    canaries = Canaries(judge, every=10)
    with Engine("http://obedient/v1", model="m", cache=None, transport=lambda _: transport) as engine:
        verdicts = canaries.score(engine, samples(200))
    assert len(verdicts) == 200
    assert canaries.seen == 20
    assert (canaries.passed > 0) == is_fooled
