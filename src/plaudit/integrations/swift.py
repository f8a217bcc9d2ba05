"""ms-swift: an asynchronous reward function for `--reward_funcs plaudit`, or another name with another judge.

ms-swift runs it in a new event loop at every step, on the rows of one process. It accepts None, but adds
rewards up with `nansum`, which makes a 0.0 of it: a failed verdict would be the worst answer of its group.
So it becomes the mean of its group, which moves nothing, and the log says how many there were.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

try:
    from swift.rewards import AsyncORM, orms
except ImportError:  # before version 4
    from swift.plugin import AsyncORM, orms

from plaudit.integrations.scored import Scored, sample_of
from plaudit.judges.base import Judge, Panel
from plaudit.value_check import check_value

REFERENCE = "solution"
"""The column of the data set that holds the ground truth, by ms-swift's custom."""


class SwiftReward(AsyncORM):  # type: ignore[misc, unused-ignore]
    """Scores the completions of a step. `register` makes it with another judge."""

    scored = Scored()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.scored.check()
        super().__init__(*args, **kwargs)

    async def __call__(
        self,
        completions: Sequence[str],
        messages: Sequence[Sequence[dict[str, Any]]] | None = None,
        prompt_id: Sequence[str] | None = None,
        **columns: Any,
    ) -> list[float]:
        rows = range(len(completions))
        truths = columns.pop(REFERENCE, None)
        others = {
            name: values
            for name, values in columns.items()
            if isinstance(values, list | tuple) and len(values) == len(rows)
        }
        samples = [
            sample_of(
                messages[row][:-1] if messages else None,  # the last turn is the completion itself
                completions[row],
                truths[row] if truths else None,
                group=prompt_id[row] if prompt_id else None,
                extra={name: values[row] for name, values in others.items()},
            )
            for row in rows
        ]
        return [float(score) for score in await self.scored.arewards(samples)]


def register(name: str = "plaudit", judge: Judge | Panel | None = None, **options: Any) -> type[SwiftReward]:
    """Make `--reward_funcs NAME` mean this judge; `options` are those of plaudit.Engine."""
    check_value("name", name, str)
    chosen = type("SwiftReward", (SwiftReward,), {"scored": Scored(judge, **options)})
    orms[name] = chosen
    return chosen


register()
