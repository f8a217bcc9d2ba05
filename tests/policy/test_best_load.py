"""The load that brings the most replies a second is looked for, settled on, and doubted now and then."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from plaudit.policy.best_load import BestLoad, Move


class Server:
    """Serves `knee` calls at once at full speed, and gets slower past that; always as busy as it may be."""

    def __init__(self, best: BestLoad, *, knee: float, exponent: float = 1.0) -> None:
        self.best = best
        self.knee = knee
        self.exponent = exponent
        self.now = 0.0

    def seconds(self, load: int) -> float:
        return 0.2 * float(max(1.0, load / self.knee) ** (1.0 + self.exponent))

    def round_at(self, load: int) -> Iterable[Move]:
        """A round of calls under this load; yields what the search wants."""
        seconds = self.seconds(load)
        for _ in range(max(8, load) + 1):
            self.best.on_send(now=self.now, in_flight=load, limit=load)
            area = self.best.on_send(now=self.now, in_flight=load, limit=load)
            self.now += seconds
            met = self.best.on_reply(now=self.now, sent_at=self.now - seconds, in_flight=load, area=area)
            self.best.learn(load=met, seconds=seconds, tokens=10)
            if self.best.search is None:
                self.best.doubt(load, seconds=seconds)
            elif (move := self.best.next_move(load)) is not None:
                yield move
                return

    def follow(self, load: int, *, rounds: int) -> tuple[int, list[Move]]:
        """Do what the search wants for so many rounds; the load at the end, and all moves."""
        moves: list[Move] = []
        for _ in range(rounds):
            for move in self.round_at(load):
                moves.append(move)
                load = move.load
                if move.to == "settle":
                    self.best.settle(load)
        return load, moves


def thrashing(*, start: int, knee: float) -> tuple[Server, int]:
    """A server on which more calls than `start` brought no more, and what is tried next."""
    server = Server(BestLoad(ceiling=4096), knee=knee)
    for load in (start, round(1.25 * start)):
        list(server.round_at(load))
    move = server.best.begin_below(start, is_proven=False)
    assert move is not None
    assert move.to == "try"
    return server, move.load


@pytest.mark.parametrize("knee", [6, 12, 24, 40])
def test_from_too_many_calls_it_comes_down_to_the_best(knee: int) -> None:
    server, load = thrashing(start=64, knee=knee)
    load, moves = server.follow(load, rounds=12)
    assert server.best.settled_at is not None
    assert 0.75 * knee <= server.best.settled_at <= 1.3 * knee
    assert min(move.load for move in moves) >= knee / 4


@pytest.mark.parametrize("slots", [14, 28, 44])
def test_where_calls_only_queue_it_stays_above_the_slots(slots: int) -> None:
    server = Server(BestLoad(ceiling=4096), knee=slots, exponent=0.0)
    for load in (64, 80):
        list(server.round_at(load))
    move = server.best.begin_below(64, is_proven=False)
    assert move is not None
    server.follow(move.load, rounds=12)
    assert server.best.settled_at is not None
    assert server.best.settled_at >= slots


class SharingServer(Server):
    """Gets slower with each call, but still answers more of them a second."""

    def seconds(self, load: int) -> float:
        return 0.2 * (1.0 + load / self.knee)


def test_where_calls_share_the_server_more_of_them_are_tried() -> None:
    server = SharingServer(BestLoad(ceiling=4096), knee=50)
    for load in (64, 90):
        list(server.round_at(load))
    move = server.best.begin_below(64, is_proven=False)
    assert move is not None
    _, moves = server.follow(move.load, rounds=2)
    assert moves[-1].to == "climb"
    assert moves[-1].load >= 80
    assert server.best.is_shared


def test_a_settled_load_is_doubted_less_and_less_often() -> None:
    server = Server(BestLoad(ceiling=4096), knee=20)
    server.best.settle(20)
    _, moves = server.follow(20, rounds=60)
    tries = [move for move in moves if move.to == "try"]
    assert 3 <= len(tries) <= 8
    assert server.best.settled_at is not None
    assert 16 <= server.best.settled_at <= 24


def test_a_server_that_can_do_more_than_before_is_found_out() -> None:
    server = Server(BestLoad(ceiling=4096), knee=20)
    server.best.settle(20)
    server.follow(20, rounds=3)
    server.knee = 100
    _, moves = server.follow(20, rounds=8)
    assert any(move.to == "climb" for move in moves)


def test_a_server_that_can_do_less_than_before_is_found_out_at_once() -> None:
    server = Server(BestLoad(ceiling=4096, settled_at=64, usual=0.2), knee=64)
    server.knee = 16
    load, _ = server.follow(64, rounds=10)
    assert load <= 24


def test_a_remembered_load_is_left_only_for_one_that_brings_more() -> None:
    server = Server(BestLoad(ceiling=4096, settled_at=30, usual=0.2), knee=30)
    _, moves = server.follow(30, rounds=12)
    assert all(move.load >= 30 for move in moves)
    assert server.best.settled_at == 30


def test_a_load_under_which_calls_take_far_longer_than_they_did_is_doubted_after_one_round() -> None:
    best = BestLoad(ceiling=4096)
    collapse(best, load=20, seconds=1.0, calls=20)
    best.settle(100)
    for _ in range(100):
        best.doubt(100, seconds=5.0)
    assert best.search is not None
    assert best.search.plan == [50]


def test_nothing_is_tried_past_the_ceiling() -> None:
    server = Server(BestLoad(ceiling=16), knee=100)
    server.best.settle(16)
    _, moves = server.follow(16, rounds=20)
    assert max((move.load for move in moves), default=16) <= 16


def collapse(best: BestLoad, *, load: int, seconds: float, calls: int) -> list[int]:
    """What was better, each time that a load turned out to be far too much."""
    found = [best.collapsed_from(load=load, seconds=seconds) for _ in range(calls)]
    return [load for load in found if load is not None]


def test_far_fewer_replies_under_more_load_lead_back_to_the_load_that_brought_more() -> None:
    best = BestLoad(ceiling=4096)
    assert not collapse(best, load=20, seconds=0.2, calls=40)  # 100 a second
    assert collapse(best, load=60, seconds=2.0, calls=20) == [20]  # 30 a second
    assert not collapse(best, load=60, seconds=2.0, calls=200)  # once: what was better may be gone


def test_a_remembered_load_counts_as_one_that_brought_more() -> None:
    best = BestLoad(ceiling=4096, settled_at=20, usual=0.2)
    assert collapse(best, load=60, seconds=2.0, calls=20) == [20]


def test_calls_that_only_queue_or_take_longer_under_the_same_load_are_no_collapse() -> None:
    best = BestLoad(ceiling=4096)
    assert not collapse(best, load=20, seconds=0.2, calls=40)
    assert not collapse(best, load=200, seconds=2.0, calls=400)  # ten times the calls, as many replies
    assert not collapse(best, load=22, seconds=2.0, calls=400)  # other questions, perhaps
