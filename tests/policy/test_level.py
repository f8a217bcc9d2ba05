"""Whether a height was worth reaching: more calls must bring more replies, whatever their length."""

from __future__ import annotations

import random

import pytest

from plaudit.policy.level import MOST, Level, fit


def filled(level: Level, *, at: float, calls: int) -> Level:
    """Send calls until the level is full."""
    for n in range(calls):
        level.on_send(now=at, in_flight=level.target - calls + n + 1)
    return level


def answered(level: Level, latencies: list[tuple[float, int]], *, sent_at: float) -> Level:
    for latency, tokens in latencies:
        level.on_success(now=sent_at + latency, sent_at=sent_at, tokens=tokens)
    return level


def proven(*, target: int, latency: float) -> Level:
    """A level with all its replies."""
    level = filled(Level(target=target, base=target // 2, began=0.0), at=0.0, calls=target)
    answered(level, [(latency, 0)] * target, sent_at=0.0)
    level.close()
    return level


def compared(*, slowdown: float) -> float | None:
    before = proven(target=32, latency=2.0)
    level = filled(Level(target=64, base=32, began=10.0), at=10.0, calls=32)
    answered(level, [(2.0 * slowdown, 0)] * 32, sent_at=10.0)
    return level.gain_over(before, now=10.0 + 2.0 * slowdown)


def test_twice_the_calls_at_the_same_speed_are_twice_the_replies() -> None:
    assert compared(slowdown=1.0) == pytest.approx(2.0)


def test_twice_the_calls_at_half_the_speed_are_no_gain() -> None:
    gain = compared(slowdown=2.0)
    assert gain is not None and gain <= 1.05


def test_thrashing_is_a_loss() -> None:
    gain = compared(slowdown=5.0)
    assert gain is not None and gain <= 1.05


def test_nothing_is_known_before_the_level_is_full() -> None:
    before = proven(target=32, latency=2.0)
    level = filled(Level(target=64, base=32, began=10.0), at=10.0, calls=32)
    assert level.gain_over(before, now=10.1) is None


def test_a_level_that_is_never_full_does_not_keep_all_its_replies() -> None:
    level = Level(target=100, base=50, began=0.0)
    for second in range(10_000):
        level.on_send(now=float(second), in_flight=1)
        level.on_success(now=second + 0.5, sent_at=float(second), tokens=second)
    assert level.sent <= MOST
    assert len(level.latencies) == len(level.pairs) == level.sent


def test_no_reply_for_long_is_no_gain_either() -> None:
    before = proven(target=32, latency=2.0)
    level = filled(Level(target=64, base=32, began=10.0), at=10.0, calls=32)
    gain = level.gain_over(before, now=1000.0)
    assert gain is not None and gain <= 1.0


def test_the_first_level_is_held_to_nothing() -> None:
    level = filled(Level(target=64, base=32, began=0.0), at=0.0, calls=64)
    answered(level, [(50.0, 0)] * 64, sent_at=0.0)
    gain = level.gain_over(None, now=50.0)
    assert gain is not None and gain > 1.5


def test_replies_to_calls_that_met_another_load_say_nothing() -> None:
    before = proven(target=32, latency=2.0)
    level = filled(Level(target=64, base=32, began=10.0), at=10.0, calls=32)
    answered(level, [(0.001, 0)] * 32, sent_at=5.0)
    assert level.gain_over(before, now=10.1) is None


def test_short_answers_that_come_first_are_not_taken_for_speed() -> None:
    chance = random.Random(7)
    before = filled(Level(target=32, base=16, began=0.0), at=0.0, calls=32)
    lengths = [chance.randint(20, 400) for _ in range(32)]
    answered(before, [(0.3 + 0.02 * n, n) for n in lengths], sent_at=0.0)
    before.close()
    level = filled(Level(target=64, base=32, began=10.0), at=10.0, calls=32)
    shortest = [20, 24, 30, 33]
    answered(level, [(2 * (0.3 + 0.02 * n), n) for n in shortest], sent_at=10.0)  # everything takes twice
    gain = level.gain_over(before, now=13.0)
    assert gain == pytest.approx(1.0, abs=0.1)


def test_a_line_through_latencies_finds_seconds_per_token() -> None:
    line = fit([(tokens, 0.3 + 0.02 * tokens) for tokens in (10, 50, 200, 120, 80)])
    assert line is not None
    assert line[0] == pytest.approx(0.3)
    assert line[1] == pytest.approx(0.02)


def test_no_line_is_drawn_through_noise_or_through_too_little() -> None:
    chance = random.Random(3)
    assert fit([(chance.randint(1, 300), chance.random()) for _ in range(50)]) is None
    assert fit([(10, 1.0), (20, 2.0)]) is None
    assert fit([(100, 1.0 + n / 10) for n in range(20)]) is None  # one length explains nothing


def test_neither_part_of_a_line_is_negative() -> None:
    line = fit([(tokens, max(0.02 * tokens - 1.0, 0.01)) for tokens in (60, 80, 120, 200, 300)])
    assert line is not None
    assert line[0] >= 0.0 and line[1] >= 0.0


def test_a_level_whose_calls_have_gone_astray_is_stale_once_two_rounds_of_later_ones_are_back() -> None:
    level = filled(Level(target=10, base=5, began=0.0), at=0.0, calls=10)
    answered(level, [(1.0, 0)] * 3, sent_at=0.0)
    answered(level, [(1.0, 0)] * 20, sent_at=5.0)
    assert not level.is_stale
    answered(level, [(1.0, 0)], sent_at=5.0)
    assert level.is_stale


def line_of(intercept: float, slope: float, *, target: int) -> Level:
    level = Level(target=target, base=target, began=0.0, filled_at=0.0, sent=target)
    level.latencies, level.line = [intercept + slope * 100], (intercept, slope)
    return level


def test_replies_that_were_on_their_way_when_a_level_was_full_do_not_make_it_look_free() -> None:
    before, level = line_of(0.1, 0.001, target=16), Level(target=32, base=16, began=1.0, filled_at=1.0)
    for _ in range(8):  # expected at 1.2, come at 1.05: whatever sped them up, it was not the load since
        level.on_older(before, now=1.05, sent_at=0.9, tokens=200)
    assert not level.is_free(before, now=1.05)


@pytest.mark.parametrize(("back", "is_held_up"), [(4, True), (16, False)])
def test_the_first_replies_say_nothing_while_far_fewer_are_back_than_the_time_would_bring(
    back: int, is_held_up: bool
) -> None:
    before = filled(Level(target=32, base=16, began=0.0), at=0.0, calls=32)
    answered(before, [(0.1 * (n + 1), 0) for n in range(32)], sent_at=0.0)
    level = filled(Level(target=64, base=32, began=10.0), at=10.0, calls=32)
    answered(level, [(0.1 * (n + 1), 0) for n in range(back)], sent_at=10.0)
    assert level.gain_over(before, now=10.45) == pytest.approx(2.0)  # until then four replies are as many
    assert level.is_held_up(before, now=11.65) is is_held_up
    gain = level.gain_over(before, now=11.65)
    assert gain == pytest.approx(1.0 if is_held_up else 2.0)
