"""The concurrency limit: within its bounds, cut only for load, kept through weather, and never stuck."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plaudit.policy.limit import ConcurrencyLimit, LimitConfig

thorough = settings(max_examples=120, deadline=None, derandomize=True, database=None)

EVENTS = [
    "send",
    "success",
    "refusal",
    "timeout",
    "grow",
    "hold",
    "resume",
    "settle",
    "forgive",
    "rate",
    "no rate",
]
events = st.lists(
    st.tuples(
        st.sampled_from(EVENTS),
        st.floats(min_value=0.0, max_value=3.0),  # time passed since the event before
        st.floats(min_value=0.0, max_value=10.0),  # age of the call it is about
        st.integers(min_value=0, max_value=300),  # calls under way
    ),
    max_size=150,
)
configs = st.builds(
    LimitConfig,
    start=st.integers(min_value=-5, max_value=500),
    ceiling=st.integers(min_value=1, max_value=300),
    is_known=st.booleans(),
    refuses=st.booleans(),
)


def grown(limit: ConcurrencyLimit, *, until: float, since: float = 0.0, under_way: int = 0) -> float:
    """Ask it to grow as often as it wants to be asked, up to some time; the answer is that time."""
    now = since
    while now < until:
        now = min(max(limit.grow(now=now, accepted=under_way), now + 0.01), until)
    return now


def round_of_calls(limit: ConcurrencyLimit, *, now: float, latency: float) -> float:
    """Fill the limit with calls, growing while they leave, and let all come back; when the last one did."""
    sent: list[float] = []
    deadline = now + latency
    while True:
        while len(sent) < limit.limit:
            sent.append(now)
            limit.on_send(now=now, in_flight=len(sent))
        again = limit.grow(now=now, accepted=len(sent))
        if again >= deadline:
            break
        now = max(again, now + 1e-3)
    for left, at in zip(range(len(sent), 0, -1), sent, strict=True):
        limit.on_success(now=at + latency, sent_at=at, in_flight=left, tokens=100)
    return sent[-1] + latency


def burst(
    limit: ConcurrencyLimit, *, sent_at: float, accepted: int, refused: int, order: int = 0, later: int = 0
) -> float:
    """Of the calls that left together so many are refused; the answer is when that is known of all."""
    now = sent_at + 0.1
    for n in range(refused):
        left = accepted + refused - 1 - n
        limit.on_refusal(now=now, sent_at=sent_at, accepted=left, order=order + n, since=sent_at - 0.01)
    if limit.edge.is_in_doubt:
        now = max(now, limit.edge.known_at)
        limit.settle_burst(now=now, later=later)
    return now


@thorough
@given(configs, events)
def test_the_limit_lies_between_1_and_the_ceiling_whatever_happens(
    config: LimitConfig, steps: list[tuple[str, float, float, int]]
) -> None:
    limit = ConcurrencyLimit(config)
    now = 0.0
    assert 1 <= limit.limit <= config.ceiling
    for what, pause, age, count in steps:
        now += pause
        sent_at = max(now - age, 0.0)
        match what:
            case "send":
                limit.on_send(now=now, in_flight=count + 1)
            case "success":
                limit.on_success(now=now, sent_at=sent_at, in_flight=count + 1, tokens=count)
            case "refusal":
                limit.on_refusal(now=now, sent_at=sent_at, accepted=count, order=count, since=sent_at)
            case "timeout":
                limit.on_timeout(now=now, sent_at=sent_at, in_flight=count)
            case "hold":
                limit.hold(since=sent_at)
            case "resume":
                limit.resume(now=now, in_flight=count % (limit.limit + 1), bad_time=age)
            case "settle":
                limit.settle_burst(now=now, beside=count // 2, later=count)
            case "forgive":
                limit.forgive(now=now)
            case "rate":
                limit.turn_to_rate(age + 0.1)
            case "no rate":
                limit.turn_from_rate(now=now, in_flight=count)
            case _:
                assert not math.isnan(limit.grow(now=now, accepted=count))
        assert 1 <= limit.limit <= config.ceiling


def test_an_unknown_endpoint_is_met_with_some_courage() -> None:
    limit = ConcurrencyLimit(LimitConfig())
    assert 16 <= limit.limit <= 128
    grown(limit, until=1.0)
    assert limit.limit >= 16


def test_a_known_limit_is_where_it_starts() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=200, is_known=True, refuses=True))
    assert limit.limit == 200
    assert limit.is_learned


def test_a_guess_is_not_worth_remembering_until_it_was_tried() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=32))
    assert not limit.is_learned
    burst(limit, sent_at=0.9, accepted=20, refused=12)
    assert limit.is_learned


# -- refusals for load ------------------------------------------------------------------------------------


def test_a_burst_of_refusals_cuts_once_to_what_was_accepted() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    for n in range(64):
        limit.on_send(now=0.0, in_flight=n + 1)
    for n in range(24):  # in any order: forty stay
        limit.on_refusal(now=0.1, sent_at=0.0, accepted=63 - n, order=41 + n)
    assert limit.limit == 40


def test_refusals_of_calls_that_left_before_the_cut_do_not_cut_again() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    burst(limit, sent_at=0.0, accepted=40, refused=10)
    cut = limit.limit
    burst(limit, sent_at=0.05, accepted=cut, refused=10, order=10)
    assert limit.limit == cut


def test_a_single_refusal_in_a_whole_round_changes_nothing() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    for n in range(10):
        burst(limit, sent_at=float(n), accepted=20, refused=1, order=100 * n)
    assert limit.limit == 64
    assert not limit.is_learned


def test_a_refusal_though_others_were_let_in_on_top_says_nothing() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    for n in range(10):
        limit.on_refusal(now=1.0 + n, sent_at=0.9 + n, accepted=20, sure=50, order=n)
    assert limit.limit == 64


def test_after_a_cut_it_asks_for_more_again_while_calls_wait() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    burst(limit, sent_at=0.0, accepted=40, refused=24)
    now = grown(limit, since=0.1, until=30.0, under_way=limit.limit)
    assert limit.limit > 40
    assert now == 30.0


def test_where_more_are_under_way_than_when_it_refused_it_was_not_for_load() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    burst(limit, sent_at=0.0, accepted=30, refused=3)
    assert limit.limit == 30
    limit.grow(now=0.5, accepted=50)
    assert limit.limit == 64


def test_refusals_with_one_call_under_way_and_then_with_two_do_not_make_a_capacity_of_one() -> None:
    wavering, steady = ConcurrencyLimit(LimitConfig(start=64)), ConcurrencyLimit(LimitConfig(start=64))
    for n in range(40):
        for limit, accepted in ((wavering, 1 + n % 2), (steady, 1)):
            known = burst(limit, sent_at=float(n), accepted=accepted, refused=6, order=100 * n)
            grown(limit, since=known, until=n + 0.9, under_way=accepted)
    assert wavering.grow(now=40.0, accepted=1) < 40.5  # asked again soon
    assert steady.grow(now=40.0, accepted=1) > 60.0


def test_a_capacity_that_rests_on_a_few_refusals_is_challenged_with_many_calls_at_once() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    now = burst(limit, sent_at=0.0, accepted=60, refused=4, later=8)
    now = burst(limit, sent_at=now, accepted=59, refused=2, order=100, later=8)
    known_at = limit.grow(now=now, accepted=59)
    challenging = limit.limit
    assert challenging >= 59 + 14
    limit.grow(now=known_at - 0.01, accepted=challenging)
    assert limit.limit == challenging  # not before their fate is known
    limit.grow(now=known_at + 0.01, accepted=challenging)
    assert not limit.refuses
    assert limit.limit >= 64


def test_a_capacity_is_not_challenged_while_nothing_is_let_in() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    now = 0.0
    for n in range(8):
        now = burst(limit, sent_at=now, accepted=60, refused=2, order=100 * n)
        limit.grow(now=now, accepted=60)
        assert limit.limit <= 64


def test_a_few_refusals_over_and_over_never_lift_it_above_where_it_was() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=12, is_known=True))
    now = 0.0
    for n in range(60):  # two of thirteen calls refused at random, though the rest were let in
        now = burst(limit, sent_at=now, accepted=limit.limit - 2 + n % 3, refused=2, order=20 * n)
        now = grown(limit, since=now, until=now + 0.5, under_way=limit.limit)
        assert limit.limit <= 12
    assert limit.rate is None
    assert limit.limit == 12


def test_a_capacity_that_stays_is_asked_for_more_less_and_less_often() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    now, order, asked = 0.0, 0, []
    while now < 300.0:
        now = grown(limit, since=now, until=now + 0.05, under_way=min(limit.limit, 40))
        if limit.limit > 40:
            order += limit.limit
            asked.append(now)
            now = burst(limit, sent_at=now, accepted=40, refused=limit.limit - 40, order=order)
    assert limit.rate is None
    assert limit.limit == 40
    early, late = sum(at < 150.0 for at in asked), sum(at >= 150.0 for at in asked)
    assert late < early
    assert late < 20


# -- outages ----------------------------------------------------------------------------------------------


def test_what_was_cut_for_an_endpoint_that_let_nothing_in_was_cut_for_nothing() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=200, is_known=True, refuses=True))
    for n in range(200):
        limit.on_refusal(now=1.1, sent_at=1.0, accepted=199 - n, order=n, since=1.0)
    assert limit.limit == 1
    limit.hold(since=1.0)
    assert limit.limit == 200


def test_what_was_cut_before_the_outage_stays_cut() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    burst(limit, sent_at=0.0, accepted=40, refused=24)
    limit.hold(since=5.0)
    assert limit.limit == 40


def test_after_an_outage_it_comes_back_in_a_few_steps_to_where_it_was() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=278, is_known=True, refuses=True))
    limit.hold(since=1.0)
    limit.resume(now=5.0, in_flight=1, bad_time=0.02)
    assert limit.limit < 16
    heights, now = [], 5.0
    while limit.limit < 278:
        now = limit.grow(now=now, accepted=limit.limit)
        heights.append(limit.limit)
        assert len(heights) < 12
    assert heights == sorted(heights)
    assert now < 6.0
    limit.grow(now=now, accepted=278)
    assert limit.is_learned


def test_a_limit_that_was_settled_before_an_outage_is_not_looked_for_again_from_scratch() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    now = round_of_calls(limit, now=0.0, latency=1.0)
    for n in range(20):  # sixteen at a time: what is more waits
        now = round_of_calls(limit, now=now, latency=max(1.0, limit.limit / 16) ** 2)
        settled = limit.limit
        limit.resume(now=now, in_flight=1, bad_time=0.01)
        now = grown(limit, since=now, until=now + 0.3)
        assert limit.limit == settled, n
    assert limit.limit <= 32


def test_an_outage_while_nearly_all_are_under_way_takes_no_step_back() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    limit.resume(now=5.0, in_flight=63, bad_time=0.02)
    assert limit.limit == 64


# -- refusals that are not for load -----------------------------------------------------------------------


def test_forgiven_refusals_give_back_what_they_took() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    for n, accepted in enumerate((50, 40, 30, 20)):
        burst(limit, sent_at=float(n), accepted=accepted, refused=3, order=100 * n)
    assert limit.limit <= 20
    limit.forgive(now=5.0)
    assert limit.limit == 64
    assert not limit.refuses


def rising(limit: ConcurrencyLimit, *, after: int) -> None:
    """Each time it refuses more calls are under way, and none has come back; some that left later stayed."""
    now, height = 0.0, 20
    for n in range(12):
        now = burst(limit, sent_at=now + 1.0, accepted=height, refused=6, order=200 * n, later=after)
        grown(limit, since=now, until=now + 0.5, under_way=height)
        height += 10
        if limit.rate is not None or not limit.refuses:
            return


def test_an_endpoint_that_refuses_at_ever_greater_heights_limits_the_rate() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    rising(limit, after=0)
    assert limit.rate is not None and limit.rate > 0.0
    assert limit.limit == 4096  # from then on the pace governs


def test_where_its_refusals_picked_some_of_those_sent_together_it_is_no_rate() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    rising(limit, after=30)
    assert limit.rate is None


def test_a_rate_that_turns_out_to_be_none_leaves_a_limit_that_can_grow() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    limit.turn_to_rate(20.0)
    limit.turn_from_rate(now=10.0, in_flight=90)
    assert limit.rate is None
    assert 64 <= limit.limit <= 128
    now = 10.0
    for _ in range(6):
        now = round_of_calls(limit, now=now, latency=2.0)
    assert limit.limit > 200


# -- no refusals ------------------------------------------------------------------------------------------


def test_requests_that_the_endpoint_says_it_still_takes_are_sent_without_a_search() -> None:
    counting, silent = ConcurrencyLimit(LimitConfig(start=32)), ConcurrencyLimit(LimitConfig(start=32))
    counting.allowance = 500
    for limit in (counting, silent):
        round_of_calls(limit, now=round_of_calls(limit, now=0.0, latency=2.0), latency=2.0)
    assert counting.limit > 2 * silent.limit


def test_where_more_calls_bring_more_replies_it_keeps_growing() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=32))
    now = 0.0
    for _ in range(12):
        now = round_of_calls(limit, now=now, latency=2.0)
    assert limit.limit >= 512


def test_the_users_ceiling_stops_the_growth() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=32, ceiling=60))
    now = 0.0
    for _ in range(12):
        now = round_of_calls(limit, now=now, latency=2.0)
        assert limit.limit <= 60
    assert limit.limit == 60


def test_a_storm_of_timeouts_cuts_again_and_again_but_never_to_nothing() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=64))
    limit.on_success(now=0.5, sent_at=0.0, in_flight=64)
    heights = [limit.limit]
    for storm in range(40):
        for _ in range(limit.limit):
            limit.on_timeout(now=120.0 * (storm + 1), sent_at=120.0 * storm + 1.0, in_flight=limit.limit)
        heights.append(limit.limit)
    assert heights == sorted(heights, reverse=True)
    assert heights[1] < 64
    assert heights[-1] <= 2


def test_a_burst_of_refusals_takes_as_long_as_its_slowest_not_as_its_first() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=32))
    for late in (0.001, 0.01, 0.004):
        limit.on_refusal(now=1.0 + late, sent_at=1.0, accepted=8)
    assert limit.edge.refuse_time == pytest.approx(0.01)


def test_what_is_believed_is_not_where_an_outage_has_left_the_limit() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=200))
    limit.resume(now=5.0, in_flight=1, bad_time=0.1)
    assert limit.limit < 10
    assert limit.believed == 200


def test_a_remembered_limit_that_is_far_too_low_is_left_behind_within_a_few_rounds() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=4, is_known=True))
    now = 0.0
    for _ in range(6):
        now = round_of_calls(limit, now=now, latency=1.0)
    assert limit.limit >= 64


def test_a_remembered_capacity_is_not_doubted_for_the_calls_that_it_lets_in() -> None:
    limit = ConcurrencyLimit(LimitConfig(start=200, is_known=True, refuses=True))
    limit.grow(now=1.0, accepted=200)
    assert limit.refuses
    assert limit.limit <= 201
