"""Errors of settings: named as the user wrote them, and the same after a journey to another process."""

from __future__ import annotations

import pickle

import pytest

from plaudit.errors import NO_VALUE, ConfigError, spelling


def flag(setting: str, value: object) -> str:
    return f"--{setting}" if value is NO_VALUE else f"--{setting} {value}"


def test_a_setting_is_named_as_python_writes_it_unless_a_front_end_says_otherwise() -> None:
    error = ConfigError("allows no call at all", setting="rpm", value=0)
    assert str(error) == "rpm=0 allows no call at all"
    with pytest.raises(ConfigError) as caught, spelling(flag):
        raise error
    assert str(caught.value) == "--rpm 0 allows no call at all"


def test_what_the_user_wrote_elsewhere_is_kept_by_every_front_end() -> None:
    error = ConfigError("allows no call", setting="rpm", value=0, spelled="PLAUDIT_RPM=0")
    with pytest.raises(ConfigError) as caught, spelling(flag):
        raise error
    assert str(caught.value) == "PLAUDIT_RPM=0 allows no call"
    assert caught.value.setting == "rpm"


def test_an_error_about_no_setting_is_its_message_and_a_missing_one_has_no_value() -> None:
    assert str(ConfigError("there is no endpoint")) == "there is no endpoint"
    assert str(ConfigError("is missing", setting="groups")) == "groups is missing"
    assert str(ConfigError("is cut", setting="scale", value=None).at("judge.toml:3")) == (
        "judge.toml:3: scale=None is cut"
    )


@pytest.mark.parametrize("value", [7, "text", None, (0, 1), object(), lambda: None])
def test_an_error_says_the_same_in_another_process(value: object) -> None:
    error = ConfigError("is wrong", setting="judge", value=value)
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert copy.setting == "judge"
