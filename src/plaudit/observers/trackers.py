"""The engine's numbers in an experiment tracker: W&B, TensorBoard or MLflow, one set for each batch.

    Engine(url, observers=[wandb_scalars()])
    Engine(url, observers=[tensorboard_scalars("runs/judge")])

The names are those of `metrics`: judge/score_mean, judge/failed, judge/cost, and so on. W&B and TensorBoard
also get the scores of each batch as a histogram, judge/scores.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from plaudit.errors import ConfigError
from plaudit.events import BatchFinished, Event, VerdictsReady
from plaudit.install_command import install_command
from plaudit.observers.metrics import metrics

STEP = "judge/batch"
"""The number of the batch: what the others are plotted over."""
SCORES = "judge/scores"


class Scalars:
    """An observer that hands each batch's numbers on as they become final.

    Args:
        log: Called with the numbers by name and the number of batches so far, on the engine's thread.
        every: Seconds between two calls at least; batches that finish in between are left out. 0: all.
        scores: Called with the scores of such a batch and the number of batches, before `log`.
    """

    def __init__(
        self,
        log: Callable[[dict[str, float], int], object],
        *,
        every: float = 0.0,
        scores: Callable[[list[float], int], object] | None = None,
    ) -> None:
        self._log = log
        self._log_scores = scores
        self._scores: dict[int, list[float]] = {}
        self._every = every
        self._batches = 0
        self._logged_at = float("-inf")

    def __call__(self, event: Event) -> None:
        if isinstance(event, VerdictsReady) and self._log_scores is not None:
            scores = (verdict.score for verdict in event.verdicts)
            self._scores.setdefault(event.batch, []).extend(score for score in scores if score is not None)
        if not isinstance(event, BatchFinished):
            return
        self._batches += 1
        own = self._scores.pop(event.batch, None)
        if event.at - self._logged_at >= self._every:
            self._logged_at = event.at
            if own and self._log_scores is not None:
                self._log_scores(own, self._batches)
            self._log(metrics(summary=event.summary), self._batches)


def wandb_scalars(run: Any = None, *, every: float = 0.0) -> Scalars:
    """Numbers for W&B, plotted over `judge/batch` so that a trainer's own steps are left alone.

    Args:
        run: A run of W&B; left out: the one under way, or a new one.
        every: As for `Scalars`.

    Raises:
        ConfigError: wandb is not installed.
    """
    if run is None:
        wandb = _imported("wandb")
        run = wandb.run or wandb.init()
    run.define_metric(STEP)
    run.define_metric("judge/*", step_metric=STEP)
    return Scalars(
        lambda numbers, batch: run.log({**numbers, STEP: batch}),
        every=every,
        scores=lambda scores, batch: run.log({SCORES: _imported("wandb").Histogram(scores), STEP: batch}),
    )


def tensorboard_scalars(folder: str | os.PathLike[str] = "runs/plaudit", *, every: float = 0.0) -> Scalars:
    """Numbers for TensorBoard.

    Args:
        folder: Where its event files are written.
        every: As for `Scalars`.

    Raises:
        ConfigError: neither torch with tensorboard nor tensorboardX is installed.
    """
    writer = _summary_writer()(str(folder))

    def log(numbers: dict[str, float], batch: int) -> None:
        for name, value in numbers.items():
            writer.add_scalar(name, value, batch)
        writer.flush()

    def log_scores(scores: list[float], batch: int) -> None:
        writer.add_histogram(SCORES, _imported("numpy").array(scores), batch)

    return Scalars(log, every=every, scores=log_scores)


def mlflow_scalars(*, every: float = 0.0) -> Scalars:
    """Numbers for MLflow, in the run under way, or in a new one.

    Args:
        every: As for `Scalars`.

    Raises:
        ConfigError: mlflow is not installed.
    """
    mlflow = _imported("mlflow")
    run = mlflow.active_run() or mlflow.start_run()
    client = mlflow.MlflowClient()  # not mlflow.log_metrics, which looks for the run of the calling thread

    def log(numbers: dict[str, float], batch: int) -> None:
        for name, value in numbers.items():
            client.log_metric(run.info.run_id, name, value, step=batch)

    return Scalars(log, every=every)


def _summary_writer() -> Any:
    try:
        return _imported("torch.utils.tensorboard").SummaryWriter
    except ConfigError:
        return _imported("tensorboardX").SummaryWriter


def _imported(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ConfigError(f"{package} is not installed ({error}); run: {install_command(package)}") from error
