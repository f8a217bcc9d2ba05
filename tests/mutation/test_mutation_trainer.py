"""Training: the same curve at every pace and after a kill, failures that earn nothing, and that it learns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from complaints import about

pytestmark = pytest.mark.trainers

import numpy as np  # noqa: E402
from simulated_mutation import Faults, SimulatedMutation, optimum  # noqa: E402
from stable_baselines3 import PPO  # noqa: E402

from plaudit.errors import BatchFailed, ConfigError  # noqa: E402
from plaudit.mutation.episode import Rules  # noqa: E402
from plaudit.mutation.history import History, Point  # noqa: E402
from plaudit.mutation.mutation_trainer import train  # noqa: E402
from plaudit.mutation.outage import OutageWatch  # noqa: E402
from plaudit.mutation.questions import builtin_questions  # noqa: E402
from plaudit.mutation.training import Training  # noqa: E402

SMALL = Training(num_processes=4, num_steps=8, num_env_steps=128, num_mini_batch=2, seed=3)


def at_once(seconds: float) -> None:
    """A pause that takes no time."""
    assert seconds > 0


def small(folder: Path, *, faults: Faults | None = None, **changes: object) -> History:
    settings = {name: getattr(SMALL, name) for name in Training.__dataclass_fields__} | changes
    with SimulatedMutation(faults=faults or Faults()) as practice:
        return train(practice.task, Training(**settings), folder)


def test_one_by_one_together_and_free_give_the_same_training(tmp_path: Path) -> None:
    paces = ("one-by-one", "together", "free")
    curves = [small(tmp_path / pace, pace=pace) for pace in paces]
    assert curves[0] == curves[1] == curves[2]
    assert len(curves[0].points) == 4
    assert curves[0].points != small(tmp_path / "other", seed=4).points


def test_killed_and_resumed_it_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    whole = small(tmp_path / "whole")

    def killed(steps: int, point: Point | None) -> bool:
        if steps > 70:
            raise KeyboardInterrupt
        return True

    with SimulatedMutation() as practice:
        with pytest.raises(KeyboardInterrupt):
            train(practice.task, SMALL, tmp_path / "cut", on_progress=killed)
        with pytest.raises(ConfigError, check=about("output", "--resume")):
            train(practice.task, SMALL, tmp_path / "cut")
        resumed = train(practice.task, SMALL, tmp_path / "cut", resume=True)
    assert resumed == whole


def test_a_training_can_be_made_longer(tmp_path: Path) -> None:
    whole = small(tmp_path / "whole")
    small(tmp_path / "half", num_env_steps=64)
    with SimulatedMutation() as practice:
        longer = train(practice.task, SMALL, tmp_path / "half", resume=True)
    assert longer == whole


def test_a_finished_training_has_nothing_left_to_resume(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = small(tmp_path)
    (tmp_path / "policy.zip").unlink()  # as if killed just before it was written
    with SimulatedMutation() as practice:
        assert train(practice.task, SMALL, tmp_path, resume=True) == whole
    assert (tmp_path / "policy.zip").exists()
    assert "raise --num-env-steps" in caplog.text


def test_other_settings_do_not_go_on_with_a_training(tmp_path: Path) -> None:
    small(tmp_path)
    other = Training(num_processes=4, num_steps=8, num_env_steps=128, num_mini_batch=2, seed=4)
    with SimulatedMutation() as practice, pytest.raises(ConfigError, check=about("", "--seed=3", "4")):
        train(practice.task, other, tmp_path, resume=True)
    with (
        SimulatedMutation(rules=Rules(max_steps=5)) as practice,
        pytest.raises(ConfigError, check=about("", "max_steps")),
    ):
        train(practice.task, SMALL, tmp_path, resume=True)


def test_a_checkpoint_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.zip").write_bytes(b"not a zip")
    with SimulatedMutation() as practice:
        with pytest.raises(ConfigError, check=about("", "checkpoint.zip")):
            train(practice.task, SMALL, tmp_path, resume=True)
        with pytest.raises(ConfigError, check=about("", "--resume")):
            train(practice.task, SMALL, tmp_path / "nowhere", resume=True)


def test_the_folder_holds_what_it_promises(tmp_path: Path) -> None:
    history = small(tmp_path)
    assert list((tmp_path / "tensorboard").glob("events.*"))
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "history.json").exists()
    policy = PPO.load(tmp_path / "policy.zip", device="cpu")
    action, _ = policy.predict(np.zeros(policy.observation_space.shape, np.float32), deterministic=True)
    assert action in policy.action_space
    assert history.episodes > 0


def test_a_policy_begins_as_a_random_one(tmp_path: Path) -> None:
    with SimulatedMutation() as practice:
        history = train(practice.task, replace(SMALL, num_steps=256, num_env_steps=1024), tmp_path)
        operators = len(practice.task.operators)
    (first,) = history.points
    assert sum(first.operators.values()) == first.steps == 1024
    for count in first.operators.values():
        assert count / first.steps == pytest.approx(1 / operators, abs=0.04)


def test_with_some_calls_failing_it_goes_on_and_flags_them(tmp_path: Path) -> None:
    history = small(tmp_path, faults=Faults(refused=0.05))
    assert history.steps == 128
    assert 0 < history.steps_failed() < 64
    assert set(history.failures) <= {"mutate", "answer", "judge"}
    assert all(point.reward is None or abs(point.reward) < 1 for point in history.points)


def test_an_outage_that_passes_stops_nothing_and_earns_nothing(tmp_path: Path) -> None:
    faults = Faults()

    def fails_for_a_while(steps: int, point: Point | None) -> bool:
        faults.refused = 1.0 if 64 <= steps < 96 else 0.0
        return True

    with SimulatedMutation(faults=faults, outage=OutageWatch(patience=60.0, pause=at_once)) as practice:
        history = train(practice.task, SMALL, tmp_path, on_progress=fails_for_a_while, outage=practice.outage)
    assert history.steps == 128
    before, during, after = history.points[0], history.points[2], history.points[3]
    assert (before.failed, after.failed < 0.5) == (0.0, True)
    assert during.failed > 0.5
    assert abs(during.reward or 0.0) < 0.1, "what little was earned came from the cache"


def test_servers_that_stay_away_end_it_and_it_goes_on_from_before(tmp_path: Path) -> None:
    faults = Faults()

    def dies(steps: int, point: Point | None) -> bool:
        faults.refused = 1.0 if steps >= 64 else 0.0
        return True

    with SimulatedMutation(faults=faults) as practice:
        with pytest.raises(BatchFailed, match=r"refuses this request.* continue with --resume"):
            train(practice.task, SMALL, tmp_path / "cut", on_progress=dies, outage=OutageWatch(patience=0.0))
        faults.refused = 0.0
        resumed = train(practice.task, SMALL, tmp_path / "cut", resume=True)
    assert resumed == small(tmp_path / "whole")


def test_servers_gone_while_the_cache_answers_update_nothing_and_end_it(tmp_path: Path) -> None:
    """Half of the steps are answered by the cache, so the share of failed steps says little."""
    faults = Faults()
    questions = builtin_questions()[:2]
    longer = replace(SMALL, num_env_steps=640)

    def dies(steps: int, point: Point | None) -> bool:
        faults.is_down = steps >= 64
        return True

    dying = SimulatedMutation(questions, faults=faults, outage=OutageWatch(patience=0.0))
    with dying as practice, pytest.raises(BatchFailed):
        train(practice.task, longer, tmp_path / "cut", on_progress=dies, outage=practice.outage)
    with SimulatedMutation(questions) as practice:
        resumed = train(practice.task, longer, tmp_path / "cut", resume=True)
        assert resumed == train(practice.task, longer, tmp_path / "whole")


def test_servers_gone_at_the_end_are_no_success(tmp_path: Path) -> None:
    faults = Faults()

    def dies(steps: int, point: Point | None) -> bool:
        faults.refused = 1.0 if steps >= 96 else 0.0
        return True

    at_its_end = SimulatedMutation(faults=faults, outage=OutageWatch(pause=at_once))
    with at_its_end as practice, pytest.raises(BatchFailed):
        train(practice.task, SMALL, tmp_path, on_progress=dies, outage=practice.outage)
    assert not (tmp_path / "policy.zip").exists()


def test_servers_that_cannot_be_reached_end_it_before_a_step_has_failed(tmp_path: Path) -> None:
    down = SimulatedMutation(faults=Faults(is_down=True), outage=OutageWatch(patience=0.0))
    with down as practice, pytest.raises(BatchFailed, match="start again"):
        train(practice.task, SMALL, tmp_path, outage=practice.outage)


def test_requests_that_are_always_refused_are_no_outage(tmp_path: Path) -> None:
    few, longer = builtin_questions()[::5], replace(SMALL, num_env_steps=640)
    with SimulatedMutation(few, faults=Faults(refused=0.03), outage=OutageWatch(patience=0.0)) as practice:
        history = train(practice.task, longer, tmp_path, outage=practice.outage)
    assert history.steps == 640
    assert 0 < history.steps_failed() < 320


def test_it_learns_which_operator_suits_which_question(tmp_path: Path) -> None:
    training = Training(num_env_steps=5000, seed=1, pace="free", lr=3e-3)
    with SimulatedMutation(questions=builtin_questions()[::4]) as practice:
        best = optimum(practice.task)
        history = train(practice.task, training, tmp_path)
    rewards = [point.reward for point in history.points if point.reward is not None]
    assert rewards[0] < 0.3 * best
    assert np.mean(rewards[-2:]) >= 0.8 * best
