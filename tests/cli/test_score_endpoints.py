"""Who judges: endpoints where they are named, the model on this machine where they are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from complaints import about
from simulated_judge import Simulator
from tiny_model import write_tiny_model

from plaudit.cli import app
from plaudit.errors import ConfigError
from plaudit.settings import Settings, resolve
from plaudit.setup.engines import open_endpoints


def settings(**arguments: Any) -> Settings:
    return resolve(arguments, environment={}, table={})


def test_an_endpoint_that_is_named_is_asked_for_its_model(simulator: Simulator) -> None:
    with open_endpoints(settings(base_url=[simulator.url])) as ready:
        assert [endpoint.model for endpoint in ready.endpoints] == ["simulated"]
        assert ready.notice == ""


def test_a_mistake_in_the_judge_is_found_before_the_endpoint_is_asked(
    simulator: Simulator, tmp_path: Path
) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"prompt": "2 + 2?", "response": "4"}\n')
    words = ["score", str(source), "-o", str(tmp_path / "out.jsonl"), "--base-url", simulator.url]
    result = CliRunner().invoke(app, [*words, "--judge", "x"])
    assert result.exit_code == 2
    assert simulator.server.stats.requests == 0


def test_an_endpoint_and_a_local_model_exclude_each_other() -> None:
    both = settings(base_url=["http://127.0.0.1:9/v1"], local_model="m.gguf")
    with pytest.raises(ConfigError, check=about("", "--base-url", "--local-model")), open_endpoints(both):
        raise AssertionError("nothing should be opened")


def test_a_model_without_a_server_never_means_the_small_one_on_this_machine() -> None:
    keyed = resolve({"model": "gpt-5"}, environment={"OPENAI_API_KEY": "sk-1"}, table={})
    with (
        pytest.raises(ConfigError, check=about("model", "gpt-5", "--base-url https://api.openai.com/v1")),
        open_endpoints(keyed),
    ):
        raise AssertionError("nothing should be opened")


def test_without_consent_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLAUDIT_FETCH", raising=False)
    with pytest.raises(ConfigError, check=about("", "PLAUDIT_FETCH=yes")), open_endpoints(settings()):
        raise AssertionError("nothing should be opened")


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
