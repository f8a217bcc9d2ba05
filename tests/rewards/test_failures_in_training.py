"""A simulated judge that fails in every way there is: what reaches the policy is what would without it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

import pytest

from plaudit.config import Endpoint, EngineConfig
from plaudit.judges.base import Judge
from plaudit.judges.rubric import Rubric
from plaudit.rewards import Component, Reward, Rewards, advantages
from plaudit.scheduling.batch import Batch
from plaudit.scheduling.dispatcher import Dispatcher
from plaudit.scheduling.lane import Lane
from plaudit.scheduling.scorer import Scorer
from plaudit.simulator import Fault, Scenario, SimulatedTransport
from plaudit.testing import run
from plaudit.types import ChatRequest, Reply, Sample, Status, Verdict

GROUPS, SIZE = 64, 8
SHARE = 0.014
BAD = (
    Fault("error", SHARE, status=400),
    Fault("refusal", SHARE),
    Fault("filtered", SHARE / 2),
    Fault("babble", 0.25),  # an unreadable reply is asked for up to three times: all must fail
    Fault("truncated", 0.06),
    Fault("hang", SHARE),
)


@dataclass(frozen=True)
class Flagging(Judge):
    """A rubric that flags some responses, as one that has found an attack in them does."""

    rubric: Rubric = field(default_factory=lambda: Rubric("Is it right?"))

    @property
    def version(self) -> str:
        return self.rubric.version

    @property
    def scale(self) -> tuple[float, float]:
        return self.rubric.scale

    def render(self, sample: Sample) -> ChatRequest | Verdict:
        if sample.text.endswith(": 7 of 11"):
            return Verdict(None, Status.FLAGGED, error="an attack")
        return self.rubric.render(sample)

    def parse(self, reply: Reply, sample: Sample) -> Verdict:
        return self.rubric.parse(reply, sample)


SAMPLES = [
    Sample(
        f"question {group}", f"answer {row} to {group}: {(group * SIZE + row) % 53} of 11", group=str(group)
    )
    for group in range(GROUPS)
    for row in range(SIZE)
]


async def judged() -> list[Verdict]:
    scenario = Scenario(seed=3, faults=BAD)
    lane = Lane(
        Endpoint("http://judge/v1", model="m"), SimulatedTransport(scenario), start=None, ceiling=None
    )
    config = EngineConfig(hedge=False, timeout=600.0)
    scorer = Scorer(lambda on_room: Dispatcher([lane], config, on_room=on_room))
    batch = Batch(SAMPLES, Flagging(), model="m", deadline=300.0)
    scorer.start(batch)
    done = asyncio.Event()
    batch.when_done(done.set)
    await done.wait()
    await scorer.close()
    return [verdict for verdict in batch.verdicts if verdict is not None]


@pytest.fixture(scope="module")
def verdicts() -> list[Verdict]:
    return run(judged())


def rewarded(verdicts: list[Verdict], **settings: object) -> Rewards:
    reward = Reward([Component("judge")], **settings)  # type: ignore[arg-type]
    return reward.combine(SAMPLES, verdicts={"judge": verdicts})


def test_a_tenth_fails_and_in_every_way(verdicts: list[Verdict]) -> None:
    failed = [verdict for verdict in verdicts if not verdict.is_valid]
    assert {verdict.status for verdict in failed} == set(Status) - {Status.OK, Status.EMPTY}
    assert 0.07 < len(failed) / len(verdicts) < 0.14


def test_masked_the_advantages_are_those_of_the_batch_without_the_failed_rows(
    verdicts: list[Verdict],
) -> None:
    rewards = rewarded(verdicts)
    assert rewards.groups_masked == 0
    ours = advantages(rewards.values, rewards.groups)
    left = [index for index, verdict in enumerate(verdicts) if verdict.is_valid]
    scores = [verdicts[index].score for index in left]
    alone = advantages(scores, [SAMPLES[index].group for index in left])
    assert [ours[index] for index in left] == pytest.approx(alone, abs=1e-9)
    assert {ours[index] for index in range(len(ours)) if index not in left} == {0.0}


def test_with_group_means_failed_rows_have_no_advantage_and_the_others_are_not_shifted(
    verdicts: list[Verdict],
) -> None:
    rewards = rewarded(verdicts, on_failure="group_mean")
    masked = rewarded(verdicts)
    ours = advantages(rewards.values, rewards.groups, scale=False)
    theirs = advantages(masked.values, masked.groups, scale=False)
    assert ours == pytest.approx(theirs, abs=1e-9)
    scaled = advantages(rewards.values, rewards.groups)
    assert all(abs(a) < 1e-9 for a, verdict in zip(scaled, verdicts, strict=True) if not verdict.is_valid)


def test_a_failure_taken_for_a_zero_would_have_moved_the_policy(verdicts: list[Verdict]) -> None:
    zeroed = [verdict if verdict.is_valid else replace(verdict, score=0.0) for verdict in verdicts]
    wrong = advantages([verdict.score for verdict in zeroed], [sample.group for sample in SAMPLES])
    worst = min(a for a, verdict in zip(wrong, verdicts, strict=True) if not verdict.is_valid)
    assert worst < -1.0
