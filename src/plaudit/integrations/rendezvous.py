"""Where the members of a group meet: each brings something, and all leave with what everybody brought.

A trainer may hand the answers to one prompt to different workers, one at a time, while a reward may need all
of them (a median length, a group mean). There is no leader: everybody gets the same mapping, and works out
the same group from it.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from typing import Any, TypeVar

from plaudit.errors import ConfigError
from plaudit.value_check import ABOVE_0, check_number

T = TypeVar("T")

LULL = 120.0
"""Seconds without a new member after which a group that others were quicker to fill is no longer awaited."""
SLOWER = 4.0
"""How many times slower than the slowest complete group of its size one may be, from its first member on."""
REMEMBERED = 4096
"""Groups kept after they have parted, for members that come late or come again."""


class Rendezvous:
    """Groups by name, on one event loop. A name is used once: verl's `uid` is, a row number is not."""

    def __init__(self, *, remembered: int = REMEMBERED) -> None:
        self._gathering: dict[str, _Group] = {}
        self._parted: dict[str, dict[str, Any]] = {}
        self._remembered = remembered
        self._longest: dict[int, float] = {}
        """For groups of each size, the longest from the first member to the last."""

    async def gather(self, group: str, member: str, payload: T, *, size: int, timeout: float) -> dict[str, T]:
        """What each member brought, sorted by member: the same for all who wait.

        It comes once `size` members are there, or `timeout` seconds after the first came: then with those who
        came. It comes sooner where other groups of this size were complete much sooner: a member that was
        lost on its way does not hold up the rest. A member that comes after that gets what was there and
        itself, at once. A member that comes twice (a task that was retried) counts once: before the group
        parts its second payload holds, afterwards its first.
        """
        check_number("size", size, low=1)
        check_number("timeout", timeout, low=ABOVE_0, high=math.inf)
        if (parted := self._parted.get(group)) is not None:
            parted.setdefault(member, payload)
            return _sorted(parted)
        loop = asyncio.get_running_loop()
        gathering = self._gathering.get(group)
        if gathering is None:
            gathering = self._gathering[group] = _Group(size, begun=loop.time())
        elif gathering.size != size:
            raise ConfigError(
                f"of {member!r} differs: group {group!r} is waiting for {gathering.size} members; "
                "give every member the same size",
                setting="size",
                value=size,
            )
        gathering.came[member] = payload
        if len(gathering.came) >= size:
            self._longest[size] = max(self._longest.get(size, 0.0), loop.time() - gathering.begun)
            self._part(group)
        else:
            self._set_alarm(group, gathering, timeout)
        await gathering.parted.wait()
        return _sorted(gathering.came)

    def __len__(self) -> int:
        """How many groups are still waiting for somebody."""
        return len(self._gathering)

    def _set_alarm(self, group: str, gathering: _Group, timeout: float) -> None:
        """Part in the end without those who do not come."""
        loop = asyncio.get_running_loop()
        if gathering.alarm is not None:
            gathering.alarm.cancel()
        known = self._longest.get(gathering.size)
        lull = math.inf if known is None else max(LULL, SLOWER * known)
        if (at := min(gathering.begun + timeout, loop.time() + lull)) != math.inf:
            gathering.alarm = loop.call_at(at, self._part, group)

    def _part(self, group: str) -> None:
        gathering = self._gathering.pop(group)
        if gathering.alarm is not None:
            gathering.alarm.cancel()
        gathering.parted.set()
        self._parted[group] = dict(gathering.came)  # a copy: who is late must not change what others got
        while len(self._parted) > self._remembered:
            del self._parted[next(iter(self._parted))]


@dataclass(slots=True)
class _Group:
    """Those who came so far, and those who wait."""

    size: int
    begun: float
    came: dict[str, Any] = field(default_factory=dict)
    parted: asyncio.Event = field(default_factory=asyncio.Event)
    alarm: asyncio.TimerHandle | None = None


def _sorted(came: dict[str, T]) -> dict[str, T]:
    return dict(sorted(came.items()))
