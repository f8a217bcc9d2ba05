"""Several ranks of a training: each keeps its part of the limits, and they work out the rewards together.

TRL cuts a generation batch into equal parts, one for each rank, and a group may lie across two of them. What
a group decides (whether enough of it was judged, its mean, its median length) is decided here over the whole
batch, on every rank alike. So is whether too much has failed: no rank goes on to wait for one that has ended.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from plaudit.config import Endpoint, EngineConfig
from plaudit.errors import ConfigError
from plaudit.integrations.trl.samples import groups_of
from plaudit.rewards import Reward, Rewards, Rows
from plaudit.types import Sample, Verdict

log = logging.getLogger("plaudit")

Verdicts = Mapping[str, Sequence[Verdict]]
LENGTH = "length"
"""The component that looks at the lengths of a group."""
COUNTED = ("max_concurrent", "rpm", "tpm")
_last_turn: asyncio.Event | None = None
_channel: Any = None


@dataclass(frozen=True, slots=True)
class RankRows:
    """What the other ranks have to know of the rows of one."""

    prompts: list[str]
    """A digest of each row's prompt."""
    verdicts: dict[str, list[Verdict]]
    values: dict[str, list[float | None]]
    """By component, where its value comes from the row itself."""
    lengths: list[int] | None


@dataclass(frozen=True, slots=True)
class CombinedRewards:
    """The rewards of the whole batch, and which of its rows are this rank's."""

    everywhere: Rewards
    verdicts: Verdicts
    """By judge and rule, of all ranks."""
    rows: slice

    @property
    def here(self) -> Rewards:
        whole = self.everywhere
        return replace(whole, rows=whole.rows[self.rows], groups=whole.groups[self.rows])


@contextmanager
def turn() -> Iterator[asyncio.Event | None]:
    """Take a place in the order in which calls begin, the same on every rank: the end of the one before."""
    global _last_turn  # noqa: PLW0603 - ranks are a matter of the process
    before, done = _last_turn, asyncio.Event()
    _last_turn = done
    try:
        yield before
    finally:
        done.set()


def rank_and_count() -> tuple[int, int]:
    """This process's rank and how many there are; (0, 1) where nothing is distributed."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


def rank_share(config: EngineConfig) -> EngineConfig:
    """A rank's part of every limit, so that all ranks together keep it. Ranks have equally many rows."""
    rank, count = int(os.environ.get("RANK") or 0), int(os.environ.get("WORLD_SIZE") or 1)
    if count <= 1:
        return config
    limits = {name: getattr(config, name) for name in (*COUNTED, "budget")}
    if limits := {name: limit for name, limit in limits.items() if limit is not None}:
        log.info(
            "each of %d ranks has its part of %s", count, ", ".join(f"{n}={v}" for n, v in limits.items())
        )
    endpoints = tuple(replace(one, **_parts(one, rank, count)) for one in config.endpoints)
    budget = None if config.budget is None else config.budget / count
    return replace(config, **_parts(config, rank, count), budget=budget, endpoints=endpoints)


def _parts(limited: EngineConfig | Endpoint, rank: int, count: int) -> dict[str, Any]:
    """This rank's part of the limits that are whole numbers; the first ranks have one more."""
    parts: dict[str, Any] = {}
    for name in COUNTED:
        limit = getattr(limited, name)
        if limit is not None and limit < count:
            raise ConfigError(
                f"is less than one for each of the {count} ranks; start one `plaudit serve` with this limit, "
                "and give reward_function its URL without a limit",
                setting=name,
                value=limit,
            )
        if limit is not None:
            parts[name] = limit // count + (rank < limit % count)
    return parts


async def combine(
    reward: Reward,
    samples: Sequence[Sample],
    *,
    verdicts: Verdicts,
    lengths: Sequence[int] | None,
    generations: int | None,
    before: asyncio.Event | None,
) -> CombinedRewards:
    """The rewards of the whole batch, the same on every rank. Each rank has to call it, in its `turn`."""
    rank, count = rank_and_count()
    if count == 1:
        rewards = reward.combine(samples, verdicts=verdicts, lengths=lengths)
        return CombinedRewards(rewards, verdicts, slice(0, len(samples)))
    mine = _rows_here(reward, samples, verdicts, lengths)
    if before is not None:
        await before.wait()
    parts = await asyncio.to_thread(_all_gather, mine)
    values = {name: [value for part in parts for value in part.values[name]] for name in parts[0].values}
    joined = {name: [v for part in parts for v in part.verdicts[name]] for name in verdicts}
    digests = [digest for part in parts for digest in part.prompts]
    components = [
        replace(one, source=_Values(values[one.name])) if one.name in values else one
        for one in reward.components
    ]
    rewards = Reward(components, **asdict(reward.policy)).combine(
        [Sample(prompt="", response="") for _ in digests],
        verdicts=joined,
        lengths=None if lengths is None else [size for part in parts for size in part.lengths or ()],
        groups=groups_of(digests, generations),
    )
    start = sum(len(part.prompts) for part in parts[:rank])
    return CombinedRewards(rewards, joined, slice(start, start + len(samples)))


def _rows_here(
    reward: Reward, samples: Sequence[Sample], verdicts: Verdicts, lengths: Sequence[int] | None
) -> RankRows:
    rows = Rows(samples, [sample.group for sample in samples], lengths)
    own = [(one.name, one.source) for one in reward.components if one.name != LENGTH]
    return RankRows(
        [hashlib.sha256(repr(sample.prompt).encode("utf-8", "replace")).hexdigest() for sample in samples],
        {name: [replace(verdict, reason="") for verdict in column] for name, column in verdicts.items()},
        {name: list(source.values(rows)) for name, source in own if not isinstance(source, str | None)},
        None if lengths is None else list(lengths),
    )


@dataclass(frozen=True, slots=True)
class _Values:
    """Values that are known already, as a source of a reward."""

    known: Sequence[float | None]
    needs_base: bool = False

    def values(self, rows: Rows) -> Sequence[float | None]:  # noqa: ARG002 - the protocol's
        return self.known


def _all_gather(mine: RankRows) -> list[RankRows]:
    """What every rank brought. Over gloo: a thread of its own knows nothing of the trainer's GPU."""
    from torch import distributed

    global _channel  # noqa: PLW0603 - one for the process
    if _channel is None:
        _channel = distributed.new_group(backend="gloo")
    found: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(found, mine, group=_channel)
    return found
