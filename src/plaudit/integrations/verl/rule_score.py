"""A rule's score for a row: verl's own `compute_score` or the user's, which may have nothing to say.

A rule that fails costs its own row only. Its error names the key and the remedy.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plaudit.errors import ConfigError
from plaudit.integrations.verl.batch_row import BatchRow
from plaudit.types import Cause, Source, Status, Verdict

log = logging.getLogger("plaudit")

ComputeScore = Callable[..., Any]
"""compute_score(data_source=, solution_str=, ground_truth=, extra_info=), giving a number or a dictionary."""
NOT_ASKED = Verdict(None, Status.OK, source=Source.RULE)
"""Of a judge or a rule that is not wanted."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the rule said of one row."""

    verdict: Verdict
    """Where it has no score, its error says why: nothing of the response is in it."""
    is_known: bool = True
    """False: there is no rule for such rows."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What else the function gave, beside `score`."""
    detail: str = ""
    """What the rule itself said when it failed, which may quote the response."""

    @classmethod
    def failed(cls, error: str, *, is_known: bool = True, detail: str = "") -> Ruling:
        return cls(Verdict.failed(Cause.CODE, error, source=Source.RULE), is_known, detail=detail)

    @classmethod
    def of(cls, result: Any) -> Ruling:
        """What a function gave: a finite number, or a dictionary with one under `score`."""
        given = result if isinstance(result, Mapping) else {"score": result}
        score = given.get("score")
        try:
            number = math.nan if score is None else float(score)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            return cls.failed(
                f"the rule's compute_score gave {result!r:.40}, which is not a score; "
                "give a finite number, or a dictionary with one under 'score'"
            )
        extra = {name: value for name, value in given.items() if name != "score"}
        return cls(Verdict(number, Status.OK, source=Source.RULE), extra=extra)


NO_RULE = Ruling(NOT_ASKED, is_known=False)


@dataclass(frozen=True, slots=True)
class RuleScorer:
    """Asks a function, plain or asynchronous, for the score of one row."""

    fn: ComputeScore
    use: str = "auto"
    """`auto`: rows without a rule have none. `require`: they fail. `off`: the function is never called."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that every call gets."""

    async def ask(self, row: BatchRow) -> Ruling:
        """A score, nothing where there is no rule for such rows, or a failure that costs this row only."""
        if row.broken:
            return Ruling.failed("")
        if self.use == "off":
            return NO_RULE
        is_known = self.use == "require"
        for key in ("ground_truth", "data_source"):
            if key in row.missing:
                return Ruling.failed(row.missing[key], is_known=is_known)
        try:
            return Ruling.of(await self._call(row))
        except NotImplementedError:  # as verl's own rules say it
            return Ruling.failed(
                f"data_source: verl has no rule for {row.data_source!r}, that of {row.name}; "
                "set reward.custom_reward_function.path to one, or reward.plaudit.rule=off",
                is_known=is_known,
            )
        except Exception as error:  # noqa: BLE001 - user code: it costs its own row
            why = f"the rule failed on {row.name} with {type(error).__name__}; plaudit/reason has its words"
            return Ruling.failed(why, detail=f"{type(error).__name__}: {error}")

    async def _call(self, row: BatchRow) -> Any:
        arguments = {**_arguments(row), **self.extra}
        if inspect.iscoroutinefunction(self.fn):
            return await self.fn(**arguments)
        result = await asyncio.to_thread(self.fn, **arguments)
        return await result if inspect.isawaitable(result) else result  # an object with an async __call__


class BatchRules:
    """Scores rows one by one, on the caller's thread: rules that stop by a signal work nowhere else."""

    def __init__(self, compute_score: ComputeScore | None) -> None:
        """None: verl's own rules."""
        self._fn = compute_score or verls_own()
        self._said: set[str] = set()
        check_is_plain(self._fn)

    def score(self, rows: Sequence[BatchRow]) -> list[Ruling]:
        """One ruling for each row, in order. Says in the log how many have none."""
        rulings = [self._score(row) for row in rows]
        for is_known in (True, False):
            pairs = zip(rows, rulings, strict=True)
            failed = [(row, r) for row, r in pairs if not r.verdict.is_valid and r.is_known is is_known]
            if not failed:
                continue
            name, error = failed[0][0].name, str(failed[0][1].verdict.error)
            if is_known or error not in self._said:  # what holds for the data holds for every batch
                self._said.add(error)
                log.warning("%d rows have no score by rule, the first is %s: %s", len(failed), name, error)
        return rulings

    def _score(self, row: BatchRow) -> Ruling:
        if row.ground_truth is None and is_verls_own(self._fn):
            return Ruling.failed(
                'reward_model["ground_truth"] is missing, and the rule compares with it; write it into the '
                "column reward_model of the data, or set enable_rule=False",
                is_known=False,
            )
        try:
            return Ruling.of(self._fn(**_arguments(row)))
        except NotImplementedError:
            return Ruling.failed(
                f"there is no rule for data_source={row.data_source!r}; give one as "
                "custom_reward_function.path, or set enable_rule=False",
                is_known=False,
            )
        except Exception as error:
            log.debug("the rule failed on %s", row.name, exc_info=True)
            return Ruling.failed(
                f"the rule failed with {type(error).__name__}; set logging to DEBUG to see where"
            )


def verls_own() -> ComputeScore:
    """verl's rules for known data sources."""
    from verl.utils.reward_score import default_compute_score

    return default_compute_score  # type: ignore[no-any-return]


def is_verls_own(compute_score: ComputeScore) -> bool:
    """Whether a function is verl's rules for known data sources, as verl passes them by default."""
    return getattr(_inner(compute_score), "__name__", "").lstrip("_") == "default_compute_score"


def check_is_plain(compute_score: ComputeScore) -> None:
    """Raise ConfigError where it is no function, or async: its coroutine would be taken for a score."""
    if not callable(compute_score):
        raise ConfigError("is not a function", setting="compute_score", value=compute_score)
    if inspect.iscoroutinefunction(_inner(compute_score)):
        raise ConfigError(
            "compute_score is an `async def`, which legacy managers cannot wait for; give a plain function"
        )


def _inner(fn: ComputeScore) -> Any:
    """The function inside a functools.partial."""
    return getattr(fn, "func", fn)


def _arguments(row: BatchRow) -> dict[str, Any]:
    return {
        "data_source": row.data_source,
        "solution_str": row.solution,
        "ground_truth": row.ground_truth,
        "extra_info": dict(row.extra_info),
    }
