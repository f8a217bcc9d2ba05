"""Which endpoint takes the next call: the least full for its size, unless a faster one is still sooner."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from plaudit.policy.balance import Load, is_much_faster, is_worth_it, least_loaded

thorough = settings(max_examples=100, deadline=None, derandomize=True, database=None)


def load(in_flight: int, limit: int, seconds: float | None = None) -> Load:
    return Load(in_flight, limit, slow=seconds, typical=seconds)


loads = st.builds(
    load,
    st.integers(min_value=0, max_value=200),
    st.integers(min_value=1, max_value=200),
    st.none() | st.floats(min_value=0.01, max_value=100.0),
)


@thorough
@given(st.lists(loads, min_size=1, max_size=6), st.integers(min_value=0, max_value=255))
def test_the_chosen_endpoint_is_the_least_full_for_its_size(group: list[Load], tie: int) -> None:
    chosen = group[least_loaded(group, tie=tie)]
    assert all(chosen.in_flight / chosen.limit <= other.in_flight / other.limit for other in group)


def test_equals_share_the_calls() -> None:
    group = [load(3, 10), load(3, 10), load(9, 10)]
    assert {least_loaded(group, tie=tie) for tie in range(256)} == {0, 1}


def test_a_larger_endpoint_takes_more() -> None:
    assert least_loaded([load(20, 100), load(8, 16)], tie=0) == 0


@thorough
@given(st.lists(loads, min_size=1, max_size=6), st.integers(min_value=0, max_value=5000))
def test_there_is_always_an_endpoint_worth_sending_to(group: list[Load], backlog: int) -> None:
    worth = [
        is_worth_it(here, [other for other in group if other is not here], backlog=backlog) for here in group
    ]
    assert any(worth)


def test_a_slow_endpoint_does_not_take_the_last_call_from_a_fast_one() -> None:
    fast, slow = load(10, 10, 1.0), load(0, 10, 30.0)
    assert not is_worth_it(slow, [fast], backlog=1)
    assert is_worth_it(fast, [slow], backlog=1)


def test_a_slow_endpoint_helps_while_there_is_much_to_do() -> None:
    fast, slow = load(10, 10, 1.0), load(0, 10, 30.0)
    assert is_worth_it(slow, [fast], backlog=1000)


def test_an_endpoint_of_unknown_speed_gets_its_chance() -> None:
    assert is_worth_it(load(0, 10), [load(0, 10, 1.0)], backlog=1)
    assert is_worth_it(load(0, 10, 1.0), [load(0, 10)], backlog=1)


def test_a_little_faster_is_not_much_faster() -> None:
    assert is_much_faster(load(0, 1, 1.0), than=load(0, 1, 10.0))
    assert not is_much_faster(load(0, 1, 1.0), than=load(0, 1, 1.05))
    assert not is_much_faster(load(0, 1, 10.0), than=load(0, 1, 1.0))
    assert not is_much_faster(load(0, 1), than=load(0, 1, 10.0))


def test_two_endpoints_alike_share_the_work_though_one_was_a_little_slower() -> None:
    quick, slower = load(8, 32, 2.0), load(0, 32, 2.4)
    assert is_worth_it(slower, [quick], backlog=1)
