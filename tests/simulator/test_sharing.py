"""Processor sharing, against a plain simulation that recomputes what is left at every event."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaudit.simulator.sharing import Sharing
from simulator.asking import QUICK


def speed(running: int) -> float:
    return 1.0 if running <= 3 else (3 / running) ** 2.3


def ends_by_hand(jobs: list[tuple[float, float]]) -> dict[int, float]:
    """When each (arrival, work) ends: remaining work is reduced step by step, nobody is clever."""
    left: dict[int, float] = {}
    ends: dict[int, float] = {}
    waiting = sorted(range(len(jobs)), key=lambda number: jobs[number][0])
    now = 0.0
    while waiting or left:
        arrival = jobs[waiting[0]][0] if waiting else math.inf
        end = now + min(left.values()) / speed(len(left)) if left else math.inf
        step = min(arrival, end)
        for number in left:
            left[number] -= (step - now) * speed(len(left))
        now = step
        if end <= arrival:
            done = min(left, key=lambda number: left[number])
            ends[done] = now
            del left[done]
        else:
            number = waiting.pop(0)
            left[number] = jobs[number][1]
    return ends


def ends_shared(jobs: list[tuple[float, float]]) -> dict[int, float]:
    sharing: Sharing[int] = Sharing(speed)
    ends: dict[int, float] = {}

    def run_until(when: float) -> None:
        while sharing and (end := sharing.next_end()) <= when:
            sharing.move(end)
            ends[sharing.finish()] = end

    for number in sorted(range(len(jobs)), key=lambda number: jobs[number][0]):
        run_until(jobs[number][0])
        sharing.move(jobs[number][0])
        sharing.start(number, work=jobs[number][1])
    run_until(math.inf)
    return ends


@QUICK
@given(st.lists(st.tuples(st.floats(0, 20), st.floats(0.01, 10)), max_size=12))
def test_everyone_ends_when_their_share_is_done(jobs: list[tuple[float, float]]) -> None:
    assert ends_shared(jobs) == pytest.approx(ends_by_hand(jobs), rel=1e-6, abs=1e-6)


@QUICK
@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=12))
def test_work_is_conserved(works: list[float]) -> None:
    """Throughput times time, summed over the stretches between ends, is the work handed in."""
    ends = sorted(ends_shared([(0.0, work) for work in works]).values())
    done, before = 0.0, 0.0
    for position, end in enumerate(ends):
        running = len(works) - position
        done += (end - before) * running * speed(running)
        before = end
    assert done == pytest.approx(sum(works))


def test_who_leaves_speeds_up_the_others_and_never_ends() -> None:
    sharing: Sharing[str] = Sharing(lambda running: 1.0 / running)
    sharing.start("a", work=4.0)
    sharing.start("b", work=1.0)
    assert sharing.next_end() == 2.0
    sharing.move(1.0)
    assert sharing.drop("b")
    assert not sharing.drop("b")
    assert sharing.next_end() == 4.5
    assert len(sharing) == 1


def test_nobody_ends_without_speed_or_without_anybody() -> None:
    stuck: Sharing[str] = Sharing(lambda _: 0.0)
    assert stuck.next_end() == math.inf
    stuck.start("a", work=1.0)
    assert stuck.next_end() == math.inf
