"""reward_function: a judge, rules and a length penalty as one reward function for TRL.

One function, because TRL adds several up with `nansum`, where a judge without a verdict counts as 0. This one
gives None for such a row, and TRL then leaves it out of its group: advantage 0.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields
from inspect import signature
from typing import Any

from plaudit.engine import BaseEngine, Engine, configure
from plaudit.errors import ConfigError
from plaudit.integrations.trl.batch_reward import (
    JUDGE,
    MONITOR,
    BatchOptions,
    BatchReward,
    RewardFunction,
    Rule,
)
from plaudit.integrations.trl.ranks import LENGTH
from plaudit.integrations.trl.trainer_facts import check_version
from plaudit.judges import Monitor
from plaudit.judges.base import Judge, Panel
from plaudit.judges.check import check_judge, check_weight
from plaudit.judges.file import load_judge
from plaudit.rewards import Component, Reward, RewardSource
from plaudit.settings import ConfigOptions, load
from plaudit.value_check import check_known, check_length

JUDGE_FILES = (".toml", ".yaml", ".yml", ".json")


def reward_function(
    judge: Judge | Panel | str | os.PathLike[str],
    *,
    penalty: RewardSource | None = None,
    rules: Rule | Component | Sequence[Rule | Component] = (),
    rule_weights: Sequence[float] | None = None,
    monitor: Monitor | None = None,
    weight: float = 1.0,
    engine: Engine | None = None,
    **options: Any,
) -> RewardFunction:
    """One `async def` for `reward_funcs=` of GRPOTrainer and RLOOTrainer.

    reward = weight x the judge's score, from 0 to 1, + rules - penalty

    The judge's server is asked at once for its models (and the judge for a word, where that does not tell
    enough), so that a refused key ends a training before it begins; a server that is not up yet is let be.
    Everything stops when the process ends.

    Args:
        judge: A judge, or a file that describes one.
        penalty: LengthPenalty(...), SoftOverlong(...) or KimiLength().
        rules: TRL reward functions, or Components of plaudit.rewards, added to the reward.
        rule_weights: One for each of the rules, as TRL's reward_weights would be.
        monitor: A second judge, of unwanted behaviour; its `use` says what becomes of its verdict.
        weight: What the judge's score is multiplied by.
        engine: An Engine of the caller's; by default its options are among `options`.
        options: Those of `BatchOptions` (reference, num_generations, deadline, on_failure,
            on_content_failure, max_failure_rate, tie_eps) and those of `plaudit.Engine` (url, model,
            endpoints, api_key, max_concurrent, rpm, tpm, budget, timeout, hedge, cache, journal, client,
            observers).
            Reward functions with equal options share one engine.

    Raises:
        ConfigError: there is no such option, no endpoint, or a value makes no sense.
        BatchFailed: the judge will never answer: its key is refused, or there is no such model or route.
    """
    names = [item.name for item in fields(BatchOptions)]
    known = [*signature(reward_function).parameters, *names, "url", *ConfigOptions.__annotations__]
    for name in options:
        check_known(name, [*known, "transport", "ledger"], "option of reward_function")
    batch = BatchOptions(**{name: options.pop(name) for name in names if name in options})
    check_version(batch.on_failure)
    judges: dict[str, Judge | Panel] = {JUDGE: _judge(judge)}
    several = rules if isinstance(rules, Sequence) else [rules]
    ruled, functions = _ruled(several, rule_weights)
    components = [Component(JUDGE, weight=weight, floor=0.0), *ruled]
    check_weight("weight", weight, judges[JUDGE])
    if monitor is not None:
        if isinstance(monitor, type) or not hasattr(monitor, "use"):
            raise ConfigError(
                'is not a monitor; give one like Monitor("It edits the tests.")',
                setting="monitor",
                value=monitor,
            )
        judges[MONITOR] = monitor
        components.append(Component(MONITOR, use=monitor.use, threshold=monitor.threshold, floor=1.0))
    if penalty is not None:
        if isinstance(penalty, type) or not hasattr(penalty, "values"):
            raise ConfigError(
                "is not a penalty; give one like LengthPenalty()", setting="penalty", value=penalty
            )
        components.append(Component(LENGTH, penalty))
    reward = Reward(
        components,
        on_failure=batch.on_failure,
        on_content_failure=batch.on_content_failure,
        max_failure_rate=None,  # FailureWatch counts over more than one small batch
        tie_eps=batch.tie_eps,
    )
    if not isinstance(engine, BaseEngine | None):
        raise ConfigError(
            "is not an engine; give url= and model= instead, or an Engine", setting="engine", value=engine
        )
    if engine is not None and options:
        raise ConfigError(
            f"comes with its own {', '.join(options)}; leave out one or the other", setting="engine"
        )
    made = BatchReward(judges, functions, reward, batch, engine or configure(load({}), **options))
    made.check_judge(is_early=True)
    return made.judged_reward


def _judge(judge: Any) -> Judge | Panel:
    if isinstance(judge, str) and " " in judge and not judge.lower().endswith(JUDGE_FILES):
        raise ConfigError(
            "is not a file that describes a judge; for a rubric write Rubric('Is it correct and brief?')",
            setting="judge",
            value=judge,
        )
    found: Judge | Panel = load_judge(judge) if isinstance(judge, str | os.PathLike) else judge
    check_judge(found, for_rewards=True)
    return found


def _ruled(
    rules: Sequence[Rule | Component], weights: Sequence[float] | None
) -> tuple[list[Component], dict[str, Rule]]:
    """A component for each rule; and those that are functions as TRL would have called them, by name."""
    if weights is not None:
        check_length("rule_weights", weights, len(rules), "rules")
    components: list[Component] = []
    functions: dict[str, Rule] = {}
    for number, rule in enumerate(rules):
        weight = None if weights is None else weights[number]
        if isinstance(rule, Component):
            if weight is not None:
                raise ConfigError(
                    f"is for a Component, which has its own weight: "
                    f"Component({rule.name!r}, ..., weight={weight})",
                    setting=f"rule_weights[{number}]",
                    value=weight,
                )
            components.append(rule)
        elif callable(rule):
            name = getattr(rule, "__name__", type(rule).__name__)
            if name in functions:
                raise ConfigError(f"has {name!r} twice; give each function its own __name__", setting="rules")
            floor = 0.0  # which it never gets: a function's failure is no fault of the response
            components.append(Component(name, weight=1.0 if weight is None else weight, floor=floor))
            functions[name] = rule
        else:
            raise ConfigError(
                "is not a rule; give a TRL reward function, or a Component",
                setting=f"rules[{number}]",
                value=rule,
            )
    return components, functions
