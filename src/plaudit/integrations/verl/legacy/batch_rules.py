"""A rule's scores for a batch: verl's own for known data sources, or a function of the user's.

A rule that fails costs its own row only. Its error names the key and the remedy; the log names the row too.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plaudit.errors import ConfigError
from plaudit.integrations.verl.batch_row import BatchRow
from plaudit.types import Source, Status, Verdict

log = logging.getLogger("plaudit")

ComputeScore = Callable[..., Any]
"""compute_score(data_source=, solution_str=, ground_truth=, extra_info=), giving a number or a dictionary."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the rule said of one row."""

    verdict: Verdict
    is_known: bool = True
    """False: there is no rule for such rows."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What else the function gave, beside `score`."""


class BatchRules:
    """Scores rows one by one, on the caller's thread: rules that stop by a signal work nowhere else."""

    def __init__(self, compute_score: ComputeScore | None) -> None:
        """None: verl's own rules."""
        self._fn = compute_score or _verls_own()
        self._is_verls = is_verls_own(self._fn)
        self._said: set[str] = set()
        check_is_plain(self._fn)

    def score(self, rows: Sequence[BatchRow]) -> list[Ruling]:
        """One ruling for each row, in order. Says in the log how many have none."""
        rulings = [self._score(row) for row in rows]
        self._report([(row, r) for row, r in zip(rows, rulings, strict=True) if not r.verdict.is_valid])
        return rulings

    def _report(self, failed: Sequence[tuple[BatchRow, Ruling]]) -> None:
        for is_known in (True, False):
            part = [(row, ruling) for row, ruling in failed if ruling.is_known is is_known]
            if not part:
                continue
            row, ruling = part[0]
            error = ruling.verdict.error or ""
            if is_known or error not in self._said:  # what holds for the data holds for every batch
                self._said.add(error)
                log.warning("%d rows have no score by rule, the first is %s: %s", len(part), row.name, error)

    def _score(self, row: BatchRow) -> Ruling:
        if self._is_verls and row.ground_truth is None:
            return _failed(
                'reward_model["ground_truth"] is missing, and the rule compares with it; write it into the '
                "column reward_model of the data, or set enable_rule=False",
                is_known=False,
            )
        try:
            result = self._fn(
                data_source=row.data_source,
                solution_str=row.solution,
                ground_truth=row.ground_truth,
                extra_info=dict(row.extra_info),
            )
        except NotImplementedError:
            return _failed(
                f"there is no rule for data_source={row.data_source!r}; give one as "
                "custom_reward_function.path, or set enable_rule=False",
                is_known=False,
            )
        except Exception as error:
            log.debug("the rule failed on %s", row.name, exc_info=True)
            return _failed(f"the rule failed with {type(error).__name__}; set logging to DEBUG to see where")
        return ruling_of(result)


def is_verls_own(compute_score: ComputeScore) -> bool:
    """Whether a function is verl's rules for known data sources, as verl passes them where nobody chose."""
    return getattr(_inner(compute_score), "__name__", "").lstrip("_") == "default_compute_score"


def check_is_plain(compute_score: ComputeScore) -> None:
    """Raise ConfigError where a function is asynchronous: its coroutine would be taken for a score."""
    if inspect.iscoroutinefunction(_inner(compute_score)):
        raise ConfigError(
            "compute_score is an `async def`, which legacy managers cannot wait for; give a plain function"
        )


def as_verdict(score: object) -> Verdict:
    """A number as a verdict; whatever is no finite number has none, and says so."""
    try:
        number = None if score is None else float(score)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = None
    if number is None or not abs(number) < float("inf"):  # NaN too
        shown = repr(score)[:40]
        error = f"compute_score gave {shown}, which is not a score; give a finite number"
        return Verdict(None, Status.FAILED, source=Source.RULE, error=error)
    return Verdict(number, Status.OK, source=Source.RULE)


def ruling_of(result: object) -> Ruling:
    """What a function gave for one row: a number, or a dictionary with one under `score`."""
    if not isinstance(result, Mapping):
        return Ruling(as_verdict(result))
    if "score" not in result:
        return _failed("compute_score gave a dictionary without 'score'; put the score there")
    return Ruling(as_verdict(result["score"]), extra={k: v for k, v in result.items() if k != "score"})


def _failed(error: str, *, is_known: bool = True) -> Ruling:
    return Ruling(Verdict(None, Status.FAILED, source=Source.RULE, error=error), is_known)


def _inner(fn: ComputeScore) -> Any:
    """The function inside a functools.partial."""
    return getattr(fn, "func", fn)


def _verls_own() -> ComputeScore:
    from verl.utils.reward_score import default_compute_score

    return default_compute_score  # type: ignore[no-any-return]
