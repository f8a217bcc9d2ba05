"""Questions to a journal: which records, in which order; what they say together, step by step."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from plaudit.errors import ConfigError
from plaudit.journal.blocks import StoredText
from plaudit.journal.findings import findings
from plaudit.journal.index import Array, JournalIndex

ORDERS = ("time", "unit", "score", "step", "latency_s", "queued_s", "response_chars", "cost", "attempts")
COLUMNS = 120
"""Points of a curve; where there are more steps, neighbours are taken together."""
BINS = 10
"""Of a histogram of scores from 0 to 1."""
MOST_JUDGES = 6
"""Judges with a histogram of their own for each step: those with the most verdicts."""
MESSAGES = 3
"""Messages of a cause that are shown: the commonest."""
READ_FOR_MESSAGES = 1000
"""Records without a score whose messages are counted: the newest."""


@dataclass(frozen=True, slots=True)
class Query:
    """Which records of a journal, and in which order. What is empty lets everything through."""

    run: str = ""
    judge: str = ""
    """Its name in the journal, or the beginning of it."""
    status: str = ""
    """A status; `missing` for everything without a score, `canary` for wrong answers that test the judge."""
    cause: str = ""
    steps: str = ""
    """A step, or two with a dash: `40-60`."""
    text: str = ""
    """A pattern to be found in prompt, response, reason, error or a reply."""
    group: str = ""
    """The hash of a group."""
    sample: str = ""
    """The hash of a sample."""
    order: str = "time"
    is_descending: bool = False

    def rows(self, index: JournalIndex) -> Array:
        """The rows of these records, in order.

        Raises:
            ConfigError: a value makes no sense.
        """
        if self.order not in ORDERS:
            raise ConfigError(
                f"is not a sort order; use {', '.join(ORDERS)}", setting="sort", value=self.order
            )
        found = np.flatnonzero(self._mask(index))
        if self.text:
            has = _finder(self.text)
            texts = map(index.text, found.tolist())
            found = found[np.array([any(map(has, words_of(text))) for text in texts], bool)]
        if self.is_descending:
            found = found[::-1]
        keys = index.facts[self.order][found].astype(float)
        order = np.argsort(-keys if self.is_descending else keys, kind="stable")  # what has no number, last
        ordered: Array = found[order]
        return ordered

    def _mask(self, index: JournalIndex) -> Array:
        facts = index.facts
        mask: Array = facts["panel"] == 0  # verdicts only, no questions of a panel
        for name in ("run", "cause"):
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


def matcher(pattern: str, *, setting: str = "text") -> Any:
    """Whether a text has the pattern in it, whatever the case. Raises ConfigError where it is none."""
    try:
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # about `[[`, for programmers
            return re.compile(pattern, re.IGNORECASE).search
    except re.error as error:
        raise ConfigError(f"is not a regular expression: {error}", setting=setting, value=pattern) from None


_LITERAL = re.compile(r"(?:[^\\.^$*+?{}\[\]|()]|\\\W)+", re.ASCII)


def _finder(pattern: str) -> Any:
    """The same where nobody asks for the place: plain words are found in half the time."""
    if not (pattern.isascii() and _LITERAL.fullmatch(pattern)):
        return matcher(pattern)
    plain = re.sub(r"\\(\W)", r"\1", pattern).lower()
    return lambda text: plain in text.lower()


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
        raise ConfigError("is not a step; write 40 or 40-60", setting="step", value=text)
    low, high = int(match[1]), int(match[2] or match[1])
    if low > high:
        raise ConfigError(f"begins after its end; write {high}-{low}", setting="step", value=text)
    return low, high


def _hash(name: str, digits: str) -> int:
    try:
        return int(digits, 16)
    except ValueError:
        raise ConfigError("is not a hash of the journal", setting=name, value=digits) from None


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


_OF_A_JUDGE = ("unit", "gold", "status", "group", "step")
_OF_A_STEP = (
    *("unit", "gold", "score", "group", "step", "response_chars", "status"),
    *("latency_s", "queued_s", "sends", "cost", "source"),
)
_USED = (*_OF_A_STEP, "time", "canary", "run", "judge", "prompt_tokens", "completion_tokens", "late")
_UNSOUND = ("unreadable", "refused", "flagged")
"""What says that a judge could not judge, or found that it was being talked to."""


def overview(index: JournalIndex, rows: Array) -> dict[str, Any]:
    """What these records say together, as plain data.

    Canaries count apart: the policy wrote none. Of what came after a deadline only the cost counts: the
    caller got none of it, and was told so, which is a record of its own.
    """
    everything = _Columns({name: index.facts[name][rows] for name in _USED})
    in_time = everything["late"] == 0
    is_canary = ~np.isnan(everything["canary"]) & in_time
    is_own = np.isnan(everything["canary"]) & in_time
    canaries = everything.take(is_canary, ("score", "canary", "judge", "step", "time"))
    facts = everything if is_own.all() else everything.take(is_own)
    steps = _Steps(facts)
    trend = _trend(index, facts, canaries, steps)
    return {
        "records": int(facts.size),
        "findings": [one._asdict() for one in findings(trend)],
        "score": _spread(facts["unit"]),
        "gold": _spread(facts["gold"]),
        "by_status": _counts(index, facts["status"]),
        "by_source": _counts(index, facts["source"]),
        "by_run": _counts(index, facts["run"]),
        "missing": _missing(index, rows[is_own]),
        "judges": _judges(index, facts, canaries, steps),
        "canaries": _passed(canaries),
        "money": _money(index, everything),
        "latency_s": _percentiles(facts["latency_s"][facts["sends"] > 0]),
        "queued_s": _percentiles(facts["queued_s"][facts["sends"] > 0]),
        "length": {"correlation": _correlation(facts["response_chars"], facts["unit"])},
        "trend": trend,
    }


class _Steps:
    """Where records stand on the curves: by training step; by time, where none of them has a step."""

    def __init__(self, facts: _Columns) -> None:
        self.by = "step" if not facts.size or (facts["step"] >= 0).any() else "time"
        x = facts[self.by][facts["step"] >= 0] if self.by == "step" else facts["time"]
        self._low, high = (float(x.min()), float(x.max())) if x.size else (0.0, -1.0)
        self.count = int(min(COLUMNS, high - self._low + 1)) if self.by == "step" else min(COLUMNS, 60)
        span = high - self._low + (1 if self.by == "step" else 1e-6)
        self._width = span / self.count if self.count else 1.0

    def x(self, place: int) -> float:
        """Where a place begins."""
        return self._low + self._width * place

    def slices(self, facts: _Columns, names: Iterable[str]) -> list[_Columns]:
        """The records of each place, of some columns; those without a step belong to none."""
        known = facts["step"] >= 0 if self.by == "step" else np.ones(facts.size, bool)
        place = ((facts[self.by][known] - self._low) / self._width).astype(np.int64)
        place = np.clip(place, 0, max(self.count - 1, 0))
        order = np.argsort(place, kind="stable")
        bounds = np.searchsorted(place[order], np.arange(self.count + 1))
        ordered = facts.take(np.flatnonzero(known)[order], names)
        return [ordered.take(slice(start, stop)) for start, stop in itertools.pairwise(bounds)]


def _trend(index: JournalIndex, facts: _Columns, canaries: _Columns, steps: _Steps) -> dict[str, Any]:
    """Curves over the training steps, or over time."""
    own = steps.slices(facts, _OF_A_STEP)
    tests = steps.slices(canaries, ("score", "canary"))
    columns = [
        {"x": steps.x(place), **_column(index, one), "canaries": _passed(test)}
        for place, (one, test) in enumerate(zip(own, tests, strict=True))
        if one.size
    ]
    return {"by": steps.by, "x": [one["x"] for one in columns], "columns": columns}


def _column(index: JournalIndex, facts: _Columns) -> dict[str, Any]:
    was_sent = facts["sends"] > 0
    status = facts["status"]
    return {
        **_scores(facts),
        "missing": int(np.isnan(facts["score"]).sum()),
        "unsound": {name: int((status == index.number_of(name)).sum()) for name in _UNSOUND},
        "gold": _spread(facts["gold"])["mean"],
        "chars": float(facts["response_chars"].mean()),
        "length_correlation": _correlation(facts["response_chars"], facts["unit"]),
        "latency_s": _percentiles(facts["latency_s"][was_sent]),
        "queued_s": _percentiles(facts["queued_s"][was_sent]),
        "spent": float(costs.sum()) if (costs := _costs(index, facts)).size else None,
    }


def _scores(facts: _Columns) -> dict[str, Any]:
    """How scores are spread, in all and within groups, and how far they are from what samples deserve."""
    flat, groups = _flat_groups(facts)
    return {
        "records": facts.size,
        **_spread(facts["unit"]),
        "histogram": _histogram(facts["unit"]),
        "flat": flat,
        "groups": groups,
        "gold_gap": _gold_gap(facts),
    }


def _histogram(units: Array) -> list[int]:
    counts: list[int] = np.histogram(np.clip(units[~np.isnan(units)], 0, 1), BINS, (0, 1))[0].tolist()
    return counts


def _gold_gap(facts: _Columns) -> float | None:
    """How much more judges give than the samples truly deserve, where that is known."""
    gaps = facts["unit"] - facts["gold"]
    known = gaps[~np.isnan(gaps)]
    return float(known.mean(dtype=float)) if known.size else None


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
    mean, std = (
        (float(known.mean(dtype=float)), float(known.std(dtype=float))) if known.size else (None, None)
    )
    return {"mean": mean, "std": std, **_percentiles(known, (10, 50, 90))}


def _percentiles(values: Array, of: tuple[int, ...] = (50, 95, 99)) -> dict[str, float | None]:
    found = np.percentile(values, of).tolist() if values.size else [None] * len(of)
    return {f"p{percent}": value for percent, value in zip(of, found, strict=True)}


def _counts(index: JournalIndex, column: Array) -> dict[str, int]:
    counts = np.bincount(column)
    pairs = sorted(((int(counts[number]), number) for number in np.flatnonzero(counts)), reverse=True)
    return {index.words[number]: count for count, number in pairs}


def _missing(index: JournalIndex, rows: Array) -> list[dict[str, Any]]:
    """Why records have no score, the commonest cause first, each with its commonest messages."""
    missing = rows[np.isnan(index.facts["score"][rows])]
    causes = index.facts["cause"][missing]
    found = []
    for cause, count in _counts(index, causes).items():
        own = np.sort(missing[causes == index.number_of(cause)])[-READ_FOR_MESSAGES:]
        messages: dict[str, dict[str, Any]] = {}
        for row in reversed(own):
            error = (index.text(int(row)).error or "")[:300]
            alike = messages.setdefault(
                re.sub(r"\d+", "#", error), {"error": error, "count": 0, "id": index.id_of(int(row))}
            )
            alike["count"] += 1
        commonest = sorted(messages.values(), key=lambda one: -one["count"])[:MESSAGES]
        found.append({**commonest[0], "cause": cause, "count": count, "messages": commonest})
    return found


def _passed(canaries: _Columns) -> dict[str, int]:
    """Wrong answers that were given a score, and those of them that passed."""
    scores = canaries["score"]
    return {"seen": int((~np.isnan(scores)).sum()), "passed": int((scores >= canaries["canary"]).sum())}


def _judges(index: JournalIndex, facts: _Columns, canaries: _Columns, steps: _Steps) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    names = _counts(index, facts["judge"])
    for name in names:
        own = facts.take(facts["judge"] == index.number_of(name), (*_OF_A_JUDGE, "time"))
        by_step = steps.slices(own, ("unit",)) if len(names) > 1 and len(found) < MOST_JUDGES else []
        found.append(
            {
                "judge": name,
                **_scores(own),
                "histograms": [
                    {"x": steps.x(n), "counts": _histogram(one["unit"])}
                    for n, one in enumerate(by_step)
                    if one.size
                ],
                "by_status": _counts(index, own["status"]),
                "canaries": _passed(canaries.take(canaries["judge"] == index.number_of(name))),
            }
        )
    return found


def _money(index: JournalIndex, facts: _Columns) -> dict[str, Any]:
    called = facts["source"] == index.number_of("call")
    free = (facts["source"] == index.number_of("cache")) | (facts["source"] == index.number_of("shared"))
    costs = _costs(index, facts)
    return {
        "spent": float(costs.sum()) if costs.size else None,
        "saved": float(costs.mean() * free.sum()) if costs.size else None,
        "calls": int(called.sum()),
        "without_call": int(free.sum()),
        "prompt_tokens": int(facts["prompt_tokens"][called].sum(dtype=np.int64)),
        "completion_tokens": int(facts["completion_tokens"][called].sum(dtype=np.int64)),
    }


def _costs(index: JournalIndex, facts: _Columns) -> Array:
    """What calls cost, each for itself, where they have a price."""
    is_priced = (facts["source"] == index.number_of("call")) & ~np.isnan(facts["cost"])
    costs: Array = facts["cost"][is_priced].astype(float)
    return costs


def _correlation(one: Array, other: Array) -> float | None:
    is_known = ~np.isnan(other)
    first, second = one[is_known].astype(float), other[is_known].astype(float)
    if first.size < 3 or not first.std() or not second.std():
        return None
    return float(np.corrcoef(first, second)[0, 1])


def last_verdicts(index: JournalIndex, rows: Array, *, rather_not: Iterable[str] = ()) -> list[int]:
    """The last row of each sample, if possible one with a score, and of none of the runs named."""
    facts, shunned = index.facts[rows], [index.number_of(word) for word in rather_not]
    worth = 2 * ~np.isin(facts["run"], shunned) + ~np.isnan(facts["score"])
    order = np.argsort(worth, kind="stable")
    last = dict(zip(facts["sample"][order].tolist(), rows[order].tolist(), strict=True))
    return sorted(last.values())


def compare(index: JournalIndex, one: Iterable[int], other: Iterable[int]) -> dict[str, Any]:
    """Two sets of records over the samples that both have: what changed, where, and by how much."""
    samples, units = index.facts["sample"], index.facts["unit"]
    first, second = ({int(samples[row]): int(row) for row in rows} for rows in (one, other))
    both = np.array([(first[key], second[key]) for key in first if key in second], int).reshape(-1, 2)
    before, after = units[both[:, 0]], units[both[:, 1]]
    change = (after - before).astype(float)
    known = ~np.isnan(change)
    changes = change[known]
    moved = np.flatnonzero(np.abs(change) > 1e-9)
    moved = moved[np.argsort(-np.abs(change[moved]), kind="stable")]
    return {
        "samples": len(both),
        "only_first": len(first) - len(both),
        "only_second": len(second) - len(both),
        "scored_in_both": changes.size,
        "changed": moved.size,
        "mean_change": float(changes.mean()) if changes.size else None,
        "mean_absolute_change": float(np.abs(changes).mean()) if changes.size else None,
        "correlation": _correlation(before[known], after[known]),
        "lost": int((np.isnan(after) & ~np.isnan(before)).sum()),
        "gained": int((np.isnan(before) & ~np.isnan(after)).sum()),
        "most_changed": [
            {"first": index.id_of(a), "second": index.id_of(b), "change": float(change[n]), "rows": (a, b)}
            for n in moved[:20]
            for a, b in [both[n].tolist()]
        ],
    }
