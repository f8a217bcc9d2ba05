"""LengthPenaltyConfig: what a LengthPenaltyRewardManager rewards by, and how it reaches its judge."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any

from plaudit.caches import Cache
from plaudit.config import UNSET, Secret, Unset, warn_unneeded
from plaudit.engine import Engine, configure
from plaudit.errors import ConfigError, spelling
from plaudit.integrations.verl.combination import JUDGE, PENALTY, RULE
from plaudit.integrations.verl.legacy.judge_workers import PercentLog
from plaudit.judges.base import Judge, Panel
from plaudit.observers.log import Log
from plaudit.openai_manager import CEILING, ROUTE, TIME_LIMIT, as_own_argument
from plaudit.rewards import Component, LengthPenalty, Reward
from plaudit.rewards.failure import OnFailure
from plaudit.settings import Settings, load
from plaudit.setup.endpoints import require_keys
from plaudit.setup.judges import judge_of
from plaudit.value_check import ABOVE_0, check_known, check_number, check_value

log = logging.getLogger("plaudit")

MODEL = "deepseek-v3"


@dataclass(frozen=True, slots=True)
class LengthPenaltyConfig:
    """reward = rule + reward_coefficient x judge - length penalty, where the judge's score is from 0 to 1.

    LengthPenaltyConfig(model_name="deepseek-v3", api_endpoint="https://host/v1", reward_coefficient=0.5)
    """

    api_key: Secret | str | None = None
    """The endpoint's key; better left to $OPENAI_API_KEY: trainers print their configuration."""
    model_name: str = MODEL
    """Empty: $PLAUDIT_MODEL, else the same."""
    api_endpoint: str | None = None
    """Like https://host/v1; without it, $OPENAI_BASE_URL."""
    use_async_io: bool = True
    """False, for debugging: one request at a time, and `submit` waits for all of them."""
    max_concurrent_requests: int | None = None
    """Requests at once, never exceeded; None: adaptive concurrency."""
    reward_coefficient: float = 1.0
    """What the judge's score, from 0 (worst) to 1 (best), is multiplied by."""
    enable_openai_reward: bool = True
    """Whether a judge is asked at all."""
    enable: bool = True
    """Whether length is penalised."""
    penalty_scale: float = 1.0
    max_penalty: float = 1.0
    peak_ratio: float = 0.3
    """Relative distance from the group's median length up to which nothing is charged."""
    outer_ratio: float = 0.5
    """Relative distance from which on everything is charged."""
    _: KW_ONLY
    judge: Judge | Panel | str | None = None
    """A judge, the name of a kind, or a file that describes one; None: $PLAUDIT_JUDGE, else a rubric."""
    rubric: str | None = None
    """What to judge by, in words, or a file that holds them; for a judge that is not given as an object."""
    enable_rule: bool = True
    """Whether verl's rule, or the user's own compute_score, counts."""
    time_limit: float = TIME_LIMIT
    """Seconds a batch may take; what is missing then is a failure."""
    on_failure: OnFailure = "group_mean"
    """What a row without a verdict gets: `group_mean` (no advantage), `raise`, or a number."""
    max_failure_rate: float | None = 0.2
    """A larger share of failures raises BatchFailed; None: never."""
    cache: Cache | str | os.PathLike[str] | Unset | None = UNSET
    """Where verdicts are kept, as for Engine; None: nowhere."""
    num_async_workers: int | None = None
    """Changes nothing: one event loop holds every request, and needs no workers."""

    def __post_init__(self) -> None:
        for name in ("use_async_io", "enable_openai_reward", "enable", "enable_rule"):
            check_value(name, getattr(self, name), bool)
        if isinstance(self.api_key, str):
            object.__setattr__(self, "api_key", Secret(self.api_key) if self.api_key.strip() else None)
        check_value("api_endpoint", self.api_endpoint, str | None)
        check_number("reward_coefficient", self.reward_coefficient)
        check_number("time_limit", self.time_limit, low=ABOVE_0, high=math.inf)
        check_value("max_concurrent_requests", self.max_concurrent_requests, int | None)
        if self.num_async_workers is not None:
            warn_unneeded("num_async_workers", CEILING)
        if self.on_failure == "mask":
            raise ConfigError(
                "leaves gaps, which verl's reward tensor cannot have; use 'group_mean', which "
                "gives no advantage, 'raise', or a number",
                setting="on_failure",
                value="mask",
            )
        if not (self.enable_rule or self.enable_openai_reward):
            raise ConfigError(
                "and enable_openai_reward=False leave nothing to reward by; enable one",
                setting="enable_rule",
                value=False,
            )
        self.reward()  # says now what is wrong with its numbers

    @classmethod
    def of(cls, given: LengthPenaltyConfig | Mapping[str, Any] | None) -> LengthPenaltyConfig:
        """The configuration itself, or the one that a table in the trainer's configuration describes."""
        if isinstance(given, LengthPenaltyConfig):
            return given
        names = [item.name for item in fields(cls)]
        if given is not None and not hasattr(given, "items"):
            raise ConfigError(
                f"is {type(given).__name__}; give a LengthPenaltyConfig, or a table of {', '.join(names)}",
                setting="length_penalty_config",
            )
        table = {str(name): value for name, value in given.items()} if given is not None else {}
        for name in table:
            check_known(name, names, "setting of length_penalty_config")
        if table.get("api_key"):
            log.warning(
                "length_penalty_config.api_key is in the trainer's configuration, which verl prints and "
                "saves; leave it out and set OPENAI_API_KEY"
            )
        return cls(**table)

    def reward(self, *, has_rule: bool = True) -> Reward:
        """How a batch's scores become rewards; `has_rule`: whether there is a rule for such rows."""
        penalty = LengthPenalty(self.penalty_scale, self.max_penalty, self.peak_ratio, self.outer_ratio)
        components = [
            (self.enable_rule and has_rule, Component(RULE)),
            (self.enable_openai_reward, Component(JUDGE, weight=self.reward_coefficient)),
            (self.enable, Component(PENALTY, penalty)),
        ]
        return Reward(
            [component for is_on, component in components if is_on],
            on_failure=self.on_failure,
            max_failure_rate=self.max_failure_rate,
        )

    def settings(self) -> Settings:
        """The settings of plaudit's own, resolved where the manager is made."""
        named = self.judge if isinstance(self.judge, str) else None
        return load({"judge": named, "rubric": self.rubric})

    def chosen_judge(self, settings: Settings) -> Judge | Panel:
        """The judge, made from its name or file where it is not one already."""
        return judge_of(settings) if self.judge is None or isinstance(self.judge, str) else self.judge

    @spelling(as_own_argument)
    def open_engine(self, settings: Settings, max_concurrent: int | None) -> Engine:
        """An engine for the judge's endpoint. ConfigError where there is no endpoint, or no key to it."""
        url = self.api_endpoint
        if not url and not settings.base_url:
            raise ConfigError(
                "is missing, so there is no judge: set it in length_penalty_config, like https://host/v1, "
                "or run: export OPENAI_BASE_URL=...",
                setting="api_endpoint",
            )
        config, live = configure(
            settings,
            url.rstrip("/").removesuffix(ROUTE) if url else None,
            model=self.model_name or settings.model or MODEL,
            api_key=self.api_key,
            max_concurrent=UNSET if max_concurrent is None else max_concurrent,
            cache=self.cache,
            observers=[Log(), PercentLog()],
        )
        require_keys(config.endpoints, settings)
        return Engine.from_config(config, **live)
