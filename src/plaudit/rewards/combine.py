"""The reward: a weighted sum of named components, with one row for each sample whatever failed.

reward = Reward([
    Component("correct", RuleReward(is_correct)),
    Component("quality", weight=0.5),                    # reads verdicts["quality"]
    Component("length", LengthPenalty(side="over", gate="positive")),
    Component("cheating", use="screen"),                 # reads a monitor's verdicts
])
rewards = reward.combine(samples, verdicts={"quality": ..., "cheating": ...}, lengths=lengths)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np

from plaudit.errors import BatchFailed, ConfigError
from plaudit.rewards.base import Group, RewardSource, Rows
from plaudit.rewards.failure import (
    CONTENT,
    OK,
    SCREENED,
    THIN_GROUP,
    FailurePolicy,
    OnContentFailure,
    OnFailure,
    settle,
)
from plaudit.rewards.groups import Flags, Grouping, Numbers, with_nan, with_none
from plaudit.types import Sample, Status, Verdict
from plaudit.value_check import check_length, check_number

Verdicts = Mapping[str, Sequence[Verdict]]
Use = Literal["add", "penalise", "screen", "observe"]


@dataclass(frozen=True, slots=True)
class Component:
    """One part of a reward: where its value comes from, and what is done with it."""

    name: str
    source: str | RewardSource | None = None
    """A RewardSource, or the name of a list of verdicts; None: the list of the component's own name."""
    weight: float = 1.0
    use: Use = "add"
    """add: weight x value is added. penalise: it is subtracted (a monitor's verdict). screen: a row whose
    value reaches the threshold is left out. observe: a metric only; its failures change no reward."""
    threshold: float = 0.5
    """For use="screen"."""
    floor: float | None = None
    """The lowest value there is; what a failure that the response brought about is worth under
    on_content_failure="floor"."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ConfigError(
                "is not a name; it becomes part of a metric's name", setting="name", value=self.name
            )
        for name in ("weight", "threshold"):
            check_number(f"{name} of {self.name!r}", getattr(self, name))
        if self.floor is not None:
            check_number(f"floor of {self.name!r}", self.floor)
        if self.use not in get_args(Use):
            raise ConfigError(
                f"of {self.name!r} is unknown; use {', '.join(get_args(Use))}", setting="use", value=self.use
            )
        if isinstance(self.source, type) or not (
            self.source is None or isinstance(self.source, str) or hasattr(self.source, "values")
        ):
            raise ConfigError(
                f"of {self.name!r} is not a source; give a RewardSource like RuleReward(fn), "
                "or the name of a list of verdicts",
                setting="source",
                value=self.source,
            )

    @property
    def column(self) -> str | None:
        """The list of verdicts that it reads, if it reads one."""
        return self.source if isinstance(self.source, str) else self.name if self.source is None else None

    @property
    def sign(self) -> float:
        return {"add": self.weight, "penalise": -self.weight}.get(self.use, 0.0)


@dataclass(frozen=True, slots=True)
class RewardRow:
    """What one sample earned, and by what. Every row of a batch has the same components."""

    reward: float | None
    """What the trainer gets; None: nothing to train on."""
    valid: bool
    """Whether there is a reward to train on; 0 advantage is meant for the others."""
    status: str
    """`ok`; the status of the verdict that is missing; `screened`; or `thin_group`: masked with its group."""
    raw: Mapping[str, float | None]
    """Each component's own value."""
    weights: Mapping[str, float]
    """What each value is multiplied by: 0.0 for a component that is only observed or screens."""

    @property
    def weighted(self) -> dict[str, float | None]:
        """What each component adds to the reward."""
        return {
            name: None if value is None else self.weights[name] * value + 0.0  # never -0.0
            for name, value in self.raw.items()
        }

    def flat(self) -> dict[str, float]:
        """Numbers only, under the same keys on every row, as verl's extra information has to be.

        A missing value is 0.0 beside a validity of 0.0: sum the values and divide by the summed validity.
        """
        numbers = {"reward_valid": float(self.valid)}
        for name, value in self.weighted.items():
            numbers[f"{name}_valid"] = float(value is not None)
            numbers[name] = self.raw[name] or 0.0
            numbers[f"{name}_weighted"] = value or 0.0
        return numbers


@dataclass(frozen=True, slots=True)
class Rewards:
    """A batch of rewards, in the order of the samples."""

    rows: tuple[RewardRow, ...]
    groups: tuple[Group, ...]
    groups_masked: int = 0
    """Groups in which too few rewards were there."""
    groups_zero_spread: int = 0
    """Groups of two rewards or more, all alike: they teach nothing."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """Rows with a verdict missing, by its status."""

    @property
    def values(self) -> list[float | None]:
        """What a trainer takes."""
        return [row.reward for row in self.rows]


class Reward:
    """Combines components into one number for each sample."""

    def __init__(
        self,
        components: Sequence[Component],
        *,
        on_failure: OnFailure = "mask",
        on_content_failure: OnContentFailure = "mask",
        max_failure_rate: float | None = 0.2,
        tie_eps: float = 0.0,
    ) -> None:
        """
        on_failure          what a row without a verdict gets: `mask` (None), `group_mean` (no advantage),
                            `raise`, or a number
        on_content_failure  where the response itself may have broken the judge (refused, unreadable,
                            flagged): `mask`, like any other failure, or `floor`, the component's lowest value
        max_failure_rate    a larger share of failures in a batch raises BatchFailed; None: never
        tie_eps             rewards of a group that differ by no more than this all become their mean, so
                            that a penalty of 0.01 does not become the whole advantage of a tied group
        """
        self.policy = FailurePolicy(on_failure, on_content_failure, max_failure_rate, tie_eps)
        self.components = tuple(components)
        if not self.components:
            raise ConfigError('is empty; add at least one, like Component("quality")', setting="components")
        names = Counter(component.name for component in self.components)
        if twice := [name for name, count in names.items() if count > 1]:
            raise ConfigError(f"has {twice[0]!r} twice; give each its own name", setting="components")
        for component in self.components:
            is_judged = component.column is not None and component.use != "observe"
            if on_content_failure == "floor" and is_judged and component.floor is None:
                raise ConfigError(
                    f"of {component.name!r} is missing; on_content_failure='floor' needs the lowest "
                    "value that each judge can give",
                    setting="floor",
                )

    def combine(
        self,
        samples: Sequence[Sample],
        *,
        verdicts: Verdicts | None = None,
        lengths: Sequence[float] | None = None,
        groups: Sequence[Group] | None = None,
    ) -> Rewards:
        """One row for each sample, in order.

        verdicts   by the names that the components read
        lengths    of the responses, in tokens; for length penalties
        groups     one for each sample; by default each sample's own `group`

        Raises BatchFailed where too many verdicts are missing.
        """
        count = len(samples)
        groups = [sample.group for sample in samples] if groups is None else groups
        check_length("groups", groups, count)
        if lengths is not None:
            check_length("lengths", lengths, count)
        verdicts = verdicts or {}
        columns, failed = self._columns(Rows(samples, groups, lengths), verdicts)
        failures = Counter(filter(None, failed))
        self._check(failures, count, verdicts)
        screened = self._screened(columns, count)
        totals = np.where(screened, np.nan, self._sums(columns, count))
        settled = settle(totals, Grouping(groups), self.policy, screened)
        statuses = [
            why or (SCREENED if is_out else THIN_GROUP if is_thin else OK)
            for why, is_out, is_thin in zip(failed, screened.tolist(), settled.is_thin.tolist(), strict=True)
        ]
        valid = (~np.isnan(totals) & ~settled.is_thin).tolist()
        weights = {component.name: component.sign for component in self.components}
        raw = zip(*(with_none(columns[name]) for name in weights), strict=True)
        return Rewards(
            rows=tuple(
                RewardRow(reward, is_valid, status, dict(zip(weights, values, strict=True)), weights)
                for reward, is_valid, status, values in zip(
                    settled.rewards, valid, statuses, raw, strict=True
                )
            ),
            groups=tuple(groups),
            groups_masked=settled.groups_masked,
            groups_zero_spread=settled.groups_zero_spread,
            failures=dict(failures.most_common()),
        )

    def _columns(self, rows: Rows, verdicts: Verdicts) -> tuple[dict[str, Numbers], list[str]]:
        """Each component's values, and for each row the status of the first one missing, or nothing."""
        columns: dict[str, Numbers] = {}
        count = len(rows.samples)
        failed = [""] * count
        for component in sorted(self.components, key=_needs_base):
            if isinstance(component.source, str) or component.source is None:
                column, why = self._judged(component, verdicts, count)
            else:
                if _needs_base(component) and not rows.base:  # they come last, and all see the same base
                    rows = replace(rows, base=with_none(self._sums(columns, count)))
                values = component.source.values(rows)
                check_length(f"what the source of {component.name!r} gave", values, count)
                column = with_nan(values)
                why = dict.fromkeys(np.flatnonzero(np.isnan(column)).tolist(), Status.FAILED.value)
            columns[component.name] = column
            if component.use != "observe":
                for row, status in why.items():
                    failed[row] = failed[row] or status
        return columns, failed

    def _judged(self, component: Component, verdicts: Verdicts, count: int) -> tuple[Numbers, dict[int, str]]:
        name = component.column or ""
        if name not in verdicts:
            raise ConfigError(
                f"is missing; the component {component.name!r} reads it", setting=f"verdicts[{name!r}]"
            )
        given = verdicts[name]
        check_length(f"verdicts[{name!r}]", given, count)
        column = with_nan([verdict.score for verdict in given])
        why = {row: _status(given[row]) for row in np.flatnonzero(np.isnan(column)).tolist()}
        if self.policy.on_content_failure == "floor" and component.floor is not None:
            column[[row for row, status in why.items() if status in CONTENT]] = component.floor
        return column, why

    def _sums(self, columns: Mapping[str, Numbers], count: int) -> Numbers:
        """The weighted sum of these columns for each row; NaN where one that counts is missing."""
        totals = np.zeros(count)
        for component in self.components:
            if component.name in columns and component.use != "observe":
                totals = totals + component.sign * columns[component.name]
        return totals

    def _screened(self, columns: Mapping[str, Numbers], count: int) -> Flags:
        screened = np.zeros(count, dtype=np.bool_)
        for component in self.components:
            if component.use == "screen":
                screened |= columns[component.name] >= component.threshold  # never for NaN
        return screened

    def _check(self, failures: Counter[str], count: int, verdicts: Verdicts) -> None:
        if not self.policy.is_over(failures.total(), count):
            return
        by_status = ", ".join(f"{n} {status}" for status, n in failures.most_common())
        error = most_frequent_error(verdicts)
        first = f'; the most frequent error is "{error}"' if error else ""
        is_strict = self.policy.on_failure == "raise"
        allowed = 0.0 if is_strict else self.policy.max_failure_rate or 0.0
        remedy = "on_failure='mask' or 'group_mean' goes on" if is_strict else "max_failure_rate allows more"
        raise BatchFailed(
            f"{failures.total()} of {count} samples have no verdict ({by_status}), more than the "
            f"{allowed:.0%} allowed{first}; what was judged is stored, so scoring the batch again is cheap; "
            f"{remedy}"
        )


def most_frequent_error(verdicts: Verdicts) -> str:
    """Why most verdicts that are missing are; empty where none says why."""
    errors = Counter(v.error for column in verdicts.values() for v in column if v.error and not v.is_valid)
    return errors.most_common(1)[0][0] if errors else ""


def _needs_base(component: Component) -> bool:
    return bool(getattr(component.source, "needs_base", False))


def _status(verdict: Verdict) -> str:
    """Why there is no score; a judge of the user's own may give NaN and call it a verdict."""
    is_claimed = verdict.status in (Status.OK, Status.EMPTY)
    return Status.UNREADABLE.value if is_claimed else verdict.status.value
