"""What a row without a verdict becomes: a gap, the mean of its group, a number of the user's, or an error.

A failed verdict is None and never 0.0. In a group of eight whose best answer's call fails, a 0.0 makes the
best answer the worst, and with all the others at -1 it makes the failure the best.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict, deque
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from plaudit.errors import ConfigError
from plaudit.rewards.base import Group
from plaudit.rewards.groups import Flags, Grouping, Numbers, with_none
from plaudit.types import Status
from plaudit.value_check import check_number, check_value

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
QUIET = 10.0
"""Seconds without a new row of a group, and with none being scored, after which no more is awaited."""
SAME_STEP = 600.0
"""Seconds within which a row that comes after its group was scored belongs to it still."""


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
                words = f"is unknown; use {', '.join(get_args(Word))}, or a number like -1.0"
                raise ConfigError(words, setting="on_failure", value=self.on_failure)
        else:
            check_number("on_failure", self.on_failure)
        check_value("on_content_failure", self.on_content_failure, OnContentFailure)
        if self.max_failure_rate is not None:
            check_number("max_failure_rate", self.max_failure_rate, low=0, high=1)
        check_number("tie_eps", self.tie_eps, low=0)

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
        # What makes no advantage: the mean of the group, else of the batch, else 0 for all alike.
        batch_mean = float(values[is_there].mean()) if is_there.any() else 0.0
        neutral = np.where(counts > 0, means, batch_mean)
        rewards = np.where(is_kept, values, neutral[grouping.codes])
        if not isinstance(policy.on_failure, str):
            rewards[~is_there & ~is_screened] = policy.on_failure
    return Settled(with_none(rewards), thin, int(is_thin.sum()), int(is_tied.sum()))


class StandIns:
    """What rows without a score get where a trainer takes no gap and shows no whole group. For any thread.

    Such a row waits until its siblings are scored, and then gets their mean, which makes its advantage zero;
    while other rows are being scored, or where it is the first of its group, a sibling may come yet, and it
    waits for that a little too.
    A row whose siblings never come gets what its group had the last time that the trainer scored it, else the
    floor, 0.0: a failure never pays. Rows that belong to no group are compared with their batch: one that the
    response itself made fail gets the floor, and one that the judge's server failed the mean of its data
    source.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._size = 1
        self._calls = 0
        """Being scored now, each of one row or several."""
        self._has_overlapped = False
        """Whether there were ever two of them: else a caller scores one row after another."""
        self._live: OrderedDict[Group, _Round] = OrderedDict()
        self._done: OrderedDict[Group, _Round] = OrderedDict()
        self._sources: dict[str, tuple[int, float]] = {}
        self._last: deque[bool] = deque(maxlen=WINDOW)

    def begin(self, groups: Iterable[Group], *, now: float) -> None:
        """Note rows that are being scored from now on."""
        with self._lock:
            while self._live and self._retire(next(iter(self._live)), now):
                pass  # the one that changed longest ago comes first
            for group in groups:
                if group is not None:
                    found = self._round(group, now)
                    found.begun += 1
                    found.open += 1
            self._calls += 1
            self._has_overlapped |= self._calls > 1

    def end(self, groups: Iterable[Group], *, now: float) -> None:
        """Note that it is known what became of these rows."""
        with self._lock:
            ended = [self._round(group, now) for group in groups if group is not None]
            for found in ended:
                found.open -= 1
            self._calls -= 1
            changed = ended if self._calls else self._live.values()
            futures: list[Future[None]] = []
            for found in changed:  # a group may come more than once
                futures += found.waiting
                found.waiting = []
        for future in futures:
            future.set_result(None)

    def siblings(self, group: Group, *, now: float) -> tuple[Future[None], float] | None:
        """None once the group is scored; else what ends at its next change, and seconds to a new look."""
        with self._lock:
            found = self._live.get(group)
            if found is None:
                return None
            is_first = self._has_overlapped and found.begun == 1  # its siblings are being generated
            is_whole = found.begun >= self._size > 1 or not (self._calls or is_first)
            rest = math.inf if found.open else found.last + (0.0 if is_whole else QUIET) - now
            if rest <= 0:
                return None
            future: Future[None] = Future()
            future.set_running_or_notify_cancel()  # the one that waits for it may be cancelled, it cannot be
            found.waiting.append(future)
            return future, rest

    def add(self, score: float, *, group: Group, source: str) -> None:
        """Remember a score that is there."""
        with self._lock:
            self._last.append(False)
            if group is None:
                count, total = self._sources.get(source, (0, 0.0))
                self._sources[source] = count + 1, total + score
            elif found := self._live.get(group):
                found.scores.append(score)

    def miss(self) -> int:
        """Remember that a score is missing; how many of the last WINDOW were."""
        with self._lock:
            self._last.append(True)
            return sum(self._last)

    def value(self, status: str, *, group: Group, source: str) -> float:
        """The mean of the group, or the floor; without groups the mean of the data source, or the floor."""
        with self._lock:
            if group is not None:
                found = self._live.get(group) or self._done.get(group)
                mean = found.mean if found else None
                return 0.0 if mean is None else mean
            if status in CONTENT or status == SCREENED:
                return 0.0
            count, total = self._sources.get(source, (2, 1.0))
            return total / count

    def _round(self, group: Group, now: float) -> _Round:
        """The rows of the group that are scored together, one that begins or ends now among them."""
        self._retire(group, now)
        found = self._live.get(group)
        if found is None:
            known = self._done.pop(group, None)
            if known is not None and known.goes_on(now, self._size):
                found = known  # a sibling that came late
            else:
                found = _Round(before=known.mean if known else None)
            self._live[group] = found
        self._live.move_to_end(group)
        found.last = now
        return found

    def _retire(self, group: Group, now: float) -> bool:
        """Lay a group aside if it rests or is whole; the largest of these says how many rows a group has."""
        found = self._live.get(group)
        if found is None or found.open:
            return False
        if now - found.last < QUIET and not found.begun >= self._size > 1:
            return False
        self._done[group] = self._live.pop(group)
        self._size = max(self._size, found.begun)
        if len(self._done) > GROUPS_KEPT:
            self._done.popitem(last=False)
        return True


@dataclass(slots=True)
class _Round:
    """The rows of one group in one step of the trainer."""

    before: float | None = None
    """The mean of the group in the step in which it came last."""
    begun: int = 0
    open: int = 0
    last: float = 0.0
    """When a row began or ended."""
    scores: list[float] = field(default_factory=list)
    waiting: list[Future[None]] = field(default_factory=list)

    @property
    def mean(self) -> float | None:
        return math.fsum(self.scores) / len(self.scores) if self.scores else self.before

    def goes_on(self, now: float, size: int) -> bool:
        """Whether a row that begins now is a sibling, and not the same prompt in a later step."""
        return now - self.last < SAME_STEP and not self.begun >= size > 1
