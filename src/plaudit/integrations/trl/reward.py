"""reward_function: a judge, rules and a length penalty as one reward function for TRL.

One function, because TRL adds several up with `nansum`, where a judge without a verdict counts as 0. This one
gives None for such a row, and TRL then leaves it out of its group: advantage 0.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from plaudit.engine import Engine
from plaudit.errors import ConfigError
from plaudit.integrations.trl.batch_reward import JUDGE, LENGTH, MONITOR, BatchReward, RewardFunction, Rule
from plaudit.integrations.trl.shared_engine import check_options
from plaudit.integrations.trl.trainer_facts import check_version
from plaudit.judges import Monitor
from plaudit.judges.base import Judge, Panel
from plaudit.judges.check import check_judge
from plaudit.judges.file import load_judge
from plaudit.rewards import Component, Reward, RewardSource
from plaudit.rewards.failure import OnContentFailure, OnFailure


def reward_function(
    judge: Judge | Panel | str | os.PathLike[str],
    *,
    penalty: RewardSource | None = None,
    rules: Sequence[Rule | Component] = (),
    rule_weights: Sequence[float] | None = None,
    monitor: Monitor | None = None,
    weight: float = 1.0,
    reference: str | None = None,
    num_generations: int | None = None,
    deadline: float | None = 300.0,
    on_failure: OnFailure = "mask",
    on_content_failure: OnContentFailure = "mask",
    max_failure_rate: float | None = 0.2,
    tie_eps: float = 0.0,
    engine: Engine | None = None,
    **options: Any,
) -> RewardFunction:
    """One `async def` for `reward_funcs=` of GRPOTrainer and RLOOTrainer.

    reward = weight x the judge's score, from 0 to 1, + rules - penalty

    judge               a judge, or a file that describes one
    penalty             LengthPenalty(...), SoftOverlong(...) or KimiLength()
    rules               TRL reward functions, or Components of plaudit.rewards, added to the reward
    rule_weights        one for each of the rules, as TRL's reward_weights would be
    monitor             a second look, for unwanted behaviour; its `use` says what becomes of it
    weight              of the judge's score
    reference           the column of the data set with the right answers, for judges that compare
    num_generations     completions for each prompt; by default the trainer's own
    deadline            seconds for a batch, after which what is missing has failed; None: no limit
    on_failure          what a completion without a verdict gets: `mask` (None: no advantage), `group_mean`,
                        `raise`, or a number
    on_content_failure  where the completion itself may have broken the judge: `mask`, or `floor`: the worst
    max_failure_rate    more missing verdicts than this, among the last 200, raise BatchFailed; None: never
    tie_eps             rewards of a group that differ by no more than this become equal
    engine              an Engine of yours; or else its options:
    options             url, model, endpoints, api_key, max_concurrent, rpm, tpm, budget, timeout, hedge,
                        cache, client, observers, as Engine takes them; equal options share one engine

    Nothing starts before the first batch, and everything stops when the process ends.
    """
    check_options(options, own=reward_function)
    check_version(on_failure)
    judges: dict[str, Judge | Panel] = {JUDGE: _judge(judge)}
    ruled = _ruled(rules, rule_weights)
    components = [Component(JUDGE, weight=weight, floor=0.0), *(component for component, _ in ruled)]
    if monitor is not None:
        judges[MONITOR] = monitor
        components.append(Component(MONITOR, use=monitor.use, threshold=monitor.threshold, floor=1.0))
    if penalty is not None:
        components.append(Component(LENGTH, penalty))
    reward = Reward(
        components,
        on_failure=on_failure,
        on_content_failure=on_content_failure,
        max_failure_rate=None,  # FailureWatch counts over more than one small batch
        tie_eps=tie_eps,
    )
    return BatchReward(
        judges,
        {component.name: rule for component, rule in ruled if rule is not None},
        reward,
        reference=reference,
        num_generations=num_generations,
        deadline=deadline,
        max_failure_rate=max_failure_rate,
        engine=engine,
        options=options,
    ).judged_reward


def _judge(judge: Any) -> Judge | Panel:
    found: Judge | Panel = load_judge(judge) if isinstance(judge, str | os.PathLike) else judge
    check_judge(found, for_rewards=True)
    return found


def _ruled(
    rules: Sequence[Rule | Component], weights: Sequence[float] | None
) -> list[tuple[Component, Rule | None]]:
    """A component for each rule, and the function that TRL would have called, where it is one."""
    if weights is not None and len(weights) != len(rules):
        raise ConfigError(
            f"rule_weights has {len(weights)} entries for {len(rules)} rules; give one for each"
        )
    ruled: list[tuple[Component, Rule | None]] = []
    for number, rule in enumerate(rules):
        weight = None if weights is None else weights[number]
        if isinstance(rule, Component):
            if weight is not None:
                raise ConfigError(
                    f"rule_weights[{number}]={weight} is for a Component, which has a weight of its own: "
                    f"Component({rule.name!r}, ..., weight={weight})"
                )
            ruled.append((rule, None))
        elif callable(rule):
            name = getattr(rule, "__name__", type(rule).__name__)
            ruled.append((Component(name, weight=1.0 if weight is None else weight), rule))
        else:
            raise ConfigError(
                f"rules[{number}]={rule!r} is no rule; give a reward function as TRL has them, or a Component"
            )
    return ruled
