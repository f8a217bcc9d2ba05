"""Samples over HTTP: what is asked in a body, and the shapes in which trainers want their rewards back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import msgspec

from plaudit.errors import ConfigError, as_argument, spelling
from plaudit.judges.base import Judge, Panel
from plaudit.judges.registry import build, kinds
from plaudit.judges.scale import unit_score
from plaudit.rows import read_sample, response_of
from plaudit.setup.json_lines import usage_fields
from plaudit.types import Sample, Verdict

MOST_SAMPLES = 100_000
LONGEST = 365 * 86_400
DEFAULT_JUDGE = "default"
ON_FAILURE = ("null", "group-mean", "raise")
MOST_REWARD = 1e9
KNOWN = ("prompt", "response", "reference", "group")


class NoReward(Exception):
    """A row has no verdict, and the reply's shape has no place for that. The message says why."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Samples with their judge."""

    samples: list[Sample]
    judge: Judge | Panel
    deadline: float | None = None


def read_asked(fields: Mapping[str, Any], default: Judge | Panel) -> Asked:
    """The body of /score and /reward. A ConfigError names the field that makes no sense."""
    rows = fields.get("samples")
    if not isinstance(rows, list) or not rows:
        raise ConfigError("'samples' should be a list of objects with 'prompt' and 'response'")
    if len(rows) > MOST_SAMPLES:
        raise ConfigError(f"'samples' has {len(rows):,} entries; send at most {MOST_SAMPLES:,} at a time")
    samples = [_sample(row, f"samples[{number}]") for number, row in enumerate(rows)]
    return Asked(samples, read_judge(fields.get("judge"), default), read_deadline(fields.get("deadline")))


def _sample(row: Any, place: str) -> Sample:
    if not isinstance(row, dict) or "response" not in row:
        raise ConfigError(f"{place} should be an object with 'prompt' and 'response'")
    extra = {name: value for name, value in row.items() if name not in KNOWN}
    try:
        return read_sample(
            row.get("prompt"), row["response"], row.get("reference"), group=row.get("group"), extra=extra
        )
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from None


def read_judge(described: Any, default: Judge | Panel) -> Judge | Panel:
    """A judge by name, or by kind and options. Never by a file's name: a body opens no file."""
    if described is None or described == DEFAULT_JUDGE:
        return default
    kind = "judge.kind"
    if isinstance(described, str):
        kind, described = "judge", {"kind": described}
    if not isinstance(described, dict) or not isinstance(described.get("kind", "rubric"), str):
        raise ConfigError(f"'judge' should be a name ({DEFAULT_JUDGE}, {', '.join(kinds())}) or a table")
    options = dict(described)
    with spelling(lambda name, value: as_argument(kind if name == "kind" else f"judge.{name}", value)):
        return build(options.pop("kind", "rubric"), options)


def read_deadline(value: Any) -> float | None:
    """Seconds, or none."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < LONGEST:
        raise ConfigError("'deadline' should be a number of seconds above 0, and less than a year")
    return float(value)


def read_on_failure(value: Any) -> str | float:
    """What a sample without a verdict becomes in /reward."""
    if value is None:
        return "null"
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MOST_REWARD
    if not is_number and value not in ON_FAILURE:
        raise ConfigError(f"'on_failure' should be {', '.join(ON_FAILURE)} or a number")
    return float(value) if is_number else str(value)


def verdict_fields(verdict: Verdict) -> dict[str, Any]:
    """A verdict as /score gives it."""
    fields: dict[str, Any] = {
        "score": verdict.score,
        "status": verdict.status.value,
        "reason": verdict.reason,
        "error": verdict.error,
        "cause": verdict.failure.cause.value if verdict.failure else None,
        "model": verdict.model,
        "source": verdict.source.value,
        "attempts": verdict.attempts,
        "latency_s": round(verdict.latency_s, 4),
        "usage": msgspec.to_builtins(usage_fields(verdict.usage)),
    }
    if verdict.parts:
        fields["parts"] = dict(verdict.parts)
    return fields


def rewards_of(asked: Asked, verdicts: Sequence[Verdict], on_failure: str | float) -> list[float | None]:
    """Rewards from 0 to 1, one for each sample; without a verdict, what `on_failure` says.

    NoReward where there is none for a sample, and `on_failure` is `raise` (or its group has none either).
    """
    units = [unit_score(verdict, asked.judge) for verdict in verdicts]
    if on_failure == "null" or all(unit is not None for unit in units):
        return units
    if isinstance(on_failure, float | int):
        return [float(on_failure) if unit is None else unit for unit in units]
    if on_failure == "group-mean":
        groups = [sample.group or "" for sample in asked.samples]
        known: dict[str, list[float]] = {group: [] for group in groups}
        for unit, group in zip(units, groups, strict=True):
            if unit is not None:
                known[group].append(unit)
        if all(known.values()):
            means = {group: fmean(values) for group, values in known.items()}
            both = zip(units, groups, strict=True)
            return [means[group] if unit is None else unit for unit, group in both]
    failed = next(verdict for verdict, unit in zip(verdicts, units, strict=True) if unit is None)
    missing = sum(unit is None for unit in units)
    raise NoReward(f"{missing} of {len(units)} samples have no verdict; the first: {failed.error}")


# --- shapes that trainers post already ---------------------------------------------------------------------


def openrlhf_samples(fields: Mapping[str, Any]) -> list[Sample]:
    """OpenRLHF's body: `query` holds whole texts, `prompts` their beginnings, `labels` references."""
    queries = fields.get("query")
    if not isinstance(queries, list) or not all(isinstance(query, str) for query in queries):
        raise ConfigError("'query' should be a list of texts")
    prompts, labels = (_column(fields, name, len(queries)) for name in ("prompts", "labels"))
    return [
        read_sample(prompt, response_of(query, prompt) if isinstance(prompt, str) else query, label)
        for query, prompt, label in zip(queries, prompts, labels, strict=True)
    ]


def _column(fields: Mapping[str, Any], name: str, length: int) -> list[Any]:
    column = fields.get(name)
    if column is None:
        return [None] * length
    if not isinstance(column, list) or len(column) != length:
        raise ConfigError(f"'{name}' should be a list as long as 'query'")
    return column


def slime_sample(fields: Mapping[str, Any]) -> Sample:
    """slime's body: one row with `prompt`, `response` and `label`."""
    if "response" not in fields:
        raise ConfigError("the body should have 'prompt', 'response' and 'label'")
    return read_sample(fields.get("prompt"), fields["response"], fields.get("label"))


def nemo_gym_sample(fields: Mapping[str, Any]) -> Sample:
    """NeMo-Gym's body: the request and the response of OpenAI's responses route, and the row's own fields."""
    asked, answered = fields.get("responses_create_params"), fields.get("response")
    if not isinstance(asked, dict) or not isinstance(answered, dict):
        raise ConfigError("the body should have 'responses_create_params' and 'response'")
    if not isinstance(answered.get("output"), list):
        raise ConfigError("'response' should have 'output', a list of items")
    known = ("responses_create_params", "response")
    extra = {name: value for name, value in fields.items() if name not in known}
    names = ("expected_answer", "reference", "label")
    reference = next((extra[name] for name in names if name in extra), None)
    items = [{"role": "assistant", **item} if isinstance(item, dict) else item for item in answered["output"]]
    return read_sample(asked.get("input"), items, reference, extra=extra)
