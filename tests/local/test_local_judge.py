"""From samples to verdicts on this machine: engine, yes-or-no judge and a real llama.cpp server together."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_model import write_tiny_model

from plaudit import Engine, Sample, Status
from plaudit.judges import Yes
from plaudit.local.local_server import LocalServer

pytestmark = pytest.mark.local

SAMPLES = [Sample(f"What is {n} + {n}?", f"It is {2 * n}.", reference=str(2 * n)) for n in range(12)]


def scores(model: Path, samples: list[Sample]) -> list[float | None]:
    with (
        LocalServer(model) as server,
        Engine(endpoints=[server.endpoint], cache=None) as engine,
    ):
        verdicts = engine.score(samples, Yes())
        assert {verdict.model for verdict in verdicts} == {server.endpoint.model}
    assert {verdict.status for verdict in verdicts} == {Status.OK}
    assert all(verdict.reason.startswith("P(yes) = ") for verdict in verdicts)
    return [verdict.score for verdict in verdicts]


def test_every_answer_gets_a_score_between_no_and_yes(tiny: Path) -> None:
    found = scores(tiny, SAMPLES)
    assert all(score is not None and 0.0 < score < 1.0 for score in found)
    assert len(set(found)) > 1


def test_another_model_judges_otherwise(tiny: Path, tmp_path: Path) -> None:
    other = write_tiny_model(tmp_path / "other.gguf", seed=3)
    assert scores(other, SAMPLES[:2]) != scores(tiny, SAMPLES[:2])
