"""What refusals say of an endpoint, in whatever order the calls that left together arrive."""

from __future__ import annotations

from plaudit.policy.edge import Edge


def refused(edge: Edge, calls: int, *, left_at: float, stayed: int, beside: int = 0, later: int = 0) -> bool:
    """So many of the calls that left together are refused; whether that is no news."""
    edge.begin(now=left_at + 0.1, left_at=left_at, order=0, may_be_alone=False)
    for n in range(calls):
        edge.add(accepted=stayed + calls - 1 - n, seconds=0.1, order=n)
    return edge.settle(stayed, now=edge.known_at, beside=beside, later=later)


def test_nothing_is_known_before_the_slowest_refusal_of_a_burst_can_be_back() -> None:
    edge = Edge()
    edge.begin(now=0.1, left_at=0.0, order=0, may_be_alone=False)
    edge.add(accepted=20, seconds=0.1, order=0)
    edge.add(accepted=20, seconds=0.3, order=1)
    assert edge.is_in_doubt
    assert edge.known_at >= 0.1 + 0.3


def test_the_same_height_again_confirms_it_and_another_begins_anew() -> None:
    edge = Edge()
    assert not refused(edge, 20, left_at=0.0, stayed=40, beside=12)
    assert refused(edge, 3, left_at=5.0, stayed=41)
    assert edge.height.confirmations == 1
    assert not refused(edge, 3, left_at=9.0, stayed=60)
    assert edge.height.confirmations == 0


def test_most_of_a_step_refused_is_a_sure_height_though_others_of_the_step_were_let_in() -> None:
    edge = Edge()
    refused(edge, 100, left_at=0.0, stayed=60, beside=28)
    assert not edge.is_weak
    assert edge.height.anchor is not None


def test_a_few_of_many_that_left_together_may_be_a_matter_of_chance() -> None:
    edge = Edge()
    refused(edge, 9, left_at=0.0, stayed=55, beside=55)
    assert edge.is_weak
    assert edge.is_exceeded(64)


def test_a_height_that_was_seen_twice_is_exceeded_only_by_calls_sent_to_challenge_it() -> None:
    edge = Edge()
    refused(edge, 4, left_at=0.0, stayed=60, beside=60)
    refused(edge, 1, left_at=2.0, stayed=59, later=8)
    assert not edge.is_exceeded(70)
    assert edge.is_to_challenge
    assert edge.challenge(16, now=4.0) > 4.0 + edge.refuse_time
    assert not edge.is_exceeded(64)
    assert edge.is_exceeded(70)


def test_a_challenge_that_is_refused_makes_the_height_sure() -> None:
    edge = Edge()
    refused(edge, 4, left_at=0.0, stayed=60, beside=60)
    refused(edge, 1, left_at=2.0, stayed=59, later=8)
    edge.challenge(16, now=4.0)
    refused(edge, 15, left_at=4.0, stayed=60, beside=1)
    assert not edge.is_weak
    assert not edge.is_exceeded(76)


def test_far_more_let_in_soon_after_a_sure_height_make_it_a_rate() -> None:
    edge = Edge()
    refused(edge, 50, left_at=0.0, stayed=14)
    now = edge.known_at + 0.5
    assert edge.rate(18, now=now, is_stray=False) is None
    rate = edge.rate(30, now=now, is_stray=False)
    assert rate is not None and 20.0 < rate < 40.0


def test_a_burst_that_left_later_calls_standing_is_no_rate() -> None:
    edge = Edge()
    refused(edge, 6, left_at=0.0, stayed=14, later=30)
    assert edge.rate(40, now=5.0, is_stray=True) is None


def test_a_single_refusal_after_many_calls_is_tolerated() -> None:
    edge = Edge()
    edge.begin(now=0.1, left_at=0.0, order=100, may_be_alone=True)
    assert not edge.add(accepted=20, seconds=0.1, order=100)
    assert edge.add(accepted=20, seconds=0.1, order=101)


def test_a_refused_call_that_left_a_moment_before_the_others_does_not_make_the_height_less() -> None:
    edge = Edge()
    edge.begin(now=0.1, left_at=0.0, order=0, may_be_alone=False)
    for n, height in enumerate([160, 160, 81, *[160] * 64]):
        edge.add(accepted=height - n - 1, seconds=0.1, order=n)
    assert edge.stayed == 93
