"""What a missing verdict does to advantages, in every framework: a group of 8, with 1 and with 4 lost.

python benchmarks/advantages.py            own code of the frameworks that are installed, else their formula
python benchmarks/advantages.py --formulas their formulas only

The rewards come from what plaudit's adapters are made of, with a judge that fails on some rows; advantages
from the framework's own function where it can be imported, with whole groups. Siblings are "unchanged" where
they have the advantage that they would have had without the lost rows; else the table says by what it is
multiplied, or how far it is off.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import logging
import math
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

from table import show

from plaudit import Rubric
from plaudit.errors import RequestRefused
from plaudit.integrations.scored import Scored, sample_of
from plaudit.integrations.slime import normalised
from plaudit.types import ChatRequest, Reply, Sample

REWARDS = (0.9, 0.2, 0.6, 0.4, 1.0, 0.1, 0.7, 0.3)
LOST = {1: (4,), 4: (0, 3, 4, 5)}
"""Which rows of the group have no verdict; the best of all is among them."""
APART = 0.05
"""Seconds between two verdicts."""
Row = float | None
"""A reward; None for a row that the framework leaves out."""
Fill = Callable[[Sequence[Row]], list[Row]]
Advantages = Callable[[Sequence[Row]], list[float]]


# -- what a missing verdict becomes -----------------------------------------------------------------------


def left_out(rewards: Sequence[Row]) -> list[Row]:
    """The row is not in the batch, or NaN."""
    return list(rewards)


def group_mean(rewards: Sequence[Row]) -> list[Row]:
    """The group is scored at once: the row gets the mean of those that were judged."""
    return [float(score) for score in asyncio.run(_scored().arewards(_samples(rewards)))]


def fails_last(rewards: Sequence[Row]) -> list[Row]:
    """Rows are scored one by one, all under way at once, and those that are lost fail last, after retries."""
    return list(_one_by_one(tuple(rewards), is_first=False))


def fails_first(rewards: Sequence[Row]) -> list[Row]:
    """The same, and those that are lost fail before any verdict."""
    return list(_one_by_one(tuple(rewards), is_first=True))


@functools.cache
def _one_by_one(rewards: tuple[Row, ...], *, is_first: bool) -> tuple[Row, ...]:
    scored = _scored(fails_first=is_first)

    async def main() -> tuple[Row, ...]:
        scores = await asyncio.gather(*(scored.arewards([sample]) for sample in _samples(rewards)))
        return tuple(float(score) for (score,) in scores)

    return asyncio.run(main())


def _samples(rewards: Sequence[Row]) -> list[Sample]:
    said = [
        "lost" if value is None else f"number {row} is worth {value}" for row, value in enumerate(rewards)
    ]
    return [sample_of("Why?", f"{text} ({row})", group="0") for row, text in enumerate(said)]


def _scored(*, fails_first: bool = True) -> Scored:
    return Scored(
        Rubric("Is it good?", scale=(0, 1), integer=False),
        max_failure_rate=1.0,
        url="http://judge.test/v1",
        model="m",
        cache=None,
        hedge=False,
        transport=lambda _: Failing(fails_first),
    )


class Failing:
    """A transport that gives verdicts one after another, and fails on what is lost before or after them."""

    def __init__(self, is_first: bool) -> None:
        self._is_first = is_first

    async def send(self, request: ChatRequest) -> Reply:
        text = request.messages[-1]["content"]
        if "lost (" in text:
            await asyncio.sleep(0.0 if self._is_first else APART * 10)
            raise RequestRefused("the request is too long")
        row, worth = re.findall(r"number (\d) is worth ([\d.]+)", text)[0]
        await asyncio.sleep(APART * (1 + int(row)))
        return Reply(f'{{"reason": "so it says", "score": {worth}}}')

    async def close(self) -> None:
        """Nothing to free."""


# -- advantages -------------------------------------------------------------------------------------------


def centred(rewards: Sequence[Row]) -> list[float]:
    """reward - mean"""
    return _normalised(rewards, lambda _: 1.0, 0.0)


def scaled(rewards: Sequence[Row], eps: float = 1e-6) -> list[float]:
    """(reward - mean) / (std + eps)"""
    return _normalised(rewards, statistics.stdev, eps)


def scaled_by_population(rewards: Sequence[Row], eps: float = 1e-6) -> list[float]:
    """The same, with the standard deviation of a population"""
    return _normalised(rewards, statistics.pstdev, eps)


def _normalised(
    rewards: Sequence[Row], spread: Callable[[Sequence[float]], float], eps: float
) -> list[float]:
    there = [value for value in rewards if value is not None]
    mean, divisor = statistics.mean(there), spread(there) + eps
    return [0.0 if value is None else (value - mean) / divisor for value in rewards]


def trl(rewards: Sequence[Row]) -> list[float]:
    import torch
    from trl.trainer.utils import nanstd

    values = torch.tensor([[math.nan if value is None else value for value in rewards]])
    away = values - torch.nanmean(values, dim=1, keepdim=True)
    return torch.nan_to_num(away / (nanstd(values, dim=1).unsqueeze(1) + 1e-4), nan=0.0)[0].tolist()


def verl(rewards: Sequence[Row]) -> list[float]:
    import numpy as np
    import torch
    from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage

    there = [value for value in rewards if value is not None]
    found, _ = compute_grpo_outcome_advantage(
        torch.tensor(there).unsqueeze(1), torch.ones(len(there), 1), np.zeros(len(there), dtype=object)
    )
    return _back(rewards, found[:, 0].tolist())


def tinker_cookbook(rewards: Sequence[Row]) -> list[float]:
    from tinker_cookbook.rl.data_processing import compute_advantages
    from tinker_cookbook.rl.types import Trajectory, TrajectoryGroup

    group = TrajectoryGroup([Trajectory([], None) for _ in rewards], list(rewards), [])
    return compute_advantages([group])[0].tolist()


def art(rewards: Sequence[Row]) -> list[float]:
    from art.tinker_native.data import compute_advantages

    return _back(rewards, compute_advantages([value for value in rewards if value is not None]))


def areal(rewards: Sequence[Row]) -> list[float]:
    import torch
    from areal.api.cli_args import NormConfig
    from areal.utils.data import Normalization

    asyncio.set_event_loop_policy(None)  # AReaL installs uvloop, on which ART cannot be imported
    config = NormConfig(mean_level="group", std_level="group", group_size=len(rewards))
    return Normalization(config)(torch.tensor(list(rewards))).tolist()


def atropos(rewards: Sequence[Row]) -> list[float]:
    from example_trainer.data import pad_data_to_good_offset

    rows = range(len(rewards))
    item = {"tokens": [[1, 2] for _ in rows], "masks": [[-100, 2] for _ in rows], "scores": list(rewards),
            "overrides": None, "generation_params": None, "group_overrides": None}  # fmt: skip
    _, _, found, *_ = pad_data_to_good_offset(
        {"batch": [item]}, len(rewards), extract_inference_logprobs=False
    )
    return found[0].flatten().tolist()


def slime(rewards: Sequence[Row]) -> list[float]:
    """What `--custom-reward-post-process-path plaudit.integrations.slime.post_process` hands to slime"""
    args = SimpleNamespace(
        advantage_estimator="grpo", rewards_normalization=True, grpo_std_normalization=True
    )
    rows = [
        SimpleNamespace(
            group_index=0, remove_sample=value is None, get_reward_value=lambda _, value=value: value or 0.0
        )
        for value in rewards
    ]
    return normalised(args, rows)[1]


def _back(rewards: Sequence[Row], found: Sequence[float]) -> list[float]:
    """The advantages of the rows that were there, each in its place; 0 for the others."""
    rest = iter(found)
    return [0.0 if value is None else next(rest) for value in rewards]


# -- the frameworks ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Framework:
    """How one takes rows, and what it makes of them."""

    name: str
    arrives: str
    becomes: str
    fill: Fill
    formula: Advantages
    own: Advantages | None = None
    is_out_of_loss: bool = False
    """Whether a failed row has no part in the loss, whatever its advantage."""


BY_GROUP, SINGLY = "a group at once", "one at a time"
FRAMEWORKS = (
    Framework("verl, V1 trainers", SINGLY, "left out", left_out, scaled, verl),
    Framework("verl, before V1", SINGLY, "its group's mean", group_mean, scaled, verl),
    Framework("TRL", "a rank's part of a batch", "None: left out", left_out, lambda r: scaled(r, 1e-4), trl),
    Framework("OpenEnv under TRL", "a step", "None: left out", left_out, lambda r: scaled(r, 1e-4), trl),
    Framework("OpenRLHF, reinforce_baseline", SINGLY, "its group's mean", fails_last, centred),
    Framework("OpenRLHF, group_norm", SINGLY, "its group's mean", fails_last, lambda r: scaled(r, 1e-9)),
    Framework("slime, our normalisation", "one or a group at a time", "left out", left_out, slime),
    Framework("slime, its own", SINGLY, "its group's mean, out of the loss", fails_last, scaled, None, True),
    Framework("verifiers v1, prime-rl", SINGLY, "left out", left_out, centred),
    Framework("verifiers, Rubric", BY_GROUP, "its group's mean", group_mean, centred),
    Framework("ms-swift", "a process's part", "its group's mean", group_mean, lambda r: scaled(r, 1e-4)),
    Framework(
        "AReaL",
        SINGLY,
        "its group's mean, out of the loss",
        fails_last,
        lambda r: scaled(r, 1e-5),
        areal,
        True,
    ),
    Framework("SkyRL", SINGLY, "its group's mean", fails_last, scaled),
    Framework("open-instruct", SINGLY, "its group's mean", fails_last, centred),
    Framework("ART", BY_GROUP, "left out", left_out, scaled, art),
    Framework(
        "Atropos", BY_GROUP, "its group's mean, advantage 0", group_mean,
        lambda r: scaled_by_population(r, 0.0), atropos, True,
    ),
    Framework("Tinker cookbook", BY_GROUP, "its group's mean", group_mean, centred, tinker_cookbook),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measured:
    """What happened to a group."""

    failed: float
    """The largest advantage of a row without a verdict, by amount; 0 where it is out of the loss."""
    factor: float | None
    """By what the siblings' advantages are multiplied; None where they are moved as well."""
    shift: float
    """The most that a sibling's advantage is off."""


def measure(framework: Framework, fill: Fill, lost: int, advantages: Advantages) -> Measured:
    """Lose so many verdicts of the group, and compare with the judged rows alone."""
    rows = [None if row in LOST[lost] else value for row, value in enumerate(REWARDS)]
    found = advantages(fill(rows))
    alone = iter(advantages([value for value in rows if value is not None]))
    pairs = [(found[row], next(alone)) for row, value in enumerate(rows) if value is not None]
    factors = [got / wanted for got, wanted in pairs if abs(wanted) > 1e-9]
    is_one = max(factors) - min(factors) < 1e-3
    failed = max((found[row] for row in LOST[lost]), key=abs)
    return Measured(
        0.0 if framework.is_out_of_loss or abs(failed) < 1e-5 else failed,
        statistics.mean(factors) if is_one else None,
        max(abs(got - wanted) for got, wanted in pairs),
    )


def code_of(framework: Framework, *, only_formulas: bool = False) -> tuple[Advantages, str]:
    """The framework's own function where it is installed, else its formula; and which of the two."""
    if framework.own is not None and not only_formulas:
        try:
            framework.own(REWARDS)
        except ImportError:
            pass
        else:
            return framework.own, "its formula, its `nanstd`" if framework.own is trl else "its own code"
    return framework.formula, "its formula"


def lines(frameworks: Sequence[Framework] = FRAMEWORKS, *, only_formulas: bool = False) -> list[list[str]]:
    """The table's rows."""
    made = []
    for framework in frameworks:
        advantages, source = code_of(framework, only_formulas=only_formulas)
        cells = [framework.name, framework.arrives, framework.becomes]
        for lost in LOST:
            found = [measure(framework, fill, lost, advantages) for fill in ways(framework)]
            cells += [_either(f"{one.failed + 0.0:.2f}" for one in found), _either(map(siblings, found))]
        made.append([*cells, source])
    return made


def ways(framework: Framework) -> list[Fill]:
    """What a missing verdict may become there: it depends on when it is known."""
    return [framework.fill, fails_first] if framework.fill is fails_last else [framework.fill]


def _either(cells: Iterable[str]) -> str:
    usual, *others = cells
    return usual if all(other == usual for other in others) else f"{usual} ({others[0]})"


def siblings(found: Measured) -> str:
    """What became of the other rows, in words."""
    if found.factor is None:
        return f"off by up to {found.shift:.2f}"
    return "unchanged" if abs(found.factor - 1) < 1e-3 else f"x {found.factor:.2f}"


HEADER = ("framework", "rows arrive", "a missing verdict", "1 of 8 lost: its advantage", "siblings",
          "4 of 8 lost: its advantage", "siblings", "advantages by")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--formulas", action="store_true", help="use no framework's own code")
    options = parser.parse_args()
    logging.getLogger("plaudit").setLevel(logging.ERROR)  # verdicts are missing on purpose
    show("What a missing verdict does to a group of 8", HEADER, lines(only_formulas=options.formulas))


if __name__ == "__main__":
    main()
