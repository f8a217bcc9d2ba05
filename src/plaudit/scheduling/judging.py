"""A judge is user code: what it gives, or is said to have given, is checked before it is used."""

from __future__ import annotations

import logging
import math
from typing import get_args

from plaudit.errors import PlauditError
from plaudit.judges.base import Judge, Panel
from plaudit.judges.scale import is_on_scale
from plaudit.scheduling import record
from plaudit.scheduling.batch import Batch
from plaudit.types import Reply, Request, Sample, Status, Verdict

log = logging.getLogger("plaudit")
_RENDERED: tuple[type, ...] = (*get_args(Request), Verdict)


def render(batch: Batch, sample: Sample) -> Request | Verdict:
    """The request or the verdict that the judge makes of a sample. Raises whatever the judge raises."""
    rendered: Request | Verdict = batch.judge.render(sample)
    if not isinstance(rendered, _RENDERED):
        raise TypeError(f"render gave a {type(rendered).__name__}, neither a request nor a verdict")
    if isinstance(rendered, Verdict):
        check_score(rendered, batch.judge, "render")
    return rendered


def read(batch: Batch, reply: Reply, sample: Sample) -> Verdict:
    """The verdict that the judge finds in a reply. A score that is no number would poison every mean."""
    verdict = batch.judge.parse(reply, sample)
    if not isinstance(verdict, Verdict):
        raise TypeError(f"parse gave a {type(verdict).__name__}, not a verdict")
    check_score(verdict, batch.judge, "parse")
    return verdict


def check_score(verdict: Verdict, judge: Judge | Panel, method: str) -> None:
    """Raises ValueError where a good verdict has no score, or one that is not on its judge's scale."""
    score = verdict.score
    low, high = judge.scale
    if score is not None and low <= score <= high and math.isfinite(score):
        return
    if verdict.status is Status.OK and (score is None or not math.isfinite(score)):
        raise ValueError(f"{method} gave a verdict with the score {score}")
    if score is not None and not is_on_scale(score, judge):
        raise ValueError(f"{method} gave the score {score:g}, and the judge's scale is {low:g} to {high:g}")


def recall(batch: Batch, data: bytes, sample: Sample) -> Verdict | None:
    """A stored verdict, if the judge could have given it; a file may be damaged, or planted."""
    verdict = record.decode(data)
    try:
        if verdict is not None and (batch.could_give is None or batch.could_give(verdict, sample)):
            return verdict
    except Exception as error:  # noqa: BLE001 - user code: the sample is judged again
        blame(batch, error, "could not check a stored verdict")
    if not batch.misfits:
        log.warning("a stored verdict cannot be one of this judge; such samples are judged again")
    batch.misfits += 1
    return None


def blame(batch: Batch, error: BaseException, what: str) -> None:
    """Log what a judge could not do: in full the first time, or a broken judge would fill the disk."""
    if not isinstance(error, PlauditError) and not batch.judge_errors:
        log.error("judge %s %s", type(batch.judge).__name__, what, exc_info=error)
    batch.judge_errors += 1
