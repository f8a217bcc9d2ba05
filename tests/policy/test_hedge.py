"""A call gets a twin only past what nearly every call takes; one far past all others hangs."""

from __future__ import annotations

from plaudit.policy.hedge import MIN_CALLS, Overtaken, hedge_age, hung_age
from plaudit.policy.histogram import LatencyHistogram


def latencies(*groups: tuple[int, float]) -> LatencyHistogram:
    histogram = LatencyHistogram()
    for count, seconds in groups:
        for _ in range(count):
            histogram.add(seconds)
    return histogram


def test_nothing_is_an_outlier_while_too_little_is_known() -> None:
    assert hedge_age(latencies((MIN_CALLS - 1, 2.0))) is None
    assert hedge_age(latencies((MIN_CALLS, 2.0))) is not None


def test_a_call_that_takes_as_long_as_the_others_is_no_outlier() -> None:
    age = hedge_age(latencies((100, 2.0)))
    assert age is not None and age > 2.0 * 1.1


def test_a_few_stragglers_do_not_hide_the_next_ones() -> None:
    age = hedge_age(latencies((985, 2.0), (15, 50.0)))
    assert age is not None and age < 5.0


def test_where_long_calls_are_common_they_are_no_outliers() -> None:
    age = hedge_age(latencies((80, 2.0), (20, 50.0)))
    assert age is not None and age > 50.0


def test_a_call_hangs_only_far_past_what_makes_it_an_outlier() -> None:
    known = latencies((100, 2.0))
    outlier, hung = hedge_age(known), hung_age(known)
    assert outlier is not None and hung is not None
    assert 2.0 * outlier <= hung <= 30.0


def test_one_reply_is_enough_to_tell_that_another_call_hangs() -> None:
    few = hung_age(latencies((1, 2.0)))
    many = hung_age(latencies((MIN_CALLS, 2.0)))
    assert few is not None and many is not None
    assert many < few <= 60.0  # with less known there is more patience, but an end to it


def test_one_call_less_than_many_takes_no_longer_to_be_found_to_hang() -> None:
    for known, under_way in ((11, 1), (MIN_CALLS - 1, 1), (MIN_CALLS + 3, 2)):
        age = hung_age(latencies((known, 2.0)), under_way=under_way)
        assert age is not None and age < 10.0


def test_nothing_hangs_before_anything_came_back() -> None:
    assert hung_age(latencies()) is None


def test_at_an_endpoint_of_milliseconds_a_short_delay_is_no_hang() -> None:
    age = hung_age(latencies((1000, 0.002)))
    assert age is not None and age >= 0.5


def test_the_long_calls_of_a_mixed_batch_do_not_hang() -> None:
    age = hung_age(latencies((80, 2.0), (20, 50.0)))
    assert age is not None and age > 100.0


def test_the_first_replies_of_calls_sent_together_make_no_outliers_of_the_others() -> None:
    first = latencies((MIN_CALLS, 1.0))
    assert hedge_age(first, under_way=1) is not None
    assert hedge_age(first, under_way=44) is None
    while_open, all_back = hung_age(first, under_way=44), hung_age(first)
    assert while_open is not None and all_back is not None and while_open > 2.0 * all_back


def in_order(*, count: int, service: float, queue: float) -> tuple[Overtaken, LatencyHistogram, float]:
    """Calls 1 to `count`, sent at once, that come back one after another; 0 is still under way."""
    overtaken, known, now = Overtaken(), LatencyHistogram(), 0.0
    for number in range(count + 1):
        overtaken.on_send(number)
    for number in range(1, count + 1):
        now = service + queue * number / count
        known.add(now)
        overtaken.on_back(number, known, now=now, is_reply=True)
    overtaken.learn(known)
    return overtaken, known, now


def test_where_calls_queue_the_one_that_was_overtaken_is_the_outlier_at_any_age() -> None:
    overtaken, known, now = in_order(count=200, service=2.0, queue=60.0)
    by_age = hedge_age(known)
    assert overtaken.outlier_age is not None and overtaken.hung_age is not None and by_age is not None
    assert list(overtaken.since) == [0]
    assert overtaken.since[0] + overtaken.outlier_age < overtaken.since[0] + overtaken.hung_age < now < by_age


def test_calls_that_often_come_back_out_of_order_are_late_only_beyond_that() -> None:
    overtaken, known = Overtaken(), LatencyHistogram()
    for number in range(0, 200, 2):  # every other call is overtaken, and comes back 3 s later
        overtaken.on_send(number)
        overtaken.on_send(number + 1)
        for one, at in ((number + 1, 5.0 * number + 1.0), (number, 5.0 * number + 4.0)):
            known.add(at - 5.0 * number)
            overtaken.on_back(one, known, now=at, is_reply=True)
    overtaken.learn(known)
    assert overtaken.outlier_age is not None and overtaken.hung_age is not None
    assert 1.2 * 3.0 < overtaken.outlier_age < overtaken.hung_age


def test_a_call_that_was_cut_off_overtakes_nobody_and_is_forgotten() -> None:
    overtaken, known = Overtaken(), LatencyHistogram()
    for number in (1, 2, 3):
        overtaken.on_send(number)
    overtaken.on_back(3, known, now=1.0, is_reply=False)
    assert not overtaken.since
    overtaken.on_back(2, known, now=2.0, is_reply=True)
    assert overtaken.since == {1: 2.0}
    overtaken.on_back(1, known, now=3.0, is_reply=False)
    assert not overtaken.since


def test_nothing_is_late_while_too_little_is_known() -> None:
    overtaken, _, _ = in_order(count=MIN_CALLS - 1, service=1.0, queue=1.0)
    assert overtaken.outlier_age is None and overtaken.hung_age is None
