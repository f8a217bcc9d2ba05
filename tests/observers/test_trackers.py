"""Trackers get each batch's numbers, under names of their own and over a step of their own."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from complaints import about

from plaudit.errors import ConfigError
from plaudit.events import BatchFinished, CallStarted, Summary, VerdictsReady
from plaudit.observers.trackers import STEP, Scalars, mlflow_scalars, tensorboard_scalars, wandb_scalars
from plaudit.types import Cause, Status, Verdict


def finished(at: float, mean: float = 7.0) -> BatchFinished:
    return BatchFinished(
        at, 1, Summary(4, 1.0, {"ok": 4}, {"call": 4}, calls=4, score_mean=mean, score_std=1.0)
    )


def test_each_finished_batch_is_logged_and_nothing_else() -> None:
    seen: list[tuple[float, int]] = []
    observer = Scalars(lambda numbers, batch: seen.append((numbers["judge/score_mean"], batch)))
    observer(CallStarted(0.0, "here", 1, False))
    observer(finished(1.0, 5.0))
    observer(finished(1.1, 6.0))
    assert seen == [(5.0, 1), (6.0, 2)]


def test_many_small_batches_can_be_thinned_out() -> None:
    seen: list[int] = []
    observer = Scalars(lambda _, batch: seen.append(batch), every=10.0)
    for at in range(25):
        observer(finished(float(at)))
    assert seen == [1, 11, 21]


class Run:
    """As much of a W&B run as is used, by its documented signatures."""

    def __init__(self) -> None:
        self.defined: dict[str, str | None] = {}
        self.logged: list[dict[str, float]] = []

    def define_metric(self, name: str, step_metric: str | None = None) -> None:
        self.defined[name] = step_metric

    def log(self, data: dict[str, float], step: int | None = None, commit: bool | None = None) -> None:
        assert step is None  # a trainer's own steps are left alone
        self.logged.append(data)


def test_wandb_plots_them_over_the_number_of_the_batch() -> None:
    run = Run()
    wandb_scalars(run)(finished(1.0))
    assert run.defined["judge/*"] == STEP
    assert run.logged[0][STEP] == 1 and run.logged[0]["judge/score_mean"] == 7.0


def ready(at: float, *scores: float, batch: int = 1) -> VerdictsReady:
    verdicts = [Verdict(score, Status.OK) for score in scores]
    return VerdictsReady(at, batch, (*verdicts, Verdict.failed(Cause.DEADLINE, "late")))


def test_wandb_gets_the_scores_of_a_batch_as_a_histogram(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(Histogram=tuple))
    run = Run()
    observer = wandb_scalars(run)
    for event in (ready(0.0, 1.0), ready(0.5, 9.0, batch=2), ready(1.0, 2.0, 3.0), finished(1.0)):
        observer(event)
    assert run.logged[0] == {"judge/scores": (1.0, 2.0, 3.0), STEP: 1}


def test_mlflow_gets_them_in_the_run_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Any, ...]] = []

    class Client:
        def log_metric(self, run_id: str, key: str, value: float, step: int | None = None) -> None:
            seen.append((run_id, key, value, step))

    run = SimpleNamespace(info=SimpleNamespace(run_id="r1"))
    fake = SimpleNamespace(active_run=lambda: run, MlflowClient=Client)
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    mlflow_scalars()(finished(1.0))
    assert ("r1", "judge/score_mean", 7.0, 1) in seen


@pytest.mark.parametrize(
    ("make", "package"),
    [(wandb_scalars, "wandb"), (mlflow_scalars, "mlflow"), (tensorboard_scalars, "tensorboardX")],
)
def test_what_is_not_installed_is_said(make: Any, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (package, "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, check=about("", f"pip install {package}")):
        make()
