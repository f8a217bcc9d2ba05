"""Options: generated from the settings, the same flags as ever, and errors that name the flag."""

from __future__ import annotations

import logging
import subprocess
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from complaints import about

from plaudit.cli import COMMANDS, app
from plaudit.cli.options import JUDGE, LIMITS, Command, Debugging, Given, argument, command
from plaudit.errors import ConfigError
from plaudit.settings import NAMES, Settings, option

CONTRACT = {
    *("--output", "--base-url", "--model", "--api-key-env", "--judge", "--rubric", "--scale", "--timeout"),
    *("--max-concurrent", "--rpm", "--tpm", "--budget", "--deadline", "--cache", "--on-failure"),
    *("--summary", "--quiet", "--skip-bad"),
}
"""Flags that scripts depend on."""


def flags(found: click.Command) -> set[str]:
    return {flag for parameter in found.params for flag in parameter.opts}


def command_named(name: str) -> click.Command:
    found = app.get_command(click.Context(app), name)
    assert found is not None
    return found


@dataclass(frozen=True, kw_only=True)
class Options:
    source: str = argument("IN", "What to read.")
    size: int = option(3, "How much.", "Amounts", flags=("-s", "--size"))
    is_loud: bool = option(False, "Whether to shout.", flags=("--loud",))


def made(*settings: str) -> tuple[Command, list[tuple[Options, Given]]]:
    calls: list[tuple[Options, Given]] = []

    @command(Options, settings=settings)
    def example(options: Options, given: Given) -> int:
        calls.append((options, given))
        return 7

    return example, calls


def test_the_flags_of_score_are_those_that_scripts_depend_on() -> None:
    assert flags(command_named("score")) >= CONTRACT


@pytest.mark.parametrize("name", [*JUDGE, *LIMITS, "deadline", "cache", "on_failure", "client", "hedge"])
def test_a_setting_is_an_option_with_the_text_it_has_in_the_settings(name: str) -> None:
    example, _ = made(name)
    [found] = [parameter for parameter in example.params if parameter.name == name]
    [setting] = [one for one in fields(Settings) if one.name == name]
    assert isinstance(found, click.Option)
    assert found.help == setting.metadata["help"]
    assert f"--{name.replace('_', '-')}" in found.opts


def test_every_setting_says_what_it_is() -> None:
    assert all(one.metadata["help"] for one in fields(Settings) if one.name in NAMES)


def test_what_is_typed_arrives_as_an_object_and_a_mapping_and_what_is_not_typed_is_left_open() -> None:
    example, calls = made("base_url", "rpm", "scale", "hedge", "model")
    words = ["in", "-s", "4", "--rpm", "0", "--scale", "0", "10", "--no-hedge"]
    assert CliRunner().invoke(example, words).exit_code == 7
    expected = {"base_url": None, "rpm": 0, "scale": (0.0, 10.0), "hedge": False, "model": None}
    assert calls == [(Options(source="in", size=4, is_loud=False), expected)]


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_that_is_not_typed_is_left_open(name: str) -> None:
    example, calls = made(name)
    assert CliRunner().invoke(example, ["in"]).exit_code == 7
    assert calls[0][1] == {name: None}


def test_the_help_has_arguments_and_sections() -> None:
    example, _ = made("rpm")
    shown = CliRunner().invoke(example, ["--help"]).output
    places = [
        shown.index(word)
        for word in ("Arguments:", "What to read.", "Options:", "--loud", "Limits:", "--rpm")
    ]
    assert places == sorted(places)
    assert "How much.  [default: 3]" in shown


def failing(**facts: Any) -> Command:
    @command(Options, settings=("rpm", "scale"))
    def example(options: Options, given: Given) -> int:
        raise ConfigError("makes no sense", **facts)

    return example


@pytest.mark.parametrize(
    ("facts", "start"),
    [
        ({"setting": "rpm", "value": 0}, "--rpm 0"),
        ({"setting": "scale", "value": (5, 1)}, "--scale 5 1"),
        ({"setting": "size"}, "--size"),
        ({"setting": "slots", "value": 0}, "slots=0"),
        ({}, "makes"),
    ],
)
def test_an_error_names_the_flag_that_was_typed(facts: dict[str, Any], start: str) -> None:
    with pytest.raises(ConfigError) as caught:
        failing(**facts).main(["in"], standalone_mode=False)
    assert str(caught.value).startswith(start)


@pytest.mark.parametrize("second", [["--model", "b"], ["--model=b"]])
def test_two_models_for_several_endpoints_are_an_error(second: list[str]) -> None:
    with pytest.raises(click.UsageError, match="--model is given as a and as b"):
        command_named("score").main(["in", "--model", "a", *second, "-o", "out"], standalone_mode=False)


def test_of_other_options_the_last_value_counts_so_that_scripts_can_override() -> None:
    with pytest.raises(ConfigError, check=about("", "in")):
        command_named("score").main(["in", "--rpm", "0", "--rpm", "5", "-o", "out"], standalone_mode=False)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_says_of_itself(name: str) -> None:
    assert (command_named(name).help or "").startswith(COMMANDS[name])


def loaded_by(*words: str) -> set[str]:
    """What a fresh interpreter has imported once a command has ended."""
    look = "import sys, plaudit.cli\ntry: plaudit.cli.main()\nfinally: print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", look, *words], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_the_help_loads_no_more_than_click() -> None:
    heavy = {"aiohttp", "asyncio", "msgspec", "numpy", "rich", "typer", "plaudit.engine", "plaudit.settings"}
    assert not loaded_by("--help") & heavy


def test_a_run_loads_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    source, endpoint = tmp_path / "in.jsonl", ("--base-url", "http://127.0.0.1:9/v1", "--model", "m")
    source.write_text('{"prompt": "2 + 2?", "response": " "}\n')  # settled without a call
    loaded = loaded_by("score", str(source), "-o", str(tmp_path / "out.jsonl"), *endpoint)
    assert not loaded & {
        "aiohttp",
        "numpy",
        "rich",
        "plaudit.simulator",
        "plaudit.local.local_server",
        "plaudit.audit",
    }


def test_an_option_of_two_values_says_how_it_is_written() -> None:
    result = CliRunner().invoke(app, ["score", "in.jsonl", "-o", "out.jsonl", "--scale", "0-10"])
    assert result.exit_code == 2
    assert "--scale takes 2 values: --scale LO HI" in result.stderr


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("plaudit sc", "plain,score"),
        ("plaudit score an", "file,an"),
        ("plaudit score answers.jsonl -o sc", "file,sc"),
        ("plaudit score answers.jsonl --judge ref", "plain,reference"),
        ("plaudit score answers.jsonl --judge my", "file,my"),
        ("plaudit simulate --scenario flak", "plain,flaky"),
        ("plaudit score answers.jsonl --on-f", "plain,--on-failure"),
    ],
)
def test_the_tab_key_offers_commands_options_names_and_files(typed: str, offered: str) -> None:
    environment = {
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
        "_PLAUDIT_COMPLETE": "bash_complete",
    }
    shown = CliRunner().invoke(app, prog_name="plaudit", env=environment)
    assert shown.stdout.split() == [offered]


def test_every_command_shows_what_is_logged_as_text_and_with_debug_all_of_it() -> None:
    log = logging.getLogger("plaudit.somewhere")

    @command(Debugging)
    def talk(options: Debugging) -> None:
        log.warning("the server said \u202etxt.exe\x1b[2J")
        log.debug("a detail")
        try:
            raise ValueError("of an observer")
        except ValueError:
            log.exception("an observer failed")

    result = CliRunner().invoke(talk, [])
    assert result.stderr == "warning: the server said txt.exe[2J\nerror: an observer failed\n"
    assert logging.getLogger("plaudit").propagate
    result = CliRunner().invoke(talk, ["--debug"])
    assert "debug: a detail\n" in result.stderr
    assert result.stderr.endswith("ValueError: of an observer\n")
