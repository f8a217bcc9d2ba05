"""Progress lines: percent done, now and then, while a batch is under way."""

from __future__ import annotations

import logging

import pytest

from plaudit.events import BatchFinished, BatchStarted, Summary, VerdictsReady
from plaudit.integrations.verl.legacy.judge_workers import PercentLog
from plaudit.types import Status, Verdict

GOOD = Verdict(0.5, Status.OK, reason="secret words")


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_percent_done_is_said_every_few_seconds(caplog: pytest.LogCaptureFixture) -> None:
    progress = PercentLog(every=5.0)
    with caplog.at_level(logging.INFO, logger="plaudit"):
        progress(BatchStarted(at=100.0, batch=1, samples=2000))
        for second in range(1, 21):
            progress(VerdictsReady(at=100.0 + second, batch=1, verdicts=(GOOD,) * 100))
    assert lines(caplog) == [
        "judged 500 of 2,000 (25%)", "judged 1,000 of 2,000 (50%)", "judged 1,500 of 2,000 (75%)",
    ]  # fmt: skip


def test_a_batch_that_is_soon_done_has_no_such_line(caplog: pytest.LogCaptureFixture) -> None:
    progress = PercentLog(every=5.0)
    with caplog.at_level(logging.INFO, logger="plaudit"):
        for start in (0.0, 60.0, 120.0):
            progress(BatchStarted(at=start, batch=int(start), samples=2))
            progress(VerdictsReady(at=start + 1, batch=int(start), verdicts=(GOOD,)))
            progress(VerdictsReady(at=start + 2, batch=int(start), verdicts=(GOOD,)))
            progress(BatchFinished(at=start + 2, batch=int(start), summary=Summary(samples=2, seconds=2.0)))
    assert lines(caplog) == []
