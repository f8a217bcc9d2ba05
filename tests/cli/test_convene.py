"""Who judges: endpoints where they are named, the model on this machine where they are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from simulated_judge import Simulator
from tiny_model import write_tiny_model
from typer.testing import CliRunner

from plaudit.cli import app
from plaudit.cli.convene import convene
from plaudit.errors import ConfigError
from plaudit.judges.rubric import Rubric
from plaudit.settings import Settings, resolve


def settings(**arguments: Any) -> Settings:
    return resolve(arguments, environment={}, table={})


def test_endpoints_that_are_named_judge_by_the_rubric(simulator: Simulator) -> None:
    with convene(settings(base_url=[simulator.url], rubric="Is it kind?")) as bench:
        assert bench.judge == Rubric("Is it kind?")
        assert [endpoint.model for endpoint in bench.endpoints] == ["simulated"]
        assert bench.notice == ""


def test_a_mistake_in_the_judge_is_found_before_anybody_is_asked(simulator: Simulator) -> None:
    with pytest.raises(ConfigError, match="no judge"), convene(settings(base_url=[simulator.url], judge="x")):
        raise AssertionError("nobody should be convened")
    assert simulator.server.stats.requests == 0


def test_an_endpoint_and_a_local_model_exclude_each_other() -> None:
    both = settings(base_url=["http://127.0.0.1:9/v1"], local_model="m.gguf")
    with pytest.raises(ConfigError, match="leave one out"), convene(both):
        raise AssertionError("nobody should be convened")


def test_without_consent_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLAUDIT_FETCH", raising=False)
    with pytest.raises(ConfigError, match="PLAUDIT_FETCH=yes"), convene(settings()):
        raise AssertionError("nobody should be convened")


@pytest.mark.local
def test_a_model_file_of_one_s_own_judges_on_this_machine(tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf")
    judge = tmp_path / "judge.toml"
    judge.write_text('kind = "yes"\nmin_mass = 1e-9\n')
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"prompt": "2 + 2?", "response": "4"}\n{"prompt": "2 + 3?", "response": " "}\n')
    arguments = ["score", source, "-o", out, "--local-model", model, "--judge", judge]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    scored = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["status"] for line in scored] == ["ok", "empty"], result.output
    assert result.exit_code == 0
    assert 0 <= scored[0]["score"] <= 1
    assert scored[0]["judge"]["model"].startswith("tiny@")
    assert "Judged on this machine by tiny.gguf" in result.stderr
