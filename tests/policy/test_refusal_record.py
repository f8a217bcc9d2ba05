"""A rate is told from a capacity by the fates of the last calls, whatever controls them."""

from __future__ import annotations

import random
from collections.abc import Callable
from heapq import heappop, heappush, heapreplace

import pytest

from plaudit.policy.refusal_record import RefusalRecord
from plaudit.simulator.capacity import Bucket

ROUND_TRIP, CALL = 0.06, 0.3


class Client:
    """So many calls at once, each of which leaves again as soon as it has come back."""

    def __init__(self, server: Callable[[float, float], bool], *, at_once: int) -> None:
        self.record = RefusalRecord()
        self.rates: list[float | None] = []
        """What was found each time that it was time to judge."""
        self._server = server
        self._chance = random.Random(1)
        self._ends: list[tuple[float, float, bool]] = []  # when it comes back, when it left, whether refused
        for _ in range(at_once):
            self._send(0.0)

    def send_until(self, end: float) -> None:
        while self._ends[0][0] < end:
            now, sent_at, is_refused = heappop(self._ends)
            if not is_refused:
                self.record.on_answer(now=now, sent_at=sent_at)
            elif self.record.on_refusal(now=now, sent_at=sent_at):
                self.rates.append(self.record.rate(now=now, under_way=[sent for _, sent, _ in self._ends]))
            self._send(now + (ROUND_TRIP if is_refused else 0.0))

    def _send(self, now: float) -> None:
        work = CALL * self._chance.uniform(0.5, 1.5)
        is_let_in = self._server(now, work)
        back_at = now + ROUND_TRIP * self._chance.uniform(1.0, 1.1) + (work if is_let_in else 0.0)
        heappush(self._ends, (back_at, now, not is_let_in))


def rate(per_second: float, *, burst: int) -> Callable[[float, float], bool]:
    """Lets so many calls in a second."""
    bucket = Bucket(rate=per_second, burst=burst)

    def lets_in(now: float, _: float) -> bool:
        bucket.refill(now)
        is_free = bucket.wait(1) <= 0.0
        if is_free:
            bucket.take(1)
        return is_free

    return lets_in


def capacity(slots: int, *, refused: float = 0.0) -> Callable[[float, float], bool]:
    """Lets a call in as soon as one of so many has ended, and refuses a share of them whatever the load."""
    ends = [0.0] * slots
    chance = random.Random(2)

    def lets_in(now: float, work: float) -> bool:
        is_free = ends[0] <= now and chance.random() >= refused
        if is_free:
            heapreplace(ends, now + work)
        return is_free

    return lets_in


@pytest.mark.parametrize("at_once", [6, 12, 20])
@pytest.mark.parametrize(("per_second", "burst"), [(12.0, 1), (12.0, 5), (30.0, 2)])
def test_a_rate_that_is_never_far_exceeded_is_found(per_second: float, burst: int, at_once: int) -> None:
    client = Client(rate(per_second, burst=burst), at_once=at_once)
    client.send_until(20.0)
    found = [found for found in client.rates if found is not None]
    assert found
    assert all(0.55 * per_second < rate < 1.25 * per_second for rate in found)


@pytest.mark.parametrize("at_once", [3, 6, 20])
@pytest.mark.parametrize("slots", [2, 5, 18])
def test_a_capacity_is_no_rate(slots: int, at_once: int) -> None:
    client = Client(capacity(slots), at_once=at_once)
    client.send_until(20.0)
    assert set(client.rates) <= {None}


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_refusals_at_random_are_no_rate(share: float) -> None:
    client = Client(capacity(100, refused=share), at_once=12)
    client.send_until(20.0)
    assert client.rates
    assert set(client.rates) == {None}


def test_what_was_seen_before_another_time_began_is_forgotten() -> None:
    client = Client(rate(12.0, burst=1), at_once=12)
    client.send_until(5.0)
    assert client.rates
    client.record.forget()
    assert client.record.rate(now=5.0, under_way=[]) is None


def test_judging_takes_twice_as_many_refusals_each_time() -> None:
    client = Client(rate(12.0, burst=1), at_once=12)
    client.send_until(10.0)
    early = len(client.rates)
    client.send_until(20.0)
    assert len(client.rates) <= early + 2
