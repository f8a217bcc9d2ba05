"""Criteria: the points of a rubric, written in Python or read from the data, and the sums of their verdicts.

A rubric that comes with a row may have any of these shapes, or be their JSON text:

    ["It names the capital.", ...]
    [{"criterion": "It names the capital.", "points": 5}, ...]                          HealthBench
    [{"title": "Capital", "description": "It names the capital.", "weight": 5}, ...]    rubrics as rewards
    {"query": "...", "rubrics": [{"description": "It names the capital.", "weight": 1}]}    open-instruct
    {"requirements": "...", "weight": 1, "sub_tasks": [...]}                            PaperBench, a tree
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import msgspec

from plaudit.errors import ConfigError
from plaudit.judges.prompt import checked_text
from plaudit.rows import plain

Total = Literal["share", "points"]
"""How verdicts on criteria become one score; see `summed`."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_TEXTS = ("criterion", "description", "text", "requirements", "question")
_WEIGHTS = ("weight", "points")
_NAMES = ("name", "title")
_LISTS = ("rubrics", "rubric", "criteria")
_MAX_LEVELS = 10
_MAX_DEPTH = 50
_SHAPE = 'like {"criterion": "It names the capital.", "points": 5}'


@dataclass(frozen=True, slots=True)
class Criterion:
    """One point of a checklist."""

    name: str
    """A short word; the key under which the judge replies and the verdict reports."""
    text: str
    """What a response must do to meet it."""
    weight: float = 1.0
    """How much it counts, relative to the others; below 0 for a fault, which costs where it is there; 0 to
    report it only."""
    levels: int = 1
    """1: it is met or not. 2: the judge gives 0, 1 or 2, for not at all, in part and in full; and so on."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ConfigError(
                "is not a name; use letters, digits, _ and -, like 'correct'", setting="name", value=self.name
            )
        checked_text("text", self.text, f"say what a response must do to be {self.name}")
        if not _is_number(self.weight):
            raise ConfigError(
                f"of {self.name!r} is not a weight; use a number, below 0 for a fault",
                setting="weight",
                value=self.weight,
            )
        checked_levels(self.levels)
        object.__setattr__(self, "weight", float(self.weight))


def checked_levels(levels: object, setting: str = "levels") -> int:
    """How many steps above 0 a criterion has. Raises ConfigError where a judge cannot give them."""
    if isinstance(levels, bool) or not isinstance(levels, int) or not 1 <= levels <= _MAX_LEVELS:
        raise ConfigError(
            f"is not a number of levels; use 1 for met or not, 2 for 0, 1 and 2, up to {_MAX_LEVELS}",
            setting=setting,
            value=levels,
        )
    return levels


def checked_criteria(criteria: object, *, total: Total, setting: str = "criteria") -> tuple[Criterion, ...]:
    """The criteria, if they can be asked about together and summed up. Raises ConfigError otherwise."""
    if not isinstance(criteria, (list, tuple)) or not criteria:
        raise ConfigError(
            'is not a list of criteria; give at least one, like [Criterion("correct", "It is right.")]',
            setting=setting,
            value=criteria,
        )
    keys = dict[str, int]()
    for place, point in enumerate(criteria):
        for key in (point.name.casefold(), reason_key(point).casefold()):
            if key in keys:
                raise ConfigError(
                    f"has the name {point.name!r}, and {key!r} is taken by {setting}[{keys[key]}]; rename it",
                    setting=f"{setting}[{place}]",
                )
            keys[key] = place
    weights = [point.weight for point in criteria]
    if not math.isfinite(math.fsum(map(abs, weights))) or not any(weights):
        raise ConfigError("has no finite weight above 0, so no criterion counts", setting=setting)
    if total == "points" and not any(weight > 0 for weight in weights):
        raise ConfigError(
            'has no points above 0 to earn; give one a weight above 0, or use total="share"',
            setting=setting,
        )
    return tuple(criteria)


def reason_key(point: Criterion) -> str:
    """The key under which the judge gives its reason."""
    return f"reason_{point.name}"


def summed(criteria: Sequence[Criterion], values: Mapping[str, float], *, total: Total, clip: bool) -> float:
    """One score of the values, each from 0 (not met) to 1 (met in full).

    `share`: the weight that was earned, of all the weight there is. A fault earns its weight where it is
    avoided, so the score lies between 0 and 1. `points`: the points of what is met, faults subtracted, over
    the points above 0 that there are; it may fall below 0, unless it is clipped there.
    """
    earned = math.fsum(point.weight * values[point.name] for point in criteria)
    best = math.fsum(point.weight for point in criteria if point.weight > 0)
    if total == "points":
        return max(earned / best, 0.0) if clip else earned / best
    worst = math.fsum(point.weight for point in criteria if point.weight < 0)
    return min(max((earned - worst) / (best - worst), 0.0), 1.0)  # rounding may leave the scale


# --- rubrics from the data ----------------------------------------------------------------------------------


def read_criteria(rubric: object, *, levels: int, total: Total, setting: str) -> tuple[Criterion, ...]:
    """The criteria of a rubric that came with a row, in any of the shapes above, as JSON text or as they are.

    `levels` is for criteria that say nothing of their own, `setting` the column that the rubric stands in. A
    ConfigError names the entry and the field that has none of the shapes.
    """
    if isinstance(rubric, tuple) and rubric and isinstance(rubric[0], Criterion):
        return rubric
    try:
        text = rubric.encode() if isinstance(rubric, str) else msgspec.json.encode(rubric, enc_hook=_plain)
    except (TypeError, ValueError, RecursionError):
        raise ConfigError(
            f"is not plain data; give a list of criteria {_SHAPE}", setting=setting, value=type(rubric)
        ) from None
    if b"null" in text and _holds_no_number(plain(rubric)):
        raise ConfigError("contains NaN or infinity; give each criterion a number", setting=setting)
    return _read(text, levels, total, setting)


def _plain(value: object) -> object:
    """For rubrics from Parquet, whose lists are arrays; and for criteria among other shapes."""
    if isinstance(value, Criterion):
        return asdict(value)
    if (found := plain(value)) is value:
        raise TypeError(f"no plain data: {type(value).__name__}")
    return found


def _holds_no_number(value: object) -> bool:
    """Whether a NaN or an infinity stands in there; JSON would write null for it."""
    if isinstance(value, float):
        return not math.isfinite(value)
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return any(map(_holds_no_number, inner))


@lru_cache(maxsize=1024)  # the responses of a group have one rubric, which is read for each of them
def _read(text: bytes, levels: int, total: Total, setting: str) -> tuple[Criterion, ...]:
    try:
        rubric = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise ConfigError(
            f"is text but not JSON; give a list of criteria {_SHAPE}",
            setting=setting,
            value=text[:80].decode(errors="replace"),
        ) from None
    entries, place = rubric, setting
    while isinstance(entries, dict) and "sub_tasks" not in entries:
        key = next((key for key in _LISTS if key in entries), None)
        if key is None:
            break
        entries, place = entries[key], f"{place}.{key}"
    if isinstance(entries, dict) and "sub_tasks" in entries:
        points = list(_leaves(entries, share=1.0, place=place, levels=levels, depth=0))
    elif isinstance(entries, list) and entries:
        points = [_entry(entry, f"{place}[{n}]", levels) for n, entry in enumerate(entries)]
    else:
        raise ConfigError(f"is not a list of criteria; give one {_SHAPE}", setting=place, value=entries)
    return checked_criteria(_with_names(points), total=total, setting=setting)


def _entry(entry: Any, place: str, levels: int) -> Criterion:
    """One entry of a list, under a name that may not be its own yet."""
    if isinstance(entry, str):
        entry = {"criterion": entry}
    if not isinstance(entry, dict):
        raise ConfigError(f"is neither text nor {_SHAPE}", setting=place, value=entry)
    key = _key(entry, _TEXTS)
    if key is None:
        raise ConfigError(f"has no text; write it under {_TEXTS[0]!r}, {_SHAPE}", setting=place)
    checked_text(f"{place}.{key}", entry[key], "say what a response must do to meet it")
    own = checked_levels(entry["levels"], f"{place}.levels") if "levels" in entry else levels
    return Criterion(_name(entry), entry[key], _weight(entry, place), own)


def _leaves(node: Any, *, share: float, place: str, levels: int, depth: int) -> Iterator[Criterion]:
    """The leaves of a tree, each with its share of the whole: of its siblings, of its parent, and so on."""
    children = node.get("sub_tasks") if isinstance(node, dict) else None
    if not children:
        yield replace(_entry(node, place, levels), weight=share)
        return
    if not isinstance(children, list) or depth > _MAX_DEPTH:
        raise ConfigError("is not a list of tasks", setting=f"{place}.sub_tasks", value=children)
    weights = [
        _weight(child, f"{place}.sub_tasks[{n}]") if isinstance(child, dict) else 1.0
        for n, child in enumerate(children)
    ]
    if min(weights) < 0 or not math.fsum(weights) > 0:
        raise ConfigError(
            "have no usable weights; use 0 or more, and at least one above 0",
            setting=f"{place}.sub_tasks",
            value=weights,
        )
    for n, (child, weight) in enumerate(zip(children, weights, strict=True)):
        own = share * weight / math.fsum(weights)
        yield from _leaves(child, share=own, place=f"{place}.sub_tasks[{n}]", levels=levels, depth=depth + 1)


def _weight(entry: Mapping[str, Any], place: str) -> float:
    key = _key(entry, _WEIGHTS)
    if key is None:
        return 1.0
    if not _is_number(entry[key]):
        complaint = "is not a number; use one below 0 for a fault"
        raise ConfigError(complaint, setting=f"{place}.{key}", value=entry[key])
    return float(entry[key])


def _name(entry: Mapping[str, Any]) -> str:
    """A name made of the entry's own, or an empty place for one."""
    key = _key(entry, _NAMES)
    own = re.sub(r"[^A-Za-z0-9_-]+", "_", str(entry[key])).strip("_-")[:32] if key else ""
    return own if _NAME.fullmatch(own) and not own.startswith("reason_") else _NAMELESS


_NAMELESS = "c"


def _with_names(points: Sequence[Criterion]) -> list[Criterion]:
    """The criteria with a name for each: its own, with a number behind it where another one has it."""
    taken = set[str]()
    named = []
    for number, point in enumerate(points, start=1):
        name = f"c{number}" if point.name == _NAMELESS else point.name
        while name.casefold() in taken:  # judges are read without regard to capitals
            name = f"{name[:32]}_{number}"
        taken.add(name.casefold())
        named.append(replace(point, name=name))
    return named


def _key(entry: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    return next((key for key in keys if entry.get(key) is not None), None)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300
