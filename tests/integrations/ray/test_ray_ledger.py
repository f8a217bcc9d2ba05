"""What outlives an engine: its spending, and the minute of its last call."""

from __future__ import annotations

import time

import pytest
from held import GOOD, Held
from loopback import JUDGE, samples
from loopback_connection import LoopbackConnection, client_over, submit
from until import until

from plaudit import Status, Usage
from plaudit.errors import BudgetSpent
from plaudit.events import CallFinished, CallStarted
from plaudit.integrations.ray.ledger import Ledger
from plaudit.testing import ScriptedTransport


class Shelf:
    """A store in memory that counts what is written to it."""

    def __init__(self) -> None:
        self.value: bytes | None = None
        self.writes = 0

    def get(self) -> bytes | None:
        return self.value

    def put(self, value: bytes) -> None:
        self.value = value
        self.writes += 1

    def delete(self) -> None:
        self.value = None


STARTED = CallStarted(0.0, "e", 1)


def paid(cost: float) -> CallFinished:
    return CallFinished(0.0, "e", 0, "ok", 0.1, Usage(cost=cost))


def test_the_next_engine_finds_what_was_spent_and_when_the_last_call_was() -> None:
    shelf = Shelf()
    ledger = Ledger(shelf, clock=lambda: 1000.0)
    assert (ledger.entry.spent, ledger.hold) == (0.0, 0.0)
    for event in (STARTED, paid(0.25), STARTED, paid(0.5)):
        ledger(event)
    ledger.write()
    heir = Ledger(shelf, clock=lambda: 1010.0)
    assert heir.entry.spent == 0.75
    assert heir.hold == 50.5  # the rest of the minute, and a margin
    heir(paid(0.25))
    heir.write()
    assert Ledger(shelf, clock=lambda: 2000.0).entry.spent == 1.0
    assert Ledger(shelf, clock=lambda: 2000.0).hold == 0.0


def test_nothing_is_written_while_nothing_happens() -> None:
    shelf = Shelf()
    ledger = Ledger(shelf)
    ledger.write()
    assert shelf.writes == 0
    ledger(STARTED)
    ledger.write()
    ledger.write()
    assert shelf.writes == 1


def test_an_engine_that_was_stopped_leaves_nothing() -> None:
    shelf = Shelf()
    ledger = Ledger(shelf)
    ledger(paid(0.5))
    ledger.write()
    ledger.end()
    assert Ledger(shelf).entry.spent == 0.0


def test_what_may_be_spent_is_there_before_it_is_spent() -> None:
    shelf = Shelf()
    Ledger(shelf).reserve(0.5)
    heir = Ledger(shelf)
    assert heir.entry.spent == 0.5
    heir(paid(0.2))
    heir.reserve(0.3)
    assert Ledger(shelf).entry.spent == 0.8
    heir.reserve(0.25)  # it was stopped, and had spent less than it might have
    assert Ledger(shelf).entry.spent == 0.75


def test_a_reserve_that_cannot_be_written_down_is_not_spent() -> None:
    class Broken(Shelf):
        def put(self, value: bytes) -> None:
            raise ConnectionError("the head node is gone")

    with pytest.raises(BudgetSpent, match="the head node is gone"):
        Ledger(Broken()).reserve(0.5)


def test_a_call_is_there_before_it_is_made_if_none_was_lately() -> None:
    shelf = Shelf()
    now = [1000.0]
    ledger = Ledger(shelf, clock=lambda: now[0])
    for at in (1000.0, 1000.1, 1000.2, 1000.3, 1000.4):
        now[0] = at
        ledger(STARTED)
        assert Ledger(shelf, clock=lambda: now[0]).hold >= 60.25
    assert shelf.writes == 2


def test_calls_are_held_back_until_the_minute_is_over() -> None:
    transport = ScriptedTransport([GOOD])
    connection = LoopbackConnection(transport, hold=0.5)
    with client_over(connection) as client:
        start = time.monotonic()
        early = submit(client, samples(1, "Rome"), JUDGE, deadline=0.1)
        pending = submit(client, samples(3), JUDGE, deadline=300.0)
        patient = submit(client, samples(3, "Oslo"), JUDGE)
        assert {verdict.status for verdict in pending.result() + patient.result()} == {Status.OK}
        assert time.monotonic() - start > 0.45
        assert early.result()[0].status is Status.DEADLINE
    assert len(transport.sent) == 6


def test_what_is_called_off_while_it_is_held_back_is_never_sent() -> None:
    held = Held()
    held.all.set()
    connection = LoopbackConnection(held, hold=0.5)
    with client_over(connection) as client:
        gone = submit(client, samples(3), JUDGE)
        until(lambda: connection.sent)
        gone.cancel()
        assert submit(client, samples(1, "Rome"), JUDGE).result()[0].is_valid
    assert len(held.sent) == 1
