"""How many calls at once are answered within a time limit, and when it is the load that some are not."""

from __future__ import annotations

from plaudit.policy.time_limit import TimeLimit


def busy(*, calls: int, answered: int) -> TimeLimit:
    """So many calls left together, and some of them are answered."""
    limit = TimeLimit()
    for n in range(calls):
        limit.on_send(now=0.0, in_flight=n + 1)
    for n in range(answered):
        limit.on_success(now=0.0, sent_at=0.0, in_flight=calls - n)
    return limit


def test_a_call_that_hangs_among_many_that_are_answered_is_not_for_the_load() -> None:
    limit = busy(calls=64, answered=60)
    assert [limit.on_timeout(now=60.0, sent_at=0.0, in_flight=64) for _ in range(3)] == [None] * 3
    assert not limit.is_known(0.0)


def test_many_that_run_out_of_time_leave_so_many_as_are_answered_in_half_of_it() -> None:
    limit = busy(calls=400, answered=100)
    found = [limit.on_timeout(now=100.0, sent_at=0.0, in_flight=400) for _ in range(14)]
    assert [one for one in found if one is not None] == [50]
    assert limit.is_known(0.0)  # the others that left with them say nothing more


def test_where_none_was_answered_far_fewer_are_tried() -> None:
    limit = busy(calls=64, answered=0)
    assert limit.on_timeout(now=30.0, sent_at=0.0, in_flight=64) == 8


def test_a_call_alone_that_runs_out_of_time_is_its_own_fault() -> None:
    limit = busy(calls=1, answered=0)
    assert limit.on_timeout(now=30.0, sent_at=0.0, in_flight=1) is None


def test_a_load_is_held_below_one_that_ran_out_of_time_and_later_a_little_nearer_to_it() -> None:
    limit = busy(calls=64, answered=0)
    limit.on_timeout(now=30.0, sent_at=0.0, in_flight=64)
    first = limit.fitting(100, above=8, now=40.0)
    second = limit.fitting(100, above=8, now=50.0)
    assert first < second < 64


def test_no_more_are_sent_than_the_time_limit_allows_at_the_pace_of_the_replies() -> None:
    limit = busy(calls=64, answered=8)
    limit.seconds = 120.0
    assert limit.fitting(1024, above=64, now=2.0) == 240
    assert limit.fitting(1024, above=64, now=0.1) == 1024
    assert limit.fitting(1024, above=64, now=60.0) == 80  # a little more than now is always tried


def cut_from(load: int, *, answered: int, at: float) -> tuple[TimeLimit, int]:
    """A load that was cut at `at`, when so many calls had been answered and the others ran out of time."""
    limit = busy(calls=load, answered=answered)
    found = [limit.on_timeout(now=at, sent_at=0.0, in_flight=load) for _ in range(load - answered)]
    return limit, next(one for one in found if one is not None)


def test_where_fewer_calls_bring_fewer_replies_the_load_before_comes_back_and_more_may_be_late() -> None:
    limit, fewer = cut_from(64, answered=54, at=2.0)
    assert fewer == 27
    back = [limit.on_success(now=3.0 + n / 14, sent_at=2.5, in_flight=fewer) for n in range(60)]
    assert [one for one in back if one is not None] == [27]  # 54 in two seconds: so many within half of it
    limit.on_send(now=10.0, in_flight=64)
    for _ in range(100):
        limit.on_success(now=11.0, sent_at=10.0, in_flight=64)
    assert {limit.on_timeout(now=12.0, sent_at=10.0, in_flight=64) for _ in range(20)} == {None}


def test_where_fewer_calls_bring_as_many_replies_the_cut_stays() -> None:
    limit, fewer = cut_from(64, answered=20, at=10.0)
    assert fewer == 10
    assert {limit.on_success(now=11.0 + n / 2, sent_at=10.5, in_flight=fewer) for n in range(60)} == {None}


def test_replies_to_calls_that_left_before_a_cut_do_not_speak_for_it() -> None:
    limit, fewer = cut_from(64, answered=20, at=10.0)
    assert {limit.on_success(now=10.0 + n, sent_at=0.0, in_flight=fewer) for n in range(60)} == {None}


def test_calls_that_leave_one_by_one_are_counted_on_as_long_as_little_time_passes_between_them() -> None:
    limit = TimeLimit()
    for n in range(100):
        limit.on_send(now=float(n), in_flight=1)
        limit.on_success(now=n + 1.0, sent_at=float(n), in_flight=1)
    limit.seconds = 60.0
    assert limit.fitting(1024, above=1, now=100.0) == 30  # one a second, though each found nothing under way
