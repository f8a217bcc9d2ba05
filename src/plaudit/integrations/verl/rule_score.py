"""verl's own score for a row: its `compute_score`, plain or asynchronous, which may have nothing to say."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from plaudit.integrations.verl.batch_row import BatchRow
from plaudit.integrations.verl.combination import RuleSays


@dataclass(frozen=True, slots=True)
class RuleScore:
    """What the rule said of one row, and why it gave no score where it gave none."""

    says: RuleSays
    score: float | None = None
    why: str = ""
    """Fit for a log: nothing of the response is in it."""
    detail: str = ""
    """What the rule itself said, which may quote the response."""


@dataclass(frozen=True, slots=True)
class RuleScorer:
    """Asks a function like verl's for the score of a row."""

    fn: Callable[..., Any]
    use: str = "auto"
    """`auto`: rows without a rule have none. `require`: they fail. `off`: nobody is asked."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that every call gets."""

    async def ask(self, row: BatchRow) -> RuleScore:
        """A score, nothing where there is no rule for such rows, or a failure that costs this row only."""
        if self.use == "off":
            return RuleScore("nothing")
        for key in ("ground_truth", "data_source"):
            if key in row.missing:
                return self._none(row.missing[key])
        try:
            return _read(await self._call(row), row)
        except NotImplementedError:  # as verl's own rules say it
            return self._none(
                f"data_source: verl has no rule for {row.data_source!r}, that of {row.name}; "
                "set reward.custom_reward_function.path to one, or reward.plaudit.rule=off"
            )
        except Exception as error:  # noqa: BLE001 - user code: it costs its own row
            why = f"the rule failed on {row.name} with {type(error).__name__}; plaudit/reason has its words"
            return RuleScore("failed", why=why, detail=f"{type(error).__name__}: {error}")

    def _none(self, why: str) -> RuleScore:
        return RuleScore("failed" if self.use == "require" else "nothing", why=why)

    async def _call(self, row: BatchRow) -> Any:
        arguments = {
            "data_source": row.data_source,
            "solution_str": row.solution,
            "ground_truth": row.ground_truth,
            "extra_info": dict(row.extra_info),
            **self.extra,
        }
        if inspect.iscoroutinefunction(self.fn):
            return await self.fn(**arguments)
        result = await asyncio.to_thread(self.fn, **arguments)
        return await result if inspect.isawaitable(result) else result  # an object with an async __call__


def _read(result: Any, row: BatchRow) -> RuleScore:
    score = result.get("score") if isinstance(result, Mapping) else result
    number = float(score) if score is not None else math.nan
    if not math.isfinite(number):
        return RuleScore(
            "failed", why=f"the rule gave {score!r} for {row.name}, which is not a finite number"
        )
    return RuleScore("score", number)
