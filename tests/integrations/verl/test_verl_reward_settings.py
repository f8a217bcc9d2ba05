"""Keys of reward.plaudit are typed, and a wrong one is named with its value and the remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from complaints import about

from plaudit.errors import ConfigError
from plaudit.integrations.verl.reward_settings import NAMES, EndpointTable, penalty_of, read_settings
from plaudit.rewards import KimiLength, LengthPenalty, SoftOverlong

PAGE = (Path(__file__).parents[3] / "docs" / "verl.md").read_text(encoding="utf-8")


def test_the_group_sizes_come_from_the_rollouts_unless_they_are_given() -> None:
    assert read_settings({}, rollouts=8, val_rollouts=2).group_size == 8
    assert read_settings({}, rollouts=8, val_rollouts=2).val_group_size == 2
    assert read_settings({"group_size": 4}, rollouts=8).group_size == 4


def test_values_that_came_as_text_are_read() -> None:
    settings = read_settings({"rpm": "60", "coefficient": "0.5", "scale": ["0", "10"]})
    assert (settings.general, settings.coefficient) == ({"rpm": 60, "scale": (0.0, 10.0)}, 0.5)


@pytest.mark.parametrize(("given", "meant"), [(True, "auto"), (False, "off"), ("require", "require")])
def test_a_rule_may_be_on_or_off_as_yaml_reads_it(given: str | bool, meant: str) -> None:
    assert read_settings({"rule": given}).rule_use == meant


@pytest.mark.parametrize(
    ("table", "setting", "words"),
    [
        ({"rubrik": "x"}, "rubrik", "reward.plaudit.rubric?"),
        ({"max-concurrent": 3}, "max-concurrent", "reward.plaudit.max_concurrent?"),
        ({"zzz": 1}, "zzz", "rubric, scale"),
        ({"api_key": "sk-secret"}, "api_key", "reward.plaudit.api_key_env"),
        ({"rpm": "many"}, "rpm", "reward.plaudit.rpm='many'"),
        ({"deadline": 0}, "deadline", "0.001"),
        ({"coefficient": float("nan")}, "coefficient", "reward.plaudit.coefficient=nan"),
        ({"group_size": 0}, "group_size", "reward.plaudit.group_size=0"),
        ({"failure": "drop"}, "failure", "mask, group_mean or a number"),
        ({"failure": float("nan")}, "failure", "reward.plaudit.failure=nan"),
        ({"too_many": "ignore"}, "too_many", "go_on, stop"),
        ({"max_failure_rate": 20}, "max_failure_rate", "from 0 to 1"),
        ({"rubric": " "}, "rubric", "reward.plaudit.rubric"),
        ({"endpoints": [{"url": "http://a", "modle": "m"}]}, "endpoints[0].modle", "endpoints[0].model?"),
        ({"endpoints": [{"url": "http://a"}], "model": "m"}, "endpoints", "reward.plaudit.base_url"),
        ({"penalty": {"kind": "size"}}, "penalty.kind", "length, overlong, kimi"),
        ({"penalty": {"peek_ratio": 0.2}}, "penalty.peek_ratio", "reward.plaudit.penalty.peak_ratio?"),
        ({"penalty": {"outer_ratio": 0.1}}, "penalty.outer_ratio", "reward.plaudit.penalty.outer_ratio=0.1"),
        (
            {"penalty": {"side": "left"}},
            "penalty.side",
            "reward.plaudit.penalty.side='left' is unknown; use both",
        ),
        (
            {"endpoints": [{"url": "http://a", "kind": "vllm"}]},
            "endpoints[0].kind",
            "'vllm' is unknown; use openai",
        ),
        ({"endpoints": ["http://a"]}, "endpoints[0]", "expected a table, got text"),
        ({"penalty": {"kind": "overlong"}}, "penalty", "reward.plaudit.penalty does not do"),
    ],
)
def test_a_wrong_key_is_named_with_its_remedy(table: dict[str, Any], setting: str, words: str) -> None:
    with pytest.raises(ConfigError, check=about(setting, words)):
        read_settings(table)


def test_a_key_in_the_configuration_is_refused_without_being_repeated() -> None:
    with pytest.raises(ConfigError) as raised:
        read_settings({"api_key": "sk-secret"})
    assert "sk-secret" not in str(raised.value)


def test_a_penalty_is_made_of_its_kind_and_options() -> None:
    def penalty(**options: Any) -> object:
        return penalty_of(read_settings({"penalty": options}))

    assert penalty(side="over", peak_ratio=0) == LengthPenalty(side="over", peak_ratio=0.0)
    assert penalty(kind="overlong", max_length=100, cache=20) == SoftOverlong(100, 20)
    assert penalty(kind="kimi") == KimiLength()
    assert penalty_of(read_settings({})) is None


@pytest.mark.parametrize("name", [*NAMES, *EndpointTable.__struct_fields__])
def test_every_key_stands_in_the_users_guide(name: str) -> None:
    assert f"`{name}`" in PAGE
