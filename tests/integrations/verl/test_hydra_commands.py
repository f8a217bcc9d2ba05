"""Every command line on the verl pages is one that Hydra takes, and says what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.trainers

hydra = pytest.importorskip("hydra")
verl = pytest.importorskip("verl")

from omegaconf import OmegaConf  # noqa: E402

from plaudit.integrations.verl import LengthPenaltyConfig  # noqa: E402
from plaudit.integrations.verl.reward_engine import judge_for, resolve  # noqa: E402
from plaudit.integrations.verl.reward_settings import RewardSettings, settings_from  # noqa: E402

DOCS = Path(__file__).parents[3] / "docs"
CONFIG = Path(verl.__file__).parent / "trainer" / "config"
SECRET = "sk-not-for-print"


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def commands(page: str, language: str = "bash") -> list[list[str]]:
    """The overrides of each command that starts a training, as the shell hands them over."""
    found = []
    for block in blocks(page, language):
        words = shlex.split(re.sub(r"^[+ ]", "", block, flags=re.MULTILINE) if language == "diff" else block)
        if "verl.trainer.main_ppo" in words:
            words = words[words.index("verl.trainer.main_ppo") + 1 :]
            found.append([word for word in words if word not in ("...", "\n")])
    return found


def composed(overrides: list[str]) -> Any:
    with hydra.initialize_config_dir(str(CONFIG), version_base=None):
        return hydra.compose("ppo_trainer", overrides=overrides)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)


def settings_of(config: Any) -> RewardSettings:
    """The settings, after everything about them that can be built without a network was built."""
    settings = settings_from(config)
    judge_for(settings, resolve(settings))
    return settings


@pytest.mark.parametrize("overrides", commands("verl.md"), ids=lambda words: words[-1])
def test_hydra_takes_every_command_of_the_page_and_prints_no_key(overrides: list[str]) -> None:
    config = composed(overrides)
    settings_of(config)
    assert SECRET not in OmegaConf.to_yaml(config, resolve=True)


def test_the_commands_say_what_the_page_says() -> None:
    first, second, _ = (settings_of(composed(overrides)) for overrides in commands("verl.md"))
    assert first.general["rubric"] == "Is the reasoning sound, and not a word too long?"
    assert first.general["base_url"] == ("http://judge:8000/v1",)
    assert (first.coefficient, first.group_size) == (0.5, 8)
    assert second.general["base_url"] == ("http://judge-1:8000/v1", "http://judge-2:8000/v1")
    assert second.general["scale"] == (0.0, 10.0)
    assert second.judge == {"kind": "group", "criteria": "Which answers are right, and which are brief?"}
    assert second.penalty == {"kind": "length", "side": "over", "gate": "positive"}


def test_the_page_s_own_yaml_is_read_as_the_command_is() -> None:
    (own,) = (block for block in blocks("verl.md", "yaml") if "plaudit:" in block)
    config = OmegaConf.merge(composed([]), OmegaConf.create({}))
    OmegaConf.set_struct(config, False)
    settings = settings_of(OmegaConf.merge(config, OmegaConf.create(own)))
    assert settings.general["rubric"] == "Is the reasoning sound, and not a word too long?"
    assert settings.general["rpm"] == 600


def test_the_legacy_command_configures_the_legacy_manager() -> None:
    (overrides,) = commands("verl-legacy.md", "diff")
    config = composed(overrides)
    assert config.reward_model.reward_manager == "length_penalty"
    table = config.reward_model.reward_kwargs.length_penalty_config
    assert LengthPenaltyConfig.of(table).reward_coefficient == 0.5
