"""What stands under `reward.plaudit` in a verl configuration: every key, typed and checked.

What is left out comes from the environment (OPENAI_API_KEY, PLAUDIT_RPM, ...), as everywhere in plaudit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from plaudit.errors import NO_VALUE, ConfigError, as_argument, spelling
from plaudit.rewards import KimiLength, LengthPenalty, SoftOverlong
from plaudit.rewards.failure import OnContentFailure
from plaudit.settings import SAMPLING, checked
from plaudit.value_check import MOST, check_known, check_number, check_numbers, kinds_of, reworded

PLACE = "reward.plaudit"
ROOM = 900
"""Rows a worker takes at once, with something to spare: Ray's default for asynchronous actors is 1,000."""
Penalty = LengthPenalty | SoftOverlong | KimiLength
PENALTIES: dict[str, type[Penalty]] = {
    "length": LengthPenalty,
    "overlong": SoftOverlong,
    "kimi": KimiLength,
}
RuleUse = Literal["auto", "require", "off"]
TooMany = Literal["go_on", "stop"]


class EndpointTable(msgspec.Struct, frozen=True, kw_only=True):
    """One server of several, under `reward.plaudit.endpoints`."""

    url: str
    model: str = ""
    api_key_env: str = ""
    """Variable that holds its key; empty: the one of reward.plaudit.api_key_env."""
    kind: Literal["openai", "ollama"] | None = None
    max_concurrent: int | None = None
    rpm: int | None = None
    tpm: int | None = None
    price: tuple[float, float] | None = None
    cached_price: float | None = None
    headers: dict[str, str] = {}
    identity: str = ""
    """Which model this is, in cache keys; empty: its name, so that servers of one name share verdicts."""


class RewardSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Every key of `reward.plaudit`. Times are in seconds, money in US dollars."""

    judge: str | dict[str, Any] | None = None
    """Name of a judge, a file that describes one, or a table with its `kind` and options."""
    general: Mapping[str, Any] = {}
    """Those that are settings of plaudit everywhere, as far as they are given; see GENERAL."""
    endpoints: tuple[EndpointTable, ...] = ()
    """Servers with settings of their own, in place of base_url, model and price."""
    deadline: float = 600.0
    """For the verdict on one row, from when it is handed over; past it the row fails as `deadline`."""
    share: str | None = None
    """Name of an engine to share with other trainings of the cluster; left out: this training's own."""

    coefficient: float = 1.0
    """What the judge's score, from 0 to 1, is multiplied by; 0: it is reported and does not count."""
    rule: RuleUse | bool = "auto"
    """verl's own score: `auto` adds it where there is a rule for the row, `require` fails rows without,
    `off` never asks for it."""
    rule_coefficient: float = 1.0
    """What the rule's score is multiplied by."""
    penalty: dict[str, Any] | None = None
    """`kind` (length, overlong or kimi) and its options; left out: none."""
    failure: float | Literal["auto", "mask", "group_mean"] = "auto"
    """What becomes of a row without a verdict: `mask` leaves it out, where verl can; `group_mean` gives it
    the mean of its group; a number, that number. `auto`: `mask` where verl can, else `group_mean`."""
    content_failure: OnContentFailure = "mask"
    """Where the response itself may have broken the judge: `mask`, like any failure, or `floor`: 0."""
    tie_eps: float = 0.0
    """Rewards of a group that differ by no more than this all become their mean."""
    group_size: int | None = None
    """Responses to one prompt; left out: actor_rollout_ref.rollout.n."""
    val_group_size: int | None = None
    """The same in validation; left out: actor_rollout_ref.rollout.val_kwargs.n."""
    group_timeout: float = 1800.0
    """How long the first row of a group waits for the others; then those who came are the group."""
    unsure_timeout: float = 120.0
    """The same where it is unknown whether the row is training or validation, which has smaller groups."""

    patience: float = 600.0
    """How long a row goes on asking while the judge is down; 0: not at all."""
    max_failure_rate: float = 0.2
    """Share of a worker's last 200 rows that may have no verdict."""
    too_many: TooMany = "go_on"
    """Where more have none: `go_on` without advantage on them, or `stop` the training with an error."""
    texts: bool = True
    """Whether the extra information has the judge's reason and the status, as texts."""

    @property
    def rule_use(self) -> RuleUse:
        """`rule`, also where YAML has read `on` or `off` as a truth value."""
        if isinstance(self.rule, bool):
            return "auto" if self.rule else "off"
        return self.rule


GENERAL = (
    "rubric", "scale", "base_url", "model", "api_key_env", "max_concurrent", "rpm", "tpm", "budget", "price",
    "cached_price", "timeout", "hedge", "cache", "client", "observers", "journal", "journal_max_mb",
    "journal_text", "run", "headers", "identity", *SAMPLING,
)  # fmt: skip
"""Keys that are settings of plaudit's own (`plaudit.settings`); what is left out, the environment may say."""
NAMES = (*GENERAL, *(name for name in RewardSettings.__struct_fields__ if name != "general"))


def as_key(setting: str, value: object) -> str:
    """A setting as verl's configuration has it: `reward.plaudit.rpm=0`."""
    return as_argument(f"{PLACE}.{setting}", value) if setting else f"{PLACE}:"


@spelling(as_key)
def read_settings(table: Mapping[str, Any], *, rollouts: int = 1, val_rollouts: int = 1) -> RewardSettings:
    """The settings in a table. Raises ConfigError that names the key, its value and the remedy.

    rollouts, val_rollouts   responses to one prompt as verl is configured: what the group sizes default to
    """
    if "api_key" in table:
        raise ConfigError(
            "does not belong in a configuration, which trackers store; "
            f"export it as a variable, and name that with {PLACE}.api_key_env",
            setting="api_key",
        )
    _check_names(table, NAMES, "")
    types = get_type_hints(RewardSettings)
    given = {name: value for name, value in table.items() if value is not None}
    values = {name: _typed(name, value, types[name]) for name, value in given.items() if name in types}
    values["general"] = {name: _general(name, given[name]) for name in GENERAL if name in given}
    values.setdefault("group_size", rollouts)
    values.setdefault("val_group_size", val_rollouts)
    settings = RewardSettings(**values)
    for names, low in _AT_LEAST.items():
        check_numbers(settings, *names, low=low)
    check_number("max_failure_rate", settings.max_failure_rate, low=0, high=1)
    if not isinstance(settings.failure, str):
        check_number("failure", settings.failure)
    if settings.endpoints and not settings.general.keys().isdisjoint(("base_url", "model", "price")):
        raise ConfigError(
            f"have their own URLs, models and prices; leave out {PLACE}.base_url, .model and .price",
            setting="endpoints",
        )
    penalty_of(settings)
    return settings


def settings_from(config: Any) -> RewardSettings:
    """What a verl configuration says under `reward.plaudit`; group sizes as its rollouts have them."""
    reward = at(config, "reward")
    if reward is None:
        raise ConfigError(
            f"{PLACE}: this configuration has no section reward, so it is of a verl before 0.7.1; "
            "upgrade verl, or see docs/verl-legacy.md"
        )
    table = at(reward, "plaudit") or {}
    if not isinstance(table, dict | list | str | int | float):
        from omegaconf import OmegaConf

        table = OmegaConf.to_container(table, resolve=True) if OmegaConf.is_config(table) else table
    if not isinstance(table, dict):
        raise ConfigError(f"{PLACE} is {table!r}; it should be a table, like +{PLACE}.base_url=http://...")
    rollout = at(config, "actor_rollout_ref", "rollout")
    return read_settings(
        table, rollouts=int(at(rollout, "n") or 1), val_rollouts=int(at(rollout, "val_kwargs", "n") or 1)
    )


def is_chosen(config: Any) -> bool:
    """Whether a verl configuration names plaudit's reward manager."""
    chosen = at(config, "reward", "reward_manager")
    path = str(at(chosen, "module", "path") or "")
    return at(chosen, "name") == "plaudit" or path.startswith("pkg://plaudit.")


def workers_needed(config: Any, settings: RewardSettings) -> int | None:
    """What `reward.num_workers` should be, where rows that wait for their group may fill too few workers."""
    prompts, workers = at(config, "data", "train_batch_size"), at(config, "reward", "num_workers")
    group = settings.group_size or 1
    rows = int(prompts or 0) * group
    return math.ceil(rows / ROOM) if rows > ROOM * int(workers or 1) and group > 1 else None


def at(node: Any, *keys: str) -> Any:
    """What lies under these keys of a DictConfig, a dictionary or a dataclass; None where one is missing."""
    for key in keys:
        node = node.get(key) if hasattr(node, "get") else getattr(node, key, None)
    return node


def penalty_of(settings: RewardSettings) -> Penalty | None:
    if settings.penalty is None:
        return None
    options = dict(settings.penalty)
    kind = options.pop("kind", "length")
    if not isinstance(kind, str) or kind not in PENALTIES:
        raise ConfigError(f"is unknown; use {', '.join(PENALTIES)}", setting="penalty.kind", value=kind)
    wanted = PENALTIES[kind]
    _check_names(options, [field.name for field in fields(wanted)], "penalty.")
    penalty: Penalty = _typed("penalty", options, wanted)
    return penalty


_AT_LEAST = {
    ("deadline", "group_timeout", "unsure_timeout"): 1e-3,
    ("patience", "tie_eps"): 0.0,
    ("group_size", "val_group_size"): 1,
    ("coefficient", "rule_coefficient"): -MOST,
}
"""Below these, keys make no sense."""


def _check_names(table: Iterable[str], known: Collection[str], within: str) -> None:
    for key in table:
        check_known(key, known, "key", place=within, prefix=f"{PLACE}.{within}")


def _general(name: str, value: Any) -> Any:
    """A setting of plaudit's own; YAML reads `off` as false."""
    if name in ("rubric", "model") and not str(value).strip():
        raise ConfigError("is empty; leave it out, or give it", setting=name)
    is_switch = name in ("cache", "journal") and isinstance(value, bool)
    return checked(name, ("" if value else "off") if is_switch else value, is_text=True)


def _typed(name: str, value: Any, kind: Any) -> Any:
    if isinstance(value, list) and EndpointTable in get_args(kind):
        for number, item in enumerate(value):
            if isinstance(item, Mapping):
                _check_names(item, EndpointTable.__struct_fields__, f"{name}[{number}].")
    try:
        return msgspec.convert(value, kind, strict=False)
    except UnicodeEncodeError:
        raise ConfigError("is not Unicode text (it contains a lone surrogate)", setting=name) from None
    except msgspec.ValidationError as error:
        if isinstance(own := error.__cause__, ConfigError):
            raise ConfigError(own.message, setting=f"{name}.{own.setting}", value=own.value) from None
        message, place = reworded(error)
        for step in re.findall(r"\w+", place):  # to what is wrong in a table, or in one of several
            is_item = step.isdigit()
            kind = get_args(kind)[0] if is_item else get_type_hints(kind)[step]
            value = value[int(step) if is_item else step]
        if choices := [
            word for one in kinds_of(kind) if get_origin(one) is Literal for word in get_args(one)
        ]:
            or_number = " or a number" if float in kinds_of(kind) else ""
            raise ConfigError(
                f"is unknown; use {', '.join(choices)}{or_number}", setting=f"{name}{place}", value=value
            ) from None
        shown = NO_VALUE if place or isinstance(value, dict) else value  # a part may be a secret header
        raise ConfigError(f"does not do: {message}", setting=f"{name}{place}", value=shown) from None
