"""Questions to a journal: which records, in which order; what they say together, step by step."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from plaudit.errors import ConfigError
from plaudit.journal.blocks import StoredText
from plaudit.journal.index import Array, JournalIndex

ORDERS = ("time", "unit", "score", "step", "latency_s", "queued_s", "response_chars", "cost", "attempts")
COLUMNS = 120
"""Points of a curve; where there are more steps, neighbours are taken together."""
BINS = 10
"""Of a histogram of scores from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Query:
    """Which records of a journal, and in which order. What is empty lets everything through."""

    run: str = ""
    judge: str = ""
    """Its name in the journal, or the beginning of it."""
    status: str = ""
    """A status; `missing` for everything without a score, `canary` for wrong answers that test the judge."""
    cause: str = ""
    source: str = ""
    steps: str = ""
    """A step, or two with a dash: `40-60`."""
    text: str = ""
    """A pattern to be found in prompt, response, reason, error or a reply."""
    group: str = ""
    """The hash of a group."""
    sample: str = ""
    """The hash of a sample."""
    panel: int = 0
    """The batch of a panel whose questions are wanted; 0: verdicts only, -1: both."""
    order: str = "time"
    is_descending: bool = False

    def rows(self, index: JournalIndex) -> Array:
        """The rows of these records, in order.

        Raises:
            ConfigError: a value makes no sense.
        """
        if self.order not in ORDERS:
            raise ConfigError(f"is no order; use {', '.join(ORDERS)}", setting="sort", value=self.order)
        found = np.flatnonzero(self._mask(index))
        if self.text:
            matches = matcher(self.text)
            found = np.array(
                [row for row in found if any(map(matches, words_of(index.text(int(row)))))], np.int64
            )
        keys = index.facts[self.order][found]
        order = np.argsort(
            np.where(np.isnan(keys), np.inf, keys) if keys.dtype.kind == "f" else keys, kind="stable"
        )
        if self.is_descending:
            order = order[::-1]
            if keys.dtype.kind == "f":  # what has no number stays last
                order = np.concatenate((order[~np.isnan(keys[order])], order[np.isnan(keys[order])]))
        ordered: Array = found[order]
        return ordered

    def _mask(self, index: JournalIndex) -> Array:
        facts = index.facts
        mask = np.ones(len(facts), bool) if self.panel < 0 else facts["panel"] == self.panel
        for name in ("run", "cause", "source"):
            if word := getattr(self, name):
                mask &= facts[name] == index.number_of(word)
        if self.status == "missing":
            mask &= np.isnan(facts["score"])
        elif self.status == "canary":
            mask &= ~np.isnan(facts["canary"])
        elif self.status:
            mask &= facts["status"] == index.number_of(self.status)
        if self.judge:
            fitting = [n for n, word in enumerate(index.words) if word.startswith(self.judge)]
            mask &= np.isin(facts["judge"], fitting)
        if self.steps:
            low, high = _steps(self.steps)
            mask &= (facts["step"] >= low) & (facts["step"] <= high)
        for name in ("group", "sample"):
            if digits := getattr(self, name):
                mask &= facts[name] == _hash(name, digits)
        return mask


def matcher(pattern: str) -> Any:
    """Whether a text has the pattern in it, whatever the case. Raises ConfigError where it is none."""
    try:
        return re.compile(pattern, re.IGNORECASE).search
    except re.error as error:
        raise ConfigError(f"is no pattern: {error}", setting="text", value=pattern) from None


def words_of(text: StoredText) -> Iterator[str]:
    """Everything there is to read about a verdict but the request, which repeats it."""
    if isinstance(text.prompt, str):
        yield text.prompt
    else:
        yield from (str(turn.get("content", "")) for turn in text.prompt)
    yield text.response
    yield text.reason
    yield from (said for one in text.exchanges for said in (one.reply, one.reasoning, one.error) if said)
    if text.error:
        yield text.error


def _steps(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", text)
    if match is None:
        raise ConfigError("is no step; write 40 or 40-60", setting="step", value=text)
    return int(match[1]), int(match[2] or match[1])


def _hash(name: str, digits: str) -> int:
    try:
        return int(digits, 16)
    except ValueError:
        raise ConfigError("is no hash of the journal", setting=name, value=digits) from None


# -- together ---------------------------------------------------------------------------------------------


class _Columns:
    """Facts as one array a column: to choose rows of a few columns is cheaper than of whole records."""

    def __init__(self, columns: dict[str, Array]) -> None:
        self._columns = columns
        self.size = next(iter(columns.values())).size

    def __getitem__(self, name: str) -> Array:
        return self._columns[name]

    def take(self, selection: Any, names: Iterable[str] = ()) -> _Columns:
        """Some of the rows, of some columns; of all where none is named."""
        return _Columns({name: self._columns[name][selection] for name in names or self._columns})


_USED = [
    "time",
    "step",
    "unit",
    "gold",
    "canary",
    "score",
    "group",
    "response_chars",
    "status",
    "source",
    "run",
    "judge",
    "cost",
    "prompt_tokens",
    "completion_tokens",
    "latency_s",
    "queued_s",
    "sends",
]
_OF_A_JUDGE = ("unit", "gold", "status", "group", "step")
_OF_A_STEP = ("unit", "gold", "score", "group", "step", "response_chars")


def overview(index: JournalIndex, rows: Array) -> dict[str, Any]:
    """What these records say together, as plain data. Canaries count apart: the policy wrote none."""
    everything = _Columns({name: index.facts[name][rows] for name in _USED})
    is_canary = ~np.isnan(everything["canary"])
    canaries = everything.take(is_canary, ("score", "canary", "judge"))
    facts = everything.take(~is_canary) if canaries.size else everything
    return {
        "records": int(facts.size),
        "score": _spread(facts["unit"]),
        "gold": _spread(facts["gold"]),
        "by_status": _counts(index, facts["status"]),
        "by_source": _counts(index, facts["source"]),
        "by_run": _counts(index, facts["run"]),
        "missing": _missing(index, rows[~is_canary]),
        "judges": _judges(index, facts, canaries),
        "canaries": _passed(canaries),
        "money": _money(index, everything),
        "latency_s": _percentiles(facts["latency_s"][facts["sends"] > 0]),
        "queued_s": _percentiles(facts["queued_s"][facts["sends"] > 0]),
        "length": _length(facts),
        "trend": _trend(facts),
    }


def _trend(facts: _Columns) -> dict[str, Any]:
    """Curves over the training steps; over time, where the records have no step."""
    if not facts.size:
        return {"by": "step", "x": [], "columns": []}
    has_steps = bool((facts["step"] >= 0).any())
    facts = facts.take(facts["step"] >= 0) if has_steps else facts
    x = facts["step"].astype(float) if has_steps else facts["time"]
    low, high = float(x.min()), float(x.max())
    count = int(min(COLUMNS, high - low + 1)) if has_steps else min(COLUMNS, 60)
    width = (high - low + (1 if has_steps else 1e-6)) / count
    place = np.minimum(((x - low) / width).astype(np.int64), count - 1)
    order = np.argsort(place, kind="stable")
    bounds = np.searchsorted(place[order], np.arange(count + 1))
    facts = facts.take(order, _OF_A_STEP)
    columns = [
        _column(facts.take(slice(start, stop)), low + width * number)
        for number, (start, stop) in enumerate(itertools.pairwise(bounds))
        if stop > start
    ]
    return {"by": "step" if has_steps else "time", "x": [one["x"] for one in columns], "columns": columns}


def _column(facts: _Columns, x: float) -> dict[str, Any]:
    units = facts["unit"][~np.isnan(facts["unit"])]
    flat, groups = _flat_groups(facts)
    return {
        "x": x,
        "records": int(facts.size),
        "missing": int(np.isnan(facts["score"]).sum()),
        "flat": flat,
        "groups": groups,
        **{name: _or_none(value) for name, value in _spread(facts["unit"]).items()},
        "gold": _or_none(_spread(facts["gold"])["mean"]),
        "chars": float(facts["response_chars"].mean()),
        "length_correlation": _correlation(facts["response_chars"], facts["unit"]),
        "histogram": np.histogram(np.clip(units, 0, 1), BINS, (0, 1))[0].tolist(),
    }


def _flat_groups(facts: _Columns) -> tuple[int, int]:
    """Groups whose scores are all the same, which teach nothing; and groups with two scores or more."""
    scored = facts.take(~np.isnan(facts["unit"]), ("unit", "group", "step"))
    if not scored.size:
        return 0, 0
    keys = scored["group"] ^ (scored["step"].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.concatenate(([True], keys[order][1:] != keys[order][:-1])))
    units = scored["unit"][order]
    sizes = np.diff(np.append(starts, units.size))
    spread = np.maximum.reduceat(units, starts) - np.minimum.reduceat(units, starts)
    is_group = sizes >= 2
    return int((is_group & (spread <= 1e-9)).sum()), int(is_group.sum())


def _spread(values: Array) -> dict[str, float | None]:
    known = values[~np.isnan(values)]
    if not known.size:
        return dict.fromkeys(("mean", "std", "p10", "p50", "p90"))
    p10, p50, p90 = np.percentile(known, (10, 50, 90))
    return {
        "mean": float(known.mean(dtype=float)),
        "std": float(known.std(dtype=float)),
        "p10": float(p10),
        "p50": float(p50),
        "p90": float(p90),
    }


def _percentiles(values: Array) -> dict[str, float | None]:
    if not values.size:
        return {"p50": None, "p95": None, "p99": None}
    p50, p95, p99 = np.percentile(values, (50, 95, 99))
    return {"p50": float(p50), "p95": float(p95), "p99": float(p99)}


def _counts(index: JournalIndex, column: Array) -> dict[str, int]:
    counts = np.bincount(column)
    pairs = sorted(((int(counts[number]), number) for number in np.flatnonzero(counts)), reverse=True)
    return {index.words[number]: count for count, number in pairs}


def _missing(index: JournalIndex, rows: Array) -> list[dict[str, Any]]:
    """Why records have no score, the commonest cause first, each with one of its messages."""
    missing = rows[np.isnan(index.facts["score"][rows])]
    found = []
    for cause, count in _counts(index, index.facts["cause"][missing]).items():
        first = missing[index.facts["cause"][missing] == index.number_of(cause)][0]
        text = index.text(int(first))
        found.append(
            {
                "cause": cause,
                "count": count,
                "error": (text.error or "")[:300],
                "id": index.id_of(int(first)),
            }
        )
    return found


def _passed(canaries: _Columns) -> dict[str, int]:
    """Wrong answers that were given a score, and those of them that passed."""
    scores = canaries["score"]
    return {"seen": int((~np.isnan(scores)).sum()), "passed": int((scores >= canaries["canary"]).sum())}


def _judges(index: JournalIndex, facts: _Columns, canaries: _Columns) -> list[dict[str, Any]]:
    found = []
    for name, count in _counts(index, facts["judge"]).items():
        own = facts.take(facts["judge"] == index.number_of(name), _OF_A_JUDGE)
        units = own["unit"][~np.isnan(own["unit"])]
        flat, groups = _flat_groups(own)
        gold = own.take(~np.isnan(own["gold"]) & ~np.isnan(own["unit"]), ("unit", "gold"))
        found.append(
            {
                "judge": name,
                "records": count,
                **_spread(own["unit"]),
                "histogram": np.histogram(np.clip(units, 0, 1), BINS, (0, 1))[0].tolist(),
                "by_status": _counts(index, own["status"]),
                "flat": flat,
                "groups": groups,
                "canaries": _passed(canaries.take(canaries["judge"] == index.number_of(name))),
                "gold_gap": float((gold["unit"] - gold["gold"]).mean()) if gold.size else None,
            }
        )
    return found


def _money(index: JournalIndex, facts: _Columns) -> dict[str, Any]:
    called = facts["source"] == index.number_of("call")
    free = (facts["source"] == index.number_of("cache")) | (facts["source"] == index.number_of("shared"))
    costs = facts["cost"][called & ~np.isnan(facts["cost"])].astype(float)
    return {
        "spent": float(costs.sum()) if costs.size else None,
        "saved": float(costs.mean() * free.sum()) if costs.size else None,
        "calls": int(called.sum()),
        "without_call": int(free.sum()),
        "prompt_tokens": int(facts["prompt_tokens"][called].sum(dtype=np.int64)),
        "completion_tokens": int(facts["completion_tokens"][called].sum(dtype=np.int64)),
    }


def _length(facts: _Columns) -> dict[str, Any]:
    """Scores against the length of responses, in cells."""
    scored = facts.take(~np.isnan(facts["unit"]), ("unit", "response_chars"))
    if not scored.size:
        return {"correlation": None, "edges": [], "cells": []}
    edges = np.unique(np.percentile(scored["response_chars"], np.linspace(0, 100, 13)))
    if edges.size < 2:
        edges = np.array([edges[0], edges[0] + 1])
    cells, _, _ = np.histogram2d(
        scored["response_chars"], np.clip(scored["unit"], 0, 1), (edges, np.linspace(0, 1, BINS + 1))
    )
    return {
        "correlation": _correlation(scored["response_chars"], scored["unit"]),
        "edges": edges.tolist(),
        "cells": cells.astype(int).tolist(),
    }


def _correlation(one: Array, other: Array) -> float | None:
    is_known = ~np.isnan(other)
    first, second = one[is_known].astype(float), other[is_known].astype(float)
    if first.size < 3 or not first.std() or not second.std():
        return None
    return float(np.corrcoef(first, second)[0, 1])


def _or_none(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else value


def compare(index: JournalIndex, one: Iterable[int], other: Iterable[int]) -> dict[str, Any]:
    """Two sets of records over the samples that both have: what changed, where, and by how much."""
    facts = index.facts
    first = {int(facts["sample"][row]): int(row) for row in one}
    second = {int(facts["sample"][row]): int(row) for row in other}
    both = [(first[key], second[key]) for key in first if key in second]
    scored = [
        (a, b, float(facts["unit"][b] - facts["unit"][a]))
        for a, b in both
        if not np.isnan(facts["unit"][a]) and not np.isnan(facts["unit"][b])
    ]
    changes = np.array([change for *_, change in scored])
    moved = sorted((item for item in scored if abs(item[2]) > 1e-9), key=lambda item: -abs(item[2]))
    units = facts["unit"]
    return {
        "samples": len(both),
        "only_first": len(first) - len(both),
        "only_second": len(second) - len(both),
        "scored_in_both": len(scored),
        "changed": len(moved),
        "mean_change": float(changes.mean()) if changes.size else None,
        "mean_absolute_change": float(np.abs(changes).mean()) if changes.size else None,
        "correlation": _correlation(
            np.array([units[a] for a, *_ in scored]), np.array([units[b] for _, b, _ in scored])
        )
        if scored
        else None,
        "lost": sum(bool(not np.isnan(units[a]) and np.isnan(units[b])) for a, b in both),
        "gained": sum(bool(np.isnan(units[a]) and not np.isnan(units[b])) for a, b in both),
        "most_changed": [
            {"first": index.id_of(a), "second": index.id_of(b), "change": change, "rows": (a, b)}
            for a, b, change in moved[:20]
        ],
    }
