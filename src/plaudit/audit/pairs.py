"""Pairs of responses of which one is known to be better, read from the files of three public benchmarks.

RewardBench  {"prompt", "chosen", "rejected"}, with lists of responses too
JudgeBench   {"question", "response_A", "response_B", "label": "A>B" or "B>A"}
LLMBar       {"input", "output_1", "output_2", "label": 1 or 2}

One object a line, or one JSON array of them. The fields tell which it is; a file may mix them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from plaudit.errors import ConfigError
from plaudit.types import Sample

SHAPES = (
    'prompt/chosen/rejected, question/response_A/response_B/label "A>B", or input/output_1/output_2/label 1'
)
REWARD_BENCH = {"prompt", "chosen", "rejected"}
JUDGE_BENCH = {"question", "response_A", "response_B", "label"}
LLM_BAR = {"input", "output_1", "output_2", "label"}
FIELDS = (REWARD_BENCH, JUDGE_BENCH, LLM_BAR)


@dataclass(frozen=True, slots=True)
class Pair:
    """A task with a better and a worse response."""

    id: str
    prompt: str
    better: str
    worse: str
    subset: str = ""
    reference: str | None = None


def read_pairs(data: bytes, place: str) -> list[Pair]:
    """All pairs of a file. Raises ConfigError naming the first line that is none."""
    return pairs_from(_rows(data, place), place)


def is_pair(row: Any) -> bool:
    """Whether a row has the fields of a pair, rather than those of a single response."""
    return isinstance(row, dict) and any(fields <= row.keys() for fields in FIELDS)


def pairs_from(rows: Iterable[tuple[int, Any]], place: str) -> list[Pair]:
    """All pairs among numbered rows. ConfigError where a row is no pair, or there is none."""
    pairs: list[Pair] = []
    for number, row in rows:
        try:
            pairs.extend(_pairs_of(row, number))
        except ConfigError as error:
            raise ConfigError(f"{place}, line {number}: {error}") from None
    if not pairs:
        raise ConfigError(f"{place} has no pairs; give one JSON object a line with {SHAPES}")
    return pairs


def samples_of(pairs: Sequence[Pair]) -> list[Sample]:
    """Two samples for each pair, the better one first, in a group of their own."""
    return [
        Sample(pair.prompt, response, pair.reference, group=f"pair-{number}")
        for number, pair in enumerate(pairs)
        for response in (pair.better, pair.worse)
    ]


def _rows(data: bytes, place: str) -> Iterator[tuple[int, Any]]:
    if data.lstrip().startswith(b"["):
        try:
            yield from enumerate(msgspec.json.decode(data, type=list[Any]), start=1)
        except msgspec.DecodeError as error:
            raise ConfigError(f"{place} starts like a JSON array, but is not one: {error}") from None
        return
    for number, line in enumerate(data.splitlines(), start=1):
        if line.strip():
            try:
                yield number, msgspec.json.decode(line)
            except msgspec.DecodeError as error:
                raise ConfigError(f"{place}, line {number}: not JSON: {error}") from None


def _pairs_of(row: Any, number: int) -> Iterator[Pair]:
    if not isinstance(row, dict):
        raise ConfigError(f"{type(row).__name__} is not a JSON object")
    name = str(row.get("pair_id") or row.get("id") or number)
    about: dict[str, Any] = {
        "subset": str(row.get("subset") or row.get("source") or ""),
        "reference": row["reference"] if isinstance(row.get("reference"), str) else None,
    }
    if row.keys() >= REWARD_BENCH:
        chosen, rejected = _texts(row, "chosen"), _texts(row, "rejected")
        is_single = len(chosen) == len(rejected) == 1
        for one, better in enumerate(chosen, start=1):
            for other, worse in enumerate(rejected, start=1):
                own_name = name if is_single else f"{name}/{one}-{other}"
                yield Pair(own_name, _text(row, "prompt"), better, worse, **about)
        return
    if row.keys() >= JUDGE_BENCH:
        fields, labels, task = ("response_A", "response_B"), ("A>B", "B>A"), "question"
    elif row.keys() >= LLM_BAR:
        fields, labels, task = ("output_1", "output_2"), ("1", "2"), "input"
    else:
        raise ConfigError(f"fields {', '.join(map(repr, row)) or 'none'} are not a pair; expected {SHAPES}")
    first, second = (_text(row, field) for field in fields)
    label = str(row["label"]).replace(" ", "")
    if label not in labels:
        raise ConfigError(f"should be {labels[0]} or {labels[1]}", setting="label", value=row["label"])
    better, worse = (first, second) if label == labels[0] else (second, first)
    yield Pair(name, _text(row, task), better, worse, **about)


def _text(row: dict[str, Any], field: str) -> str:
    if not isinstance(row[field], str):
        raise ConfigError(f"{field} is {type(row[field]).__name__}, not text")
    return str(row[field])


def _texts(row: dict[str, Any], field: str) -> list[str]:
    value = row[field]
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise ConfigError(f"{field} is neither text nor a list of texts")
    return texts
