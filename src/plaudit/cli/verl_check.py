"""A verl configuration, checked before the training: the keys of plaudit, the judge, the groups."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from plaudit.cli.endpoint_check import CheckResult, ok, wrong
from plaudit.config import Endpoint
from plaudit.errors import ConfigError
from plaudit.files import decoded, read_text
from plaudit.integrations.verl.reward_engine import endpoints_for, judge_for, resolve
from plaudit.integrations.verl.reward_settings import PLACE, is_chosen, settings_from, workers_needed
from plaudit.judges.base import compares
from plaudit.settings import Settings

MANAGER = "reward.reward_manager"
OTHER_MANAGER = (
    f"{MANAGER} is another, so {PLACE} is not read; set {MANAGER}.name=plaudit (verl 0.9) or "
    f"{MANAGER}.source=importlib, .name=RewardManager and .module.path=pkg://plaudit.integrations.verl"
)


def check_verl(path: Path) -> tuple[Settings, tuple[Endpoint, ...], list[CheckResult]]:
    """What a configuration says of the judge: settings, endpoints as yet unasked, and what is wrong with it.

    Raises:
        ConfigError: It cannot be read, or a key of `reward.plaudit` makes no sense.
    """
    config = _read(path)
    settings = settings_from(config)
    plain = resolve(settings)
    judge = judge_for(settings, plain)
    group = settings.group_size or 1
    checks = [
        ok("manager", "plaudit's") if is_chosen(config) else wrong("manager", OTHER_MANAGER),
        ok("judge", f"{type(judge).__name__}, coefficient {settings.coefficient:g}"),
    ]
    if compares(judge) and group < 2:
        needed_n = "set actor_rollout_ref.rollout.n=8, say"
        checks.append(
            wrong("group", f"this judge compares responses to one prompt, and there is one; {needed_n}")
        )
    else:
        checks.append(ok("group", f"{group} response{'s' if group != 1 else ''} to a prompt"))
    if (needed := workers_needed(config, settings)) is not None:
        checks.append(wrong("workers", f"too few for this batch; set reward.num_workers={needed}"))
    if plain.budget is not None and not all([table.price for table in settings.endpoints] or [plain.price]):
        checks.append(wrong("budget", f"{PLACE}.budget needs {PLACE}.price, USD for a million tokens"))
    endpoints = endpoints_for(settings, plain)
    if not endpoints:
        checks.append(wrong("endpoint", f"there is none; set {PLACE}.base_url=http://host:8000/v1"))
    return plain, endpoints, checks


def _read(path: Path) -> Any:
    """The file as verl would read it; with interpolations resolved where OmegaConf is installed."""
    text = read_text(path, setting="verl")
    try:
        from omegaconf import OmegaConf
    except ImportError:
        config = decoded(text, path, setting="verl", default="YAML")
    else:
        yaml = import_module("yaml")
        try:  # by its own loader, which takes some texts for numbers, and some for none, that others do not
            config = OmegaConf.create(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"cannot be read as YAML: {error}", setting="verl", value=str(path)) from None
    if not isinstance(config, Mapping) or config.get("reward") is None:
        why = "has no section reward; give the whole configuration, as verl prints it, or one with"
        raise ConfigError(f"{why} {PLACE}", setting="verl", value=str(path))
    return config
