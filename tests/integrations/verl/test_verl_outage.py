"""A judge is down when more than a share of the last rows have no verdict."""

from __future__ import annotations

from plaudit.integrations.verl.outage import FEWEST, WINDOW, Outage


def test_one_failure_at_the_start_is_no_outage() -> None:
    outage = Outage(0.2)
    outage.note(failed=True)
    assert not outage.is_on


def test_failures_at_the_start_are_an_outage_once_they_are_many() -> None:
    outage = Outage(0.2)
    for _ in range(round(0.2 * FEWEST) + 1):
        outage.note(failed=True)
    assert outage.is_on


def test_only_the_last_rows_count() -> None:
    outage = Outage(0.2)
    for _ in range(WINDOW):
        outage.note(failed=True)
    for _ in range(round(0.8 * WINDOW)):
        outage.note(failed=False)
    assert not outage.is_on
    assert outage.failures == round(0.2 * WINDOW)
