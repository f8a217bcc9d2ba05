"""The GRPO example: overlap changes when things are done, never what is learned."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plaudit import Engine, Pending, Rubric, Sample, Status, Verdict
from plaudit.simulator import Latency, Queue, Scenario

pytestmark = pytest.mark.trainers

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
QUICK = Scenario(latency=Latency().scaled_to(0.01), capacity=Queue(slots=4))
INSTANT = Scenario(latency=Latency(seconds_per_token=0.0, first_token=0.0, round_trip=0.0))

torch: Any = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def grpo() -> Iterator[Any]:
    sys.path.insert(0, str(EXAMPLES))
    yield importlib.import_module("grpo")
    sys.path.remove(str(EXAMPLES))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """So little work takes longest where threads wait for each other on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Witness:
    """An engine that notes what is asked of it, and when results are waited for."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.seen: list[tuple[str, int]] = []

    def submit(self, samples: Sequence[Sample], judge: Rubric) -> Any:
        self.seen.append(("submit", len(samples)))
        return Observed(self, self.engine.submit(samples, judge))


class Observed:
    """A Pending that notes the wait for it, and hands groups over in the reverse of their order."""

    def __init__(self, witness: Witness, pending: Pending) -> None:
        self._witness = witness
        self._pending = pending

    def result(self) -> list[Verdict]:
        self._witness.seen.append(("result", len(self._pending)))
        return self._pending.result()

    def as_completed(self, by: Any) -> Iterator[Any]:
        arrived = list(self._pending.as_completed(by=by))
        return iter(sorted(arrived, key=lambda item: -item[1][0][0]))


class Failing:
    """An engine whose verdicts fail, for some rows or for all."""

    def __init__(self, engine: Engine, *, every: int) -> None:
        self._engine = engine
        self._every = every

    def submit(self, samples: Sequence[Sample], judge: Rubric) -> Any:
        verdicts = self._engine.submit(samples, judge).result()
        for row in range(0, len(verdicts), self._every):
            verdicts[row] = replace(verdicts[row], score=None, status=Status.FAILED)
        return Settled(verdicts)


class Settled:
    def __init__(self, verdicts: list[Verdict]) -> None:
        self._verdicts = verdicts

    def result(self) -> list[Verdict]:
        return self._verdicts


def engine_of(grpo: Any, server: Scenario) -> Engine:
    return Engine(
        "http://toy/v1", model="m", cache="memory", transport=lambda _: grpo.VowelJudge(server), hedge=False
    )


def small(grpo: Any, **changes: Any) -> Any:
    return grpo.Settings(**{"prompts": 4, "group": 4, "max_tokens": 10, **changes})


def new_policy(grpo: Any) -> Any:
    return grpo.new_model("tiny", device="cpu", dtype=torch.float64)


def weights_after(grpo: Any, overlap: str, *, steps: int = 3, witness: bool = False) -> dict[str, Any]:
    policy = new_policy(grpo)
    with engine_of(grpo, QUICK) as engine:
        scorer = Witness(engine) if witness else engine
        trainer = grpo.Trainer(policy, scorer, grpo.Overlap.of(overlap), small(grpo))
        assert [step.failed for step in trainer.train(steps)] == [0] * steps
    found: dict[str, Any] = policy.state_dict()
    return found


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, weight in expected.items():
        assert torch.allclose(found[name], weight, rtol=1e-9, atol=1e-12), name


@pytest.fixture(scope="module")
def plain(grpo: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:  # made before a test's own environment is
        patch.setenv("PLAUDIT_HOME", str(tmp_path_factory.mktemp("home")))
        return weights_after(grpo, "none")


@pytest.mark.parametrize("overlap", ["a", "b", "c", "abc"])
def test_on_policy_ways_give_the_weights_of_no_overlap(
    grpo: Any, plain: dict[str, Any], overlap: str
) -> None:
    assert_same(weights_after(grpo, overlap), plain)


def test_training_changes_every_weight(grpo: Any, plain: dict[str, Any]) -> None:
    before = new_policy(grpo).state_dict()
    same = [name for name, weight in plain.items() if torch.equal(weight, before[name])]
    assert same == []


def test_groups_may_arrive_in_any_order(grpo: Any, plain: dict[str, Any]) -> None:
    assert_same(weights_after(grpo, "abc", witness=True), plain)


def test_the_first_step_off_policy_is_on_policy(grpo: Any) -> None:
    assert_same(weights_after(grpo, "d", steps=1), weights_after(grpo, "none", steps=1))


def test_responses_are_submitted_as_they_finish_and_asked_for_once(grpo: Any) -> None:
    judges: list[Any] = []

    def transport(_: object) -> Any:
        judges.append(grpo.VowelJudge(QUICK))
        return judges[-1]

    with Engine("http://toy/v1", model="m", cache="memory", transport=transport, hedge=False) as engine:
        witness = Witness(engine)
        trainer = grpo.Trainer(new_policy(grpo), witness, grpo.Overlap.of("a"), small(grpo))
        assert len(list(trainer.train(1))) == 1
    assert witness.seen == [*[("submit", 1)] * 16, ("submit", 16), ("result", 16)]
    stats = [judge.server.stats for judge in judges if judge.server.stats.requests]
    assert [found.duplicates for found in stats] == [0]


def test_with_d_the_next_batch_is_on_its_way_before_this_one_is_waited_for(grpo: Any) -> None:
    with engine_of(grpo, INSTANT) as engine:
        witness = Witness(engine)
        trainer = grpo.Trainer(new_policy(grpo), witness, grpo.Overlap.of("d"), small(grpo))
        assert len(list(trainer.train(3))) == 3
    assert [what for what, _ in witness.seen] == ["submit", "submit", "result", "submit", "result", "result"]


@pytest.mark.parametrize("overlap", ["abc", "d"])
def test_the_reward_rises(grpo: Any, overlap: str) -> None:
    policy = grpo.new_model("tiny", device="cpu")
    settings = grpo.Settings(prompts=6, max_tokens=10, learning_rate=6e-3)
    with engine_of(grpo, INSTANT) as engine:
        trainer = grpo.Trainer(policy, engine, grpo.Overlap.of(overlap), settings)
        rewards = [step.reward for step in trainer.train(12)]
    assert sum(rewards[:2]) / 2 < 3
    assert sum(rewards[-2:]) / 2 > 5


def test_a_failed_verdict_is_counted_and_has_no_say(grpo: Any) -> None:
    policy = new_policy(grpo)
    before = {name: weight.clone() for name, weight in policy.state_dict().items()}
    with engine_of(grpo, INSTANT) as engine:
        settings = small(grpo, beta=0.0)
        some = grpo.Trainer(policy, Failing(engine, every=5), grpo.Overlap(), settings)
        everything = grpo.Trainer(policy, Failing(engine, every=1), grpo.Overlap(), settings)
        assert [step.failed for step in everything.train(1)] == [16]
        assert all(torch.equal(weight, before[name]) for name, weight in policy.state_dict().items())
        assert [step.failed for step in some.train(1)] == [4]
    assert all(torch.isfinite(weight).all() for weight in policy.state_dict().values())


def test_a_wait_is_counted_and_work_is_not(grpo: Any) -> None:
    slow = Scenario(
        latency=Latency(mean_tokens=1, sigma=0, seconds_per_token=0, first_token=0.1, round_trip=0)
    )
    with engine_of(grpo, slow) as engine:
        trainer = grpo.Trainer(new_policy(grpo), engine, grpo.Overlap(), small(grpo))
        (step,) = trainer.train(1)
    assert 0.09 < step.wait_s < step.seconds


def test_an_unknown_way_is_named_with_the_known_ones(grpo: Any) -> None:
    with pytest.raises(Exception, match=r"'ax' is unknown; use letters of abcd"):
        grpo.Overlap.of("ax")


def test_the_command_prints_the_wait_of_each_step(
    grpo: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["grpo.py", "--steps", "2", "--tokens", "8", "--device", "cpu"])
    grpo.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[0].split() == ["step", "reward", "GPU", "wait", "total", "failed"]
    assert "waited" in lines[-1]
