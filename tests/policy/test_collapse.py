"""An endpoint that goes down under too many calls is not brought down for ever."""

from __future__ import annotations

import math

from plaudit.policy.collapse import Collapse


class Server:
    """Goes down, with all its calls, once more than so many are under way."""

    def __init__(self, collapse: Collapse, *, stands: int) -> None:
        self.collapse = collapse
        self.stands = stands
        self.now = 0.0
        self.crashes = 0

    def serve(self, load: int, *, rounds: int) -> None:
        """Keep so many calls under way, if that many may be, until it goes down."""
        for _ in range(rounds):
            calls = int(min(load, self.collapse.bound))
            sent_at = self.now
            for n in range(calls):  # the second half a little later, as the limit rises
                self.now = sent_at + (0.2 if n >= calls // 2 else 0.0)
                self.collapse.on_send(now=self.now, in_flight=n + 1)
            self.now += 0.02
            if calls > self.stands:
                self.crashes += 1
                for _ in range(calls):
                    self.collapse.on_failure(
                        now=self.now, sent_at=sent_at, in_flight=calls, was_connected=True
                    )
                self.collapse.on_shut(now=self.now, bad_time=0.02)
                self.now += 5.0
                continue
            self.now += 1.0
            for _ in range(calls):
                self.collapse.on_reply(now=self.now, sent_at=sent_at, height=calls)


def test_a_load_that_brings_it_down_is_soon_left_for_good() -> None:
    server = Server(Collapse(), stands=73)
    server.serve(64, rounds=1)
    server.serve(128, rounds=200)
    assert server.crashes <= 5
    assert 55 <= server.collapse.bound <= 73


def test_where_even_the_first_calls_are_too_many_half_as_many_are_tried() -> None:
    server = Server(Collapse(), stands=9)
    server.serve(64, rounds=100)
    assert server.crashes <= 7
    assert 4 <= server.collapse.bound <= 9


def test_what_was_learned_is_kept_for_the_next_run() -> None:
    server = Server(Collapse(known=80), stands=73)
    server.serve(128, rounds=200)
    assert server.crashes <= 4
    assert 55 <= server.collapse.bound <= 73


def test_an_outage_long_after_the_last_rise_has_nothing_to_do_with_the_load() -> None:
    server = Server(Collapse(), stands=1000)
    server.serve(100, rounds=5)
    for _ in range(100):
        server.collapse.on_failure(
            now=server.now, sent_at=server.now - 0.5, in_flight=100, was_connected=True
        )
    server.collapse.on_shut(now=server.now, bad_time=0.02)
    assert server.collapse.bound == math.inf


def test_one_unlucky_outage_costs_a_few_rounds() -> None:
    server = Server(Collapse(), stands=150)
    server.serve(100, rounds=1)
    server.serve(200, rounds=1)
    server.stands = 1000
    server.serve(200, rounds=8)
    assert server.crashes == 1
    assert server.collapse.bound == math.inf


def test_calls_that_fail_at_once_from_the_start_say_nothing_of_their_number() -> None:
    collapse = Collapse()
    for n in range(64):
        collapse.on_send(now=0.0, in_flight=n + 1)
    for _ in range(64):
        collapse.on_failure(now=0.02, sent_at=0.0, in_flight=64, was_connected=True)
    collapse.on_shut(now=0.02, bad_time=0.02)
    assert collapse.bound == math.inf


def test_calls_that_go_on_while_new_ones_fail_show_that_it_stands() -> None:
    collapse = Collapse()
    for n in range(64):
        collapse.on_send(now=0.0, in_flight=n + 1)
    for _ in range(20):
        collapse.on_failure(now=0.02, sent_at=0.0, in_flight=64, was_connected=True)
    collapse.on_shut(now=0.02, bad_time=0.02)
    assert collapse.bound == math.inf


class Banning:
    """Lets so many calls at once in for a second and refuses a few more; then shuts us out for a while."""

    def __init__(self, collapse: Collapse, *, allows: int, away: float = 15.0) -> None:
        self.collapse = collapse
        self.allows = allows
        self.away = away
        self.now = 0.0
        self.bans = 0

    def serve(self, load: int, *, rounds: int) -> None:
        for _ in range(rounds):
            calls = int(min(load, self.collapse.bound))
            for n in range(calls):
                self.collapse.on_send(now=self.now, in_flight=n + 1)
            sent_at, self.now = self.now, self.now + 1.0
            for _ in range(min(calls, self.allows)):
                self.collapse.on_reply(now=self.now, sent_at=sent_at, height=calls)
            if calls > self.allows:
                self.bans += 1
                self.collapse.on_shut(now=self.now, bad_time=0.1, early=calls - self.allows)
                self.now += self.away
                self.collapse.on_open(now=self.now)


def test_where_refusals_have_us_shut_out_far_fewer_are_sent() -> None:
    server = Banning(Collapse(), allows=40)
    server.serve(160, rounds=300)
    assert server.bans <= 8
    assert server.collapse.crashed_at is None  # who is shut out has not brought it down


def test_where_fewer_calls_bring_no_more_as_many_as_before_are_sent() -> None:
    class Window(Banning):
        """Lets forty calls in, and is away for the rest of the minute, whatever is sent."""

        left = 40

        def serve(self, load: int, *, rounds: int) -> None:
            for _ in range(rounds):
                calls = int(min(load, self.collapse.bound))
                for n in range(calls):
                    self.collapse.on_send(now=self.now, in_flight=n + 1)
                sent_at, self.now = self.now, self.now + 1.0
                for _ in range(min(calls, self.left)):
                    self.collapse.on_reply(now=self.now, sent_at=sent_at, height=calls)
                self.left -= min(calls, self.left)
                if not self.left:
                    self.collapse.on_shut(now=self.now, bad_time=0.1, early=10)
                    self.now = (self.now // 60.0 + 1.0) * 60.0
                    self.left = 40
                    self.collapse.on_open(now=self.now)

    server = Window(Collapse(), allows=40)
    server.serve(160, rounds=60)
    assert server.collapse.bound == math.inf
