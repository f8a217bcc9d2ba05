"""Training a query mutator: PPO by stable-baselines3, with checkpoints that give the same curve again.

A training lives in a folder: `checkpoint.zip` after every rollout, TensorBoard's files, and at the end
`policy.zip` (for `PPO.load`), `history.json` and `report.html`. A checkpoint holds policy, optimiser,
environments and history; nothing in it is code: parameters are loaded as tensors only, and the rest is JSON.
"""

from __future__ import annotations

import io
import logging
import math
import time
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure

from plaudit.errors import BatchFailed, ConfigError
from plaudit.files import write_whole
from plaudit.mutation.async_env import ChainRunner, ThreadRunner
from plaudit.mutation.env import BatchedQueryMutationEnv
from plaudit.mutation.episode import REJECTED
from plaudit.mutation.history import History, Point, Recorder
from plaudit.mutation.outage import OutageWatch
from plaudit.mutation.ppo import PacedPPO, VectorAdapter
from plaudit.mutation.task import MutationTask
from plaudit.mutation.training import Training, flag
from plaudit.mutation.training_report import write_report

log = logging.getLogger("plaudit")

CHECKPOINT = "checkpoint.zip"
VERSION = 1
LONGEST_PAUSE = 10.0
"""Seconds between two rollouts while the servers are gone."""


def train(
    task: MutationTask,
    training: Training,
    folder: Path,
    *,
    resume: bool = False,
    runner: ChainRunner | None = None,
    outage: OutageWatch | None = None,
    on_progress: Callable[[int, Point | None], bool] = lambda *_: True,
    facts: tuple[tuple[str, str], ...] = (),
) -> History:
    """Train a policy, and leave everything about it in a folder.

    Args:
        task: What is to be learned.
        training: How.
        folder: Where checkpoints, policy, history and report go.
        resume: Go on from the folder's checkpoint; the curve is the one it would have been without a stop.
        runner: Runs the calls; by default on a thread of their own.
        outage: Watches the engines of the task, if they have it as observer, and says how long an outage may
            last. Without an observer an outage is noticed only by steps that fail, which takes as long as the
            engines wait for a server.
        on_progress: Called with the steps after every step, and with the point after every rollout; False
            stops the training.
        facts: Names and values that the report is to show.

    Returns:
        What the training has brought.

    Raises:
        ConfigError: The folder holds a training and `resume` is False, or one with other settings.
        BatchFailed: The servers were gone for too long, or at the end. The checkpoint is the
            one from before the outage.
    """
    started = (folder / CHECKPOINT).exists()
    if started and not resume:
        raise ConfigError(
            "already contains a training; continue with --resume, or name another folder",
            setting="output",
            value=str(folder),
        )
    saved = load_checkpoint(folder) if resume else None
    settings = settings_of(task, training)
    if saved is not None:
        check_same(saved[0].settings, settings, folder)
    folder.mkdir(parents=True, exist_ok=True)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # for two small layers, more threads only wait for one another
    runner, outage = runner or ThreadRunner(), outage or OutageWatch()
    vector = BatchedQueryMutationEnv(
        task, training.num_processes, runner=runner, one_by_one=training.pace == "one-by-one"
    )
    try:
        model = new_model(training, VectorAdapter(vector))
        model.set_logger(configure(str(folder / "tensorboard"), ["tensorboard"]))
        history = saved[0].history if saved else History()
        if saved is not None:
            _restore(model, vector, *saved)
        callback = _TrainingCallback(
            folder, settings, vector, Recorder(history), on_progress=on_progress, outage=outage
        )
        model.on_turn = callback.recorder.turn
        model.are_servers_gone = lambda: bool(outage.error)
        outage.begin(lambda cause: runner.interrupt(callback.lost(cause)))
        remaining = training.steps - model.num_timesteps
        if remaining > 0:
            model.learn(remaining, callback=callback, reset_num_timesteps=False)
            if not callback.is_stopped:
                callback.finish()
        else:
            log.warning(
                "the training in %s has all its %s steps; raise --num-env-steps to continue",
                folder,
                f"{model.num_timesteps:,}",
            )
        if not callback.is_stopped:
            policy = io.BytesIO()
            model.save(policy, exclude=["on_turn", "are_servers_gone"])
            write_whole(folder / "policy.zip", policy.getvalue())
    finally:
        outage.end()
        vector.close()
        torch.set_num_threads(threads)
    write_whole(folder / "history.json", msgspec.json.format(msgspec.json.encode(history), indent=1))
    write_report(folder / "report.html", history, facts)
    return history


class _TrainingCallback(BaseCallback):  # type: ignore[misc]
    """Keeps the history and the checkpoints, and tells how it goes."""

    def __init__(
        self,
        folder: Path,
        settings: dict[str, Any],
        vector: BatchedQueryMutationEnv,
        recorder: Recorder,
        *,
        on_progress: Callable[[int, Point | None], bool],
        outage: OutageWatch,
    ) -> None:
        super().__init__()
        self.recorder = recorder
        self.is_stopped = False
        self._folder = folder
        self._settings = settings
        self._vector = vector
        self._on_progress = on_progress
        self._outage = outage
        self._lost_at: float | None = None
        """When the outage that is going on began."""

    def save(self) -> None:
        """Write a checkpoint: between two rollouts, when no call is under way.

        A process that is killed leaves the old one or the new one, and never half.
        """
        model: PacedPPO = self.model
        state = Checkpoint(
            settings=self._settings,
            steps=model.num_timesteps,
            updates=model._n_updates,
            episode_starts=[bool(start) for start in model._last_episode_starts],
            environments=self._vector.snapshot(),
            history=self.recorder.history,
        )
        tensors, whole = io.BytesIO(), io.BytesIO()
        torch.save(model.get_parameters(), tensors)
        with zipfile.ZipFile(whole, "w") as archive:
            archive.writestr("state.json", msgspec.json.encode(state))
            archive.writestr("parameters.pt", tensors.getvalue())
        write_whole(self._folder / CHECKPOINT, whole.getvalue())

    def _on_rollout_start(self) -> None:
        # Else this rollout may belong to an outage, and the checkpoint stays the one from before.
        if self.recorder.history.points and self._lost_at is None and not self._outage.is_suspected:
            self.save()

    def _on_step(self) -> bool:
        self.is_stopped = not self._on_progress(self.num_timesteps, None)
        return not self.is_stopped

    def _on_rollout_end(self) -> None:
        point = self.recorder.close_rollout()
        shown = {"failed": point.failed, "ep_rew_mean": point.reward, "quality_gain": point.gain}
        for name, value in shown.items():
            if value is not None:
                self.logger.record(f"rollout/{name}", value)
        self._on_progress(point.steps, point)
        if self.model.is_outage:
            self._bear_outage()
        else:
            self._lost_at = None

    def _bear_outage(self) -> None:
        """Wait a little for the servers to come back, and give up once patience is at its end."""
        now = time.monotonic()
        self._lost_at = now if self._lost_at is None else self._lost_at
        if now - self._lost_at >= self._outage.patience:
            raise self.lost()
        self._outage.pause(min(LONGEST_PAUSE, self._outage.patience / 10))

    def finish(self) -> None:
        """Write the last checkpoint. Raises BatchFailed where the last rollout was spent on an outage."""
        if self._lost_at is not None:
            raise self.lost()
        self.save()

    def lost(self, cause: str = "") -> BatchFailed:
        """What to raise once the servers count as gone."""
        causes = (one for one in self.recorder.history.errors if not one.startswith(REJECTED))
        cause = cause or self._outage.error or next(causes)
        file = self._folder / CHECKPOINT
        then = f"continue with --resume: {file} is from before the outage" if file.exists() else "start again"
        return BatchFailed(f"the servers are down ({cause}); start them again and {then}")


def new_model(training: Training, env: VectorAdapter) -> PacedPPO:
    """A policy that has learned nothing yet."""
    with warnings.catch_warnings():  # the last mini-batch of a rollout may be smaller, and that is fine
        warnings.filterwarnings("ignore", message="You have specified a mini-batch size")
        model = PacedPPO(
            "MlpPolicy",
            env,
            learning_rate=training.lr,
            n_steps=training.num_steps,
            batch_size=math.ceil(training.rollout / training.num_mini_batch),
            n_epochs=training.ppo_epoch,
            gamma=training.gamma,
            gae_lambda=training.gae_lambda,
            clip_range=training.clip_param,
            ent_coef=training.entropy_coef,
            vf_coef=training.value_loss_coef,
            max_grad_norm=training.max_grad_norm,
            seed=training.seed,
            device="cpu",  # a policy of two small layers is faster there
        )
    model.pace = training.pace
    return model


def _restore(
    model: PacedPPO, vector: BatchedQueryMutationEnv, state: Checkpoint, parameters: dict[str, Any]
) -> None:
    model.set_parameters(parameters, exact_match=True, device="cpu")
    model.num_timesteps, model._n_updates = state.steps, state.updates
    model._last_obs = vector.restore(state.environments)
    model._last_episode_starts = np.array(state.episode_starts, dtype=bool)


def settings_of(task: MutationTask, training: Training) -> dict[str, Any]:
    """What a checkpoint holds a training to; the pace and the number of steps are free to change."""
    kept = {name: value for name, value in asdict(training).items() if name not in ("pace", "num_env_steps")}
    return {
        **{flag(name): value for name, value in kept.items()},
        "rules": asdict(task.rules),
        "operators": _digest([(one.name, one.instruction) for one in task.operators]),
        "questions": _digest(list(task.questions)),
        "numbers in an observation": task.size,
    }


def _digest(value: Any) -> str:
    return sha256(msgspec.json.encode(value)).hexdigest()[:16]


# -- checkpoints -------------------------------------------------------------------------------------------


class Checkpoint(msgspec.Struct):
    """All but the parameters."""

    settings: dict[str, Any]
    """What must be the same for the training to go on."""
    steps: int
    updates: int
    episode_starts: list[bool]
    environments: list[dict[str, Any]]
    history: History
    version: int = VERSION


def load_checkpoint(folder: Path) -> tuple[Checkpoint, dict[str, Any]]:
    """The checkpoint of a folder. ConfigError where there is none to go on from."""
    path = folder / CHECKPOINT
    try:
        with zipfile.ZipFile(path) as archive:
            state = msgspec.json.decode(archive.read("state.json"), type=Checkpoint)
            tensors = io.BytesIO(archive.read("parameters.pt"))
    except FileNotFoundError:
        raise ConfigError(f"there is no training to continue in {folder}; leave out --resume") from None
    except (zipfile.BadZipFile, KeyError, msgspec.DecodeError, OSError) as error:
        raise ConfigError(
            f"{path} is not a readable checkpoint: {error}; start again in another folder"
        ) from None
    if state.version != VERSION:
        raise ConfigError(f"{path} was written by another version of plaudit; start again in another folder")
    parameters: dict[str, Any] = torch.load(tensors, weights_only=True, map_location="cpu")
    return state, parameters


def check_same(saved: dict[str, Any], now: dict[str, Any], folder: Path) -> None:
    """ConfigError where a setting differs from that of the training in the folder."""
    for name, value in now.items():
        if saved.get(name) != value:
            raise ConfigError(
                f"the training in {folder} has {name}={_short(saved.get(name))}, and this one "
                f"{_short(value)}; a training continues with the settings it started with; use the same, "
                "or another folder"
            )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
