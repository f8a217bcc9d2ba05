"""Settings: which source wins, where each value came from, and what a mistake in one is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from complaints import about

from plaudit.caches import MemoryCache
from plaudit.config import UNSET, Endpoint, Price, Secret
from plaudit.errors import ConfigError
from plaudit.settings import Settings, engine_config, load, resolve, unknown_variables
from plaudit.setup.judges import judge_of

TOML = Path("/project/plaudit.toml")


def settled(
    arguments: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    table: Mapping[str, Any] | None = None,
) -> Settings:
    return resolve(arguments or {}, environment=environment or {}, table=table or {}, path=TOML)


def test_nothing_given_means_defaults_and_says_so() -> None:
    settings = settled()
    assert settings == Settings()
    assert settings.origin("timeout") == "default"


def test_an_argument_beats_a_variable_beats_the_file_beats_the_default() -> None:
    arguments, environment, table = {"rpm": 1}, {"PLAUDIT_RPM": "2"}, {"rpm": 3}
    for given, expected, origin in [
        ((arguments, environment, table), 1, "argument --rpm"),
        (({}, environment, table), 2, "variable PLAUDIT_RPM"),
        (({}, {}, table), 3, str(TOML)),
        (({}, {}, {}), None, "default"),
    ]:
        settings = settled(*given)
        assert settings.rpm == expected
        assert settings.origin("rpm") == origin


def test_an_argument_left_out_or_an_empty_variable_says_nothing() -> None:
    settings = settled({"model": None}, {"PLAUDIT_MODEL": " "}, {"model": "m"})
    assert settings.model == "m"


def test_our_variable_comes_before_the_users_own() -> None:
    environment = {"PLAUDIT_BASE_URL": "http://a/v1", "OPENAI_BASE_URL": "http://b/v1"}
    assert settled(environment=environment).base_url == ("http://a/v1",)
    own = settled(environment={"OPENAI_BASE_URL": "http://b/v1"})
    assert own.base_url == ("http://b/v1",)
    assert own.origin("base_url") == "variable OPENAI_BASE_URL"


def test_variables_are_text_and_become_what_the_setting_needs() -> None:
    settings = settled(
        environment={
            "PLAUDIT_BASE_URL": "http://a/v1, http://b/v1",
            "PLAUDIT_SCALE": "0 10",
            "PLAUDIT_BUDGET": "2.5",
            "TRAIN_WITH_MONITOR": "true",
            "MONITOR_CACHE": "false",
        }
    )
    assert settings.base_url == ("http://a/v1", "http://b/v1")
    assert settings.scale == (0.0, 10.0)
    assert settings.budget == 2.5
    assert settings.train_with_monitor
    assert not settings.monitor_cache


def test_the_key_comes_from_our_variable_then_openai_then_only_the_one_named() -> None:
    environment = {"PLAUDIT_API_KEY": "sk-one", "OPENAI_API_KEY": "sk-two", "MY_KEY": "sk-three"}
    assert settled(environment=environment).api_key == Secret("sk-one")
    assert settled(environment={"OPENAI_API_KEY": "sk-two"}).origin("api_key") == "variable OPENAI_API_KEY"
    named = settled({"api_key_env": "MY_KEY"}, environment)
    assert named.api_key == Secret("sk-three")
    assert settled({"api_key_env": "NOT_SET"}, environment).api_key is None


def test_the_key_is_in_no_repr() -> None:
    assert "sk-two" not in repr(settled(environment={"OPENAI_API_KEY": "sk-two"}))


def test_a_key_in_the_file_is_refused_without_repeating_it() -> None:
    with pytest.raises(ConfigError, check=about("api_key", "OPENAI_API_KEY")) as caught:
        settled(table={"api_key": "sk-oops"})
    assert "sk-oops" not in str(caught.value)


def test_an_unknown_key_is_named_with_the_file_and_the_closest_known_one() -> None:
    with pytest.raises(ConfigError, check=about("max_concurent", str(TOML), "max_concurrent?")):
        settled(table={"max_concurent": 60})


def test_settings_inside_a_table_are_told_to_stand_outside() -> None:
    with pytest.raises(ConfigError, check=about("plaudit", "remove the line with [plaudit]")):
        settled(table={"plaudit": {"rpm": 60}})


def test_a_judge_that_is_none_is_named_where_it_was_written() -> None:
    for settings, written in (
        (settled({}, {"PLAUDIT_JUDGE": "rubrik"}), "PLAUDIT_JUDGE='rubrik'"),
        (settled({}, {}, {"judge": "rubrik"}), f"{TOML}: judge='rubrik'"),
    ):
        with pytest.raises(ConfigError) as caught:
            judge_of(settings)
        assert str(caught.value).startswith(written)


def test_an_unknown_key_like_no_other_gets_the_list() -> None:
    with pytest.raises(ConfigError, check=about("zzz", "base_url, model")):
        settled(table={"zzz": 1})


@pytest.mark.parametrize(
    ("environment", "table", "spelled"),
    [
        ({"PLAUDIT_RPM": "many"}, {}, "PLAUDIT_RPM='many'"),
        ({}, {"rpm": "60"}, f"{TOML}: rpm='60'"),
        ({}, {"model": 7}, f"{TOML}: model=7"),
        ({"MONITOR_CACHE": "maybe"}, {}, "MONITOR_CACHE='maybe'"),
        ({}, {"scale": [1]}, f"{TOML}: scale=[1]"),
        ({}, {"client": "httpx"}, f"{TOML}: client='httpx'"),
        ({}, {"base_url": 8000}, f"{TOML}: base_url=8000"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named_as_it_is_written_there(
    environment: dict[str, str], table: dict[str, Any], spelled: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        settled(environment=environment, table=table)
    assert caught.value.spelled == spelled


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("rpm", 0),
        ("max_concurrent", -1),
        ("timeout", 0.0),
        ("deadline", float("nan")),
        ("budget", -1.0),
        ("price", (1.0, -2.0)),
        ("scale", (10.0, 0.0)),
    ],
)
def test_an_argument_that_makes_no_sense_is_left_to_its_front_end_to_spell(
    setting: str, value: object
) -> None:
    with pytest.raises(ConfigError) as caught:
        settled({setting: value})
    assert (caught.value.setting, caught.value.value, caught.value.spelled) == (setting, value, "")


def test_two_numbers_are_written_otherwise_in_a_file_and_the_error_says_how() -> None:
    assert settled(environment={"PLAUDIT_SCALE": "0 10"}).scale == settled(table={"scale": [0, 10]}).scale
    with pytest.raises(ConfigError, check=about("scale", "[0, 10] in a file")):
        settled(table={"scale": "0 10"})


def test_what_settings_cannot_do_together_is_said_as_it_was_written() -> None:
    settings = settled(environment={"PLAUDIT_BUDGET": "5"})
    with pytest.raises(ConfigError, check=about("budget", "PLAUDIT_BUDGET=5.0 needs prices")):
        engine_config(settings, "http://judge/v1", model="m")
    with pytest.raises(ConfigError) as caught:
        engine_config(settings, "http://judge/v1", model="m", budget=3.0)
    assert (caught.value.setting, caught.value.value, caught.value.spelled) == ("budget", 3.0, "")


def test_a_mistyped_variable_of_ours_is_found() -> None:
    environment = {"PLAUDIT_MAX_CONCURENT": "60", "PLAUDIT_HOME": "/x", "PLAUDIT_RPM": "1", "PATH": "/bin"}
    assert unknown_variables(environment) == {"PLAUDIT_MAX_CONCURENT": "PLAUDIT_MAX_CONCURRENT"}


def test_paths_in_the_file_start_from_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLAUDIT_CACHE", raising=False)
    (tmp_path / ".git").mkdir()
    (tmp_path / "rubric.txt").write_text("Is it brief?")
    (tmp_path / "plaudit.toml").write_text('cache = "verdicts.db"\nrubric = "rubric.txt"\njudge = "rubric"')
    inner = tmp_path / "runs"
    inner.mkdir()
    settings = load({}, folder=inner)
    assert settings.cache == str(tmp_path / "verdicts.db")
    assert settings.rubric == str(tmp_path / "rubric.txt")
    assert settings.judge == "rubric"
    (tmp_path / "plaudit.toml").write_text('cache = "off"')
    assert load({}, folder=inner).cache == "off"


@pytest.mark.parametrize(
    "url",
    [
        "http://me:hunter2@host/v1",
        "https://me:hun/ter2@host/v1",
        "me:hunter2@host/v1",
        "hunter2@host:8000",
        "ftp://me:hunter2@host",
    ],
)
def test_a_url_with_a_password_is_refused_without_showing_it(url: str) -> None:
    for given in ({"base_url": [url]}, {}):
        with pytest.raises(ConfigError, check=about("base_url")) as caught:
            settled(given, {"PLAUDIT_BASE_URL": url}, {"base_url": url})
        assert "hunter2" not in str(caught.value)
        assert "ter2" not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-abc", "gsk_AbC1234567890defghijk", "AIzaSyA1234567890abcdefghij"])
def test_a_key_in_place_of_the_name_of_its_variable_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ConfigError, check=about("api_key_env", "OPENAI_API_KEY")) as caught:
        settled({"api_key_env": key})
    assert key not in str(caught.value)


# -- what an engine is opened with ------------------------------------------------------------------------

URL = "http://localhost:8000/v1"


def test_an_option_that_was_given_wins_and_none_is_given() -> None:
    settings = Settings(base_url=(URL,), rpm=60, tpm=1000, max_concurrent=8)
    config = engine_config(settings, rpm=None, tpm=500, max_concurrent=UNSET)
    assert (config.rpm, config.tpm, config.max_concurrent) == (None, 500, 8)


def test_an_endpoint_has_the_model_the_key_and_the_price_of_the_settings() -> None:
    settings = Settings(base_url=(URL,), model="m", api_key=Secret("sk-one"), price=(1.0, 2.0))
    assert engine_config(settings).endpoints == (Endpoint(URL, "m", "sk-one", price=Price(1.0, 2.0)),)
    (other,) = engine_config(settings, "http://other/v1", model="n", api_key="sk-two").endpoints
    assert (other.url, other.model, other.key) == ("http://other/v1", "n", "sk-two")


@pytest.mark.parametrize(
    "given",
    [({"identity": "q4"}, {}, {}), ({}, {"PLAUDIT_IDENTITY": "q4"}, {}), ({}, {}, {"identity": "q4"})],
    ids=["argument", "variable", "file"],
)
def test_an_identity_stands_for_the_model_in_cache_keys(given: Any) -> None:
    settings = replace(settled(*given), base_url=(URL,), model="m")
    assert engine_config(settings).model == "q4"
    assert engine_config(settings, identity="q8").model == "q8"
    assert engine_config(replace(settings, identity="")).model == "m"


def test_without_an_endpoint_there_is_no_configuration() -> None:
    with pytest.raises(ConfigError, check=about("url")):
        engine_config(Settings())


def test_a_cache_is_named_by_its_full_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLAUDIT_HOME", str(tmp_path / "home"))
    settings = Settings(base_url=(URL,))
    assert engine_config(settings).cache == str(tmp_path / "home" / "verdicts.sqlite")
    assert engine_config(settings, cache="here.sqlite").cache == str(tmp_path / "here.sqlite")
    assert engine_config(settings, cache="memory").cache == "memory"
    assert engine_config(settings, cache="off").cache is None
    assert engine_config(settings, cache=None).cache is None


@pytest.mark.parametrize("name", ["cache", "journal"])
@pytest.mark.parametrize("value", ["OFF", "none", "False", "https://host/verdicts"])
def test_what_was_not_meant_as_the_name_of_a_file_is_refused_with_the_remedy(
    name: str, value: str, tmp_path: Path
) -> None:
    words = "a file on this machine" if "://" in value else "write off for none"
    for arguments, variables in (({name: value}, {}), ({}, {f"PLAUDIT_{name.upper()}": value})):
        with pytest.raises(ConfigError, check=about(name, value, words)):
            settled(arguments, variables, {})
    (tmp_path / "plaudit.toml").write_text(f"{name} = {value!r}")
    with pytest.raises(ConfigError, check=about(name, f"{name}={value!r}", words)):
        load({}, folder=tmp_path)


def test_a_cache_in_memory_may_be_asked_for_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "plaudit.toml").write_text('cache = "memory"')
    assert load({}, folder=tmp_path).cache == "memory"


def test_an_error_about_what_a_variable_says_names_the_variable_unless_an_argument_overrules_it() -> None:
    settings = settled({"base_url": (URL,)}, {"PLAUDIT_EXTRA": '{"model": "x"}'}, {})
    with pytest.raises(ConfigError, match=r"^PLAUDIT_EXTRA has a field 'model'"):
        engine_config(settings)
    with pytest.raises(ConfigError, match=r"^extra has a field 'n'"):
        engine_config(settings, extra={"n": 2})


def test_a_cache_object_cannot_be_part_of_a_configuration() -> None:
    with pytest.raises(ConfigError) as caught:
        engine_config(Settings(base_url=(URL,)), cache=MemoryCache())  # type: ignore[arg-type]
    assert caught.value.setting == "cache"


@pytest.mark.parametrize("name", ["rpm", "scale", "headers", "journal_text"])
def test_a_variable_that_is_no_text_is_named(name: str) -> None:
    """The system hands over bytes that are not UTF-8 as lone surrogates."""
    variable = f"PLAUDIT_{name.upper()}"
    with pytest.raises(ConfigError) as error:
        resolve({}, environment={variable: "\udcff"}, table={})
    assert str(error.value).startswith(variable)
