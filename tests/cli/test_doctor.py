"""`plaudit doctor` as users run it, against a simulated judge."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from simulated_judge import FAST, Simulator, simulated

from plaudit.cli import app
from plaudit.scheduling.learned_limits import Learned, save
from plaudit.simulator import Scenario


def doctor(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["doctor", *(str(argument) for argument in arguments)])


def test_all_is_well_with_a_server_that_answers(simulator: Simulator) -> None:
    result = doctor("--base-url", simulator.url)
    assert result.exit_code == 0, result.output
    assert "simulated answers in" in result.stdout
    assert "replies follow a JSON schema" in result.stdout
    assert "log-probabilities are supported" in result.stdout
    assert result.stdout.endswith("everything is fine\n")


def test_ollama_s_own_routes_are_examined_too(simulator: Simulator) -> None:
    result = doctor("--base-url", simulator.url.removesuffix("/v1") + "/api")
    assert result.exit_code == 0, result.output
    assert "requests at once take" in result.stdout


def test_every_setting_is_shown_with_its_origin(
    simulator: Simulator, clean_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (clean_environment / "plaudit.toml").write_text("scale = [0, 5]")
    monkeypatch.setenv("PLAUDIT_RPM", "60")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdefghij")
    result = doctor("--base-url", simulator.url, "--json")
    assert result.exit_code == 0, result.output
    rows = {row["name"]: (row["value"], row["origin"]) for row in json.loads(result.stdout)["settings"]}
    assert rows["base_url"] == ([simulator.url], "argument --base-url")
    assert rows["rpm"] == (60, "variable PLAUDIT_RPM")
    assert rows["scale"] == ([0, 5], str(clean_environment / "plaudit.toml"))
    assert rows["timeout"] == (120.0, "default")
    assert rows["api_key"] == ("set", "variable OPENAI_API_KEY")


def test_the_key_is_shown_masked_and_never_whole(
    simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdefghij")
    for extra in ([], ["--json"]):
        output = doctor("--base-url", simulator.url, *extra).output
        assert "sk-...ghij" in output
        assert "0123456789" not in output


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (["--base-url", "http://127.0.0.1:9/v1"], "reach"),
        (["--base-url", "https://plaudit-test.openai.azure.com/v1"], "key"),
        (["--base-url", "nonsense"], "settings"),
        (["--local-model", "missing.gguf"], "embedded"),
        (["--cache", "."], "cache"),
    ],
)
def test_what_is_wrong_is_named_and_the_status_is_one(arguments: list[str], wrong: str) -> None:
    result = doctor(*arguments)
    assert result.exit_code == 1
    assert f"something is wrong: {wrong}" in result.stdout
    assert "Traceback" not in result.output


def test_a_wrong_key_and_an_unknown_model_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong")
    with simulated(Scenario(latency=FAST, api_key="right")) as simulator:
        result = doctor("--base-url", simulator.url)
        assert result.exit_code == 1
        assert "--api-key-env OPENAI_API_KEY contains a key" in result.stdout
    with simulated(Scenario(latency=FAST)) as simulator:
        result = doctor("--base-url", simulator.url, "--model", "missing")
        assert result.exit_code == 1
        assert "WRONG model" in result.stdout
        assert "404" in result.stdout


def test_the_limit_that_earlier_runs_learned_is_shown(simulator: Simulator, clean_environment: Path) -> None:
    learned = {f"{simulator.url} simulated": Learned(at=time.time() - 7200, limit=48)}
    save(clean_environment / "plaudit" / "limits.json", learned, now=time.time())
    assert "48 calls at once, as of 2 hours ago" in doctor("--base-url", simulator.url).stdout


def test_a_mistyped_variable_is_found(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAUDIT_MAX_CONCURENT", "60")
    result = doctor("--base-url", simulator.url)
    assert result.exit_code == 1
    assert "PLAUDIT_MAX_CONCURENT has no effect; did you mean PLAUDIT_MAX_CONCURRENT?" in result.stdout


def test_without_an_endpoint_the_embedded_judge_is_looked_at() -> None:
    result = doctor()
    assert result.exit_code == 0, result.output
    assert "embedded" in result.stdout


def test_a_mistake_in_plaudit_toml_is_named(clean_environment: Path) -> None:
    (clean_environment / "plaudit.toml").write_text("modle = 'm'")
    result = doctor()
    assert result.exit_code == 1
    assert "plaudit.toml: modle is not a setting; did you mean model?" in result.stdout


def test_a_server_that_may_still_be_starting_is_not_waited_for_and_that_is_said() -> None:
    shown = " ".join(doctor("--base-url", "http://127.0.0.1:9/v1").stdout.split())
    assert "(doctor looks once; plaudit score waits a minute for a server that is still starting)" in shown
