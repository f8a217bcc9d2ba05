"""What a row without a verdict becomes: a gap, the mean of its group, a number of the user's, or an error.

A failed verdict is None and never 0.0. In a group of eight whose best answer's call fails, a 0.0 makes the
best answer the worst, and with all the others at -1 it makes the failure the best.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from plaudit.errors import ConfigError
from plaudit.rewards.base import Group
from plaudit.rewards.groups import Codes, Flags, Grouping, Numbers, check_finite, with_none
from plaudit.types import Status

Word = Literal["mask", "group_mean", "raise"]
OnFailure = Word | float
OnContentFailure = Literal["mask", "floor"]

CONTENT = frozenset({Status.REFUSED.value, Status.UNREADABLE.value, Status.FLAGGED.value})
"""Failures that a response can bring about itself: a policy could learn to escape a bad score by them."""
OK = "ok"
SCREENED = "screened"
"""The monitor saw what it watches for, and the row is left out."""
THIN_GROUP = "thin_group"
"""The row has a reward, but too few of its group have one."""
GROUPS_KEPT = 10_000
WINDOW = 200
"""Scores over which the share of missing ones is counted."""


@dataclass(frozen=True, slots=True)
class FailurePolicy:
    """What becomes of rows without a verdict, once the rows with one are known."""

    on_failure: OnFailure = "mask"
    on_content_failure: OnContentFailure = "mask"
    max_failure_rate: float | None = 0.2
    tie_eps: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.on_failure, str):
            if self.on_failure not in get_args(Word):
                raise ConfigError(
                    f"is unknown; use {', '.join(get_args(Word))}, or a number like -1.0",
                    setting="on_failure",
                    value=self.on_failure,
                )
        else:
            check_finite("on_failure", self.on_failure)
        if self.on_content_failure not in get_args(OnContentFailure):
            raise ConfigError(
                "is unknown; use mask or floor", setting="on_content_failure", value=self.on_content_failure
            )
        if self.max_failure_rate is not None:
            check_finite("max_failure_rate", self.max_failure_rate, at_least=0.0)
        check_finite("tie_eps", self.tie_eps, at_least=0.0)

    def is_over(self, failures: int, rows: int) -> bool:
        """Whether so many failures are too many to train on."""
        if self.on_failure == "raise" and failures:
            return True
        return self.max_failure_rate is not None and failures > self.max_failure_rate * rows


@dataclass(frozen=True, slots=True)
class Settled:
    """The rewards of a batch after the policy."""

    rewards: list[float | None]
    is_thin: Flags
    """Rows whose group was masked whole."""
    groups_masked: int
    groups_zero_spread: int


def settle(totals: Numbers, grouping: Grouping, policy: FailurePolicy, is_screened: Flags) -> Settled:
    """Decide what each row gets; NaN in `totals` is a row without a reward of its own.

    A group in which something is missing and fewer than max(2, half) rewards are there is masked whole:
    what is left of it says too little about what is missing. With a number for failures none is.
    """
    is_there = ~np.isnan(totals)
    values = np.where(is_there, totals, 0.0)  # (rows,)
    counts = grouping.counts(is_there)  # (groups,)
    is_thin = (counts < grouping.sizes) & (counts < np.maximum(2, grouping.sizes / 2))
    if not isinstance(policy.on_failure, str):
        is_thin[:] = False
    means = grouping.means(values, is_there)
    is_tied = (grouping.spreads(values, is_there) <= policy.tie_eps) & (counts > 1) & ~is_thin
    values = np.where(is_tied[grouping.codes], means[grouping.codes], values)
    thin = is_thin[grouping.codes]  # (rows,)
    is_kept = is_there & ~thin
    if policy.on_failure in ("mask", "raise"):
        rewards = np.where(is_kept, values, np.nan)
    else:
        rewards = np.where(is_kept, values, _neutral(values, is_there, counts, means)[grouping.codes])
        if not isinstance(policy.on_failure, str):
            rewards[~is_there & ~is_screened] = policy.on_failure
    return Settled(with_none(rewards), thin, int(is_thin.sum()), int(is_tied.sum()))


def _neutral(values: Numbers, is_there: Flags, counts: Codes, means: Numbers) -> Numbers:
    """A reward that makes no advantage: the mean of the group, else of the batch, else 0 for all alike."""
    batch_mean = float(values[is_there].mean()) if is_there.any() else 0.0
    return np.where(counts > 0, means, batch_mean)


class StandIns:
    """What rows without a score get where a trainer takes no gap and shows no whole group. For any thread.

    Only a whole group can make a failed row's advantage exactly zero. Where rows come one at a time, such a
    row gets the mean of its group so far, and waits for a sibling that is being scored just then. Where there
    is no sibling, a failure that the response may have brought about is worth the floor, 0.0, so that it
    never pays; one of the judge's server is worth the mean of its data source.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: OrderedDict[Group, tuple[int, float]] = OrderedDict()
        self._sources: dict[str, tuple[int, float]] = {}
        self._last: deque[bool] = deque(maxlen=WINDOW)
        self._open: Counter[Group] = Counter()
        self._waiting: dict[Group, list[Future[None]]] = {}

    def begin(self, groups: Iterable[Group]) -> None:
        """Note rows that are being scored from now on."""
        with self._lock:
            self._open.update(group for group in groups if group is not None)

    def end(self, groups: Iterable[Group]) -> None:
        """Note that it is known what became of these rows."""
        with self._lock:
            self._open.subtract(group for group in groups if group is not None)
            self._open = +self._open  # without the zeros
            ready = [group for group in self._waiting if group in self._groups or group not in self._open]
            futures = [future for group in ready for future in self._waiting.pop(group)]
        for future in futures:
            future.set_result(None)

    def sibling(self, group: Group) -> Future[None] | None:
        """Done once a row of the group has a score, or none of them is being scored; None: so it is now."""
        with self._lock:
            if group in self._groups or group not in self._open:
                return None
            future: Future[None] = Future()
            future.set_running_or_notify_cancel()  # whoever waits for it may be cancelled, it cannot be
            self._waiting.setdefault(group, []).append(future)
            return future

    def add(self, score: float, *, group: Group, source: str) -> None:
        """Remember a score that is there."""
        with self._lock:
            self._last.append(False)
            self._sources[source] = _with(self._sources.get(source), score)
            if group is not None:
                self._groups[group] = _with(self._groups.pop(group, None), score)
                if len(self._groups) > GROUPS_KEPT:
                    self._groups.popitem(last=False)

    def miss(self) -> int:
        """Remember that a score is missing; how many of the last WINDOW were."""
        with self._lock:
            self._last.append(True)
            return sum(self._last)

    def value(self, status: str, *, group: Group, source: str) -> float:
        """The mean of the group so far; else 0.0 or the mean of the data source, by what caused it."""
        with self._lock:
            known = self._groups.get(group)
            if known is None and (status in CONTENT or status == SCREENED):
                return 0.0
            count, total = known or self._sources.get(source) or (2, 1.0)
        return total / count


def _with(known: tuple[int, float] | None, score: float) -> tuple[int, float]:
    count, total = known or (0, 0.0)
    return count + 1, total + score
