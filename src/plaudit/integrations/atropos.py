"""Atropos: scores for a ScoredDataGroup, from the last turn of its `messages`.

A group has to keep its size, or Atropos holds it back. So a row without a verdict stays with the mean of its
group and the override `set_advantage_to_zero`. Where fewer than two are judged the result is None, and
Atropos skips the group.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from plaudit.errors import ConfigError
from plaudit.integrations.scored import Scored, asked_when_loaded, sample_of
from plaudit.judges.base import Judge, Panel
from plaudit.types import Sample
from plaudit.value_check import check_length, check_value

AGENT = "assistant"
NO_ADVANTAGE = {"set_advantage_to_zero": True}


def group_scorer(
    judge: Judge | Panel | None = None, **options: Any
) -> Callable[..., Coroutine[Any, Any, dict[str, Any] | None]]:
    """A `score_group` with this judge; `options` are those of plaudit.Engine."""
    scored = Scored.checked(judge, **options)

    async def score_group(
        group: dict[str, Any], reference: Any = None, **columns: Any
    ) -> dict[str, Any] | None:
        """The group with `scores` and `overrides`; None where fewer than two of its rows were judged.

        Args:
            group: What the environment gathered, with the turns of each row in `messages`, the response last.
            reference: The ground truth.
            columns: The item's other columns, like the `rubric` by which a Checklist judges it.
        """
        check_value("group", group, Mapping[str, Any])
        rows, tokens = group.get("messages") or (), group.get("tokens") or ()
        if not rows or len(rows) != len(tokens):
            raise ConfigError(
                f"has {len(rows)} conversations for {len(tokens)} rows of tokens; give each row's turns, the "
                "response last",
                setting="messages",
            )
        scores = await scored.agroup([_sample(turns, reference, columns) for turns in rows])
        if sum(score.valid for score in scores) < min(2, len(rows)):
            return None
        before = group.get("overrides") or [{} for _ in rows]
        check_length("overrides", before, len(rows))
        overrides = [
            known if score.valid else {**known, **NO_ADVANTAGE}
            for known, score in zip(before, scores, strict=True)
        ]
        return {**group, "scores": [float(score) for score in scores], "overrides": overrides}

    return score_group


def _sample(turns: Sequence[Mapping[str, Any]], reference: Any, columns: Mapping[str, Any]) -> Sample:
    """The last turn of the assistant as the response, with what its environment answered, if anything."""
    said = [row for row, turn in enumerate(turns) if isinstance(turn, Mapping) and turn.get("role") == AGENT]
    if not said:
        raise ConfigError(
            "has a conversation without a turn of the assistant; end each with the response",
            setting="messages",
        )
    return sample_of(list(turns[: said[-1]]), list(turns[said[-1] :]), reference, extra=columns)


score_group: Callable[..., Coroutine[Any, Any, dict[str, Any] | None]]
__getattr__ = asked_when_loaded(__name__, "score_group", group_scorer())
