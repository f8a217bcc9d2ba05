"""Many environments at once: Gymnasium's form, the same trajectories as one by one, and no barrier."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from complaints import about

pytestmark = pytest.mark.trainers

import gymnasium  # noqa: E402
import numpy as np  # noqa: E402
from gymnasium.utils.env_checker import data_equivalence  # noqa: E402
from gymnasium.vector import AutoresetMode, SyncVectorEnv  # noqa: E402
from gymnasium.wrappers.vector import RecordEpisodeStatistics  # noqa: E402
from simulated_mutation import Faults, SimulatedMutation, WordEncoder  # noqa: E402
from stable_baselines3 import PPO  # noqa: E402

from plaudit.errors import ConfigError  # noqa: E402
from plaudit.mutation.encoders import Encoded  # noqa: E402
from plaudit.mutation.env import ID, BatchedQueryMutationEnv, QueryMutationEnv  # noqa: E402
from plaudit.mutation.ppo import VectorAdapter, rows_of  # noqa: E402

ENVS = 5


@pytest.fixture
def practice() -> Iterator[SimulatedMutation]:
    with SimulatedMutation(faults=Faults(refused=0.05)) as world:
        yield world


@pytest.fixture
def batched(practice: SimulatedMutation) -> Iterator[BatchedQueryMutationEnv]:
    with closing(BatchedQueryMutationEnv(practice.task, num_envs=ENVS)) as env:
        yield env


def actions(steps: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).integers(0, 6, size=(steps, ENVS))


def test_it_gives_the_same_trajectories_as_gymnasiums_own_one_by_one(
    practice: SimulatedMutation, batched: BatchedQueryMutationEnv
) -> None:
    makers = [lambda: QueryMutationEnv(practice.task)] * ENVS
    with closing(SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)) as one_by_one:
        assert data_equivalence(batched.reset(seed=11), one_by_one.reset(seed=11), exact=True)
        failures = 0
        for chosen in actions(40):
            ours, theirs = batched.batch_step(chosen), one_by_one.step(chosen)
            assert data_equivalence(ours, theirs, exact=True)
            for number, info in enumerate(rows_of(ours[4], ENVS)):
                last = info.get("final_info", info)
                failures += bool(last["failed"])
                assert not last["failed"] or ours[1][number] == 0.0
    assert failures > 0, "failures must be the same on both sides, too, and earn nothing"


def test_its_form_is_that_of_a_vector_environment(batched: BatchedQueryMutationEnv) -> None:
    assert batched.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert batched.observation_space.shape == (ENVS, *batched.single_observation_space.shape)
    observations, infos = batched.batch_reset(seed=1)
    assert observations in batched.observation_space
    assert observations.dtype == np.float32
    assert infos["_query"].all()
    ended = 0
    for chosen in actions(12):
        observations, rewards, over, cut, infos = batched.step(chosen)
        assert observations in batched.observation_space
        assert rewards.shape == (ENVS,) and rewards.dtype == np.float64
        assert over.dtype == np.bool_ and cut.dtype == np.bool_
        assert not cut.any()
        if over.any():
            assert (infos["_final_obs"] == over).all() and (infos["_final_info"] == over).all()
            for number in np.flatnonzero(over):
                assert infos["final_obs"][number] in batched.single_observation_space
            ended += int(over.sum())
    assert ended > 0


def test_what_it_returned_is_not_written_over(batched: BatchedQueryMutationEnv) -> None:
    first, _ = batched.reset(seed=1)
    kept = first.copy()
    for chosen in actions(4):
        batched.step(chosen)
    np.testing.assert_array_equal(first, kept)


def test_it_is_registered_and_works_under_gymnasiums_wrappers(practice: SimulatedMutation) -> None:
    env = gymnasium.make_vec(f"plaudit.mutation.env:{ID}", num_envs=3, task=practice.task)
    assert isinstance(env.unwrapped, BatchedQueryMutationEnv)
    with closing(RecordEpisodeStatistics(env)) as wrapped:
        wrapped.reset(seed=0)
        for _ in range(4):
            _, _, over, _, infos = wrapped.step(np.array([0, 1, 2]))
        assert over[0] and "episode" in infos


def test_without_a_barrier_each_goes_its_own_way_and_arrives_at_the_same(
    practice: SimulatedMutation, batched: BatchedQueryMutationEnv
) -> None:
    plan = actions(9, seed=4)
    batched.reset(seed=2)
    together = [batched.step(chosen)[1] for chosen in plan]
    batched.reset(seed=2)
    free = np.full((9, ENVS), np.nan)
    taken = [0] * ENVS
    batched.send(plan[0])
    for _ in range(9 * ENVS):
        _, rewards, _, _, infos = batched.recv()
        [number] = infos["env_id"]
        free[taken[number], number] = rewards[0]
        taken[number] += 1
        if taken[number] < 9:
            batched.send([plan[taken[number], number]], [number])
    np.testing.assert_array_equal(free, together)


def test_some_can_be_reset_alone(batched: BatchedQueryMutationEnv) -> None:
    before, _ = batched.reset(seed=1)
    mask = np.array([False, True, False, False, False])
    after, infos = batched.reset(seed=9, options={"reset_mask": mask})
    assert (infos["_query"] == mask).all()
    np.testing.assert_array_equal(before[~mask], after[~mask])
    with pytest.raises(ConfigError, check=about("reset_mask")):
        batched.reset(options={"reset_mask": ~mask & mask})


def test_a_snapshot_brings_everybody_back(
    practice: SimulatedMutation, batched: BatchedQueryMutationEnv
) -> None:
    batched.reset(seed=6)
    for chosen in actions(5):
        batched.step(chosen)
    saved = batched.snapshot()
    plan = actions(8, seed=3)
    first = [batched.step(chosen)[1] for chosen in plan]
    with closing(BatchedQueryMutationEnv(practice.task, num_envs=ENVS)) as other:
        other.restore(saved)
        np.testing.assert_array_equal([other.step(chosen)[1] for chosen in plan], first)


@pytest.mark.parametrize(("chosen", "env_id"), [([0, 9, 0, 0, 0], None), ([-1], [2]), ([0], [5])])
def test_an_action_out_of_range_begins_nothing_and_the_next_reset_goes_on(
    practice: SimulatedMutation, batched: BatchedQueryMutationEnv, chosen: list[int], env_id: list[int] | None
) -> None:
    batched.reset(seed=1)
    with pytest.raises(ConfigError):
        batched.send(chosen, env_id)
    with pytest.raises(ConfigError, check=about("", "recv(1)")):
        batched.recv()
    again, _ = batched.reset(seed=1)
    with closing(BatchedQueryMutationEnv(practice.task, 5)) as fresh:
        assert (again == fresh.reset(seed=1)[0]).all()


def test_a_bug_in_one_environment_leaves_the_others_usable(practice: SimulatedMutation) -> None:
    class Broken(WordEncoder):
        is_broken = False

        async def aencode(self, texts: Sequence[str]) -> Encoded:
            if self.is_broken:
                raise ValueError("a bug in the encoder")
            return self.encode(texts)

    encoder = Broken()
    task = replace(practice.task, models=replace(practice.task.models, encoder=encoder))
    with closing(BatchedQueryMutationEnv(task, 3)) as env:
        env.reset(seed=1)
        encoder.is_broken = True
        with pytest.raises(ValueError, match="a bug in the encoder"):
            env.step([1, 1, 1])
        encoder.is_broken = False
        env.reset(seed=1)
        env.step([1, 1, 1])


def test_misuse_is_named_and_hangs_nobody(batched: BatchedQueryMutationEnv) -> None:
    batched.reset(seed=0)
    with pytest.raises(ConfigError, check=about("", "recv(1)")):
        batched.recv()
    with pytest.raises(ConfigError, check=about("actions")):
        batched.step([0, 0])
    batched.send([0], [3])
    with pytest.raises(ConfigError, check=about("", "environment 3", "recv()")):
        batched.send([0], [3])
    with pytest.raises(ConfigError, check=about("", "recv()")):
        batched.step([0] * ENVS)
    with pytest.raises(ConfigError, check=about("", "recv()")):
        batched.snapshot()
    batched.recv()
    with pytest.raises(ConfigError, check=about("seed")):
        batched.reset(seed=[1, 2, 3])


def test_plain_stable_baselines3_learns_on_it(batched: BatchedQueryMutationEnv) -> None:
    adapter = VectorAdapter(batched)
    model = PPO("MlpPolicy", adapter, n_steps=8, batch_size=20, n_epochs=1, seed=0, device="cpu")
    model.learn(80)
    assert model.num_timesteps == 80
    adapter.seed(4)
    adapter.reset()
    dones, infos = np.zeros(ENVS, dtype=bool), list[Any]()
    while not dones.any():
        _, rewards, dones, infos = adapter.step(np.zeros(ENVS, dtype=int))
    assert rewards.dtype == np.float32
    ended = infos[int(np.flatnonzero(dones)[0])]
    assert ended["terminal_observation"] in batched.single_observation_space
    assert ended["TimeLimit.truncated"] is False


def test_the_adapter_wants_a_reset_within_the_step(practice: SimulatedMutation) -> None:
    with (
        closing(SyncVectorEnv([lambda: QueryMutationEnv(practice.task)])) as late,
        pytest.raises(ConfigError, check=about("", "AutoresetMode.SAME_STEP")),
    ):
        VectorAdapter(late)
