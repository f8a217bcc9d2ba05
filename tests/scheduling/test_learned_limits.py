"""What was learned about endpoints outlives the process, and a damaged file costs a few probes at most."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest
from dispatching import Bench, FakeServer, numbered
from msgspec.structs import replace
from simulation import score_batches, seeded

from plaudit.config import Endpoint, EngineConfig
from plaudit.errors import RateLimited, TransportFailed
from plaudit.policy.limit import LimitConfig
from plaudit.policy.pace import Pace
from plaudit.scheduling.lane import Lane
from plaudit.scheduling.learned_limits import MAX_AGE, Learned, learned_of, load, save
from plaudit.simulator import Latency, Queue, Rate, Reject, Scenario, SimulatedTransport
from plaudit.testing import run
from plaudit.types import Reply

NOW = 1_700_000_000.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "not yet there" / "limits.json"


def test_what_was_saved_is_loaded_in_another_process(path: Path) -> None:
    told = {
        "http://a/v1 m": Learned(at=NOW, limit=64, refuses=True),
        "http://b/v1 m": Learned(at=NOW, rate=12.5, burst=30),
    }
    save(path, told, now=NOW)
    assert load(path, now=NOW + 60.0) == told


def test_news_are_added_to_what_is_known(path: Path) -> None:
    save(path, {"a": Learned(at=NOW, limit=10), "b": Learned(at=NOW, limit=20)}, now=NOW)
    save(path, {"b": Learned(at=NOW + 1, limit=30)}, now=NOW + 1)
    known = load(path, now=NOW + 2)
    assert {name: learned.limit for name, learned in known.items()} == {"a": 10, "b": 30}


def test_nothing_learned_writes_nothing(path: Path) -> None:
    save(path, {}, now=NOW)
    assert not path.exists()


def test_what_is_old_or_from_the_future_is_forgotten(path: Path) -> None:
    save(path, {"a": Learned(at=NOW, limit=10)}, now=NOW)
    assert load(path, now=NOW + MAX_AGE - 1.0)
    assert load(path, now=NOW + MAX_AGE + 1.0) == {}
    assert load(path, now=NOW - 3600.0) == {}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\x00\xff\xfe",
        b"[]",
        b'{"a": 5}',
        b'{"a": {"limit": 5}}',
        b'{"a": {"at": "yesterday", "limit": 5}}',
        b'{"a": {"at": 1700000000.0, "limit": 0}}',
        b'{"a": {"at": 1700000000.0, "limit": -4}}',
        b'{"a": {"at": 1700000000.0, "rate": 0.0}}',
        b'{"a": {"at": 1700000000.0, "rate": -1.0}}',
    ],
)
def test_a_damaged_file_means_that_nothing_is_known(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "limits.json"
    path.write_bytes(content)
    assert load(path, now=NOW + 1.0) == {}
    save(path, {"a": Learned(at=NOW, limit=7)}, now=NOW)
    assert load(path, now=NOW)["a"].limit == 7


def test_fields_of_a_later_version_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "limits.json"
    path.write_bytes(b'{"a": {"at": 1700000000.0, "limit": 5, "colour": "blue"}}')
    assert load(path, now=NOW)["a"].limit == 5


def test_a_missing_file_or_a_folder_in_its_place_means_that_nothing_is_known(tmp_path: Path) -> None:
    assert load(tmp_path / "none.json", now=NOW) == {}
    (tmp_path / "folder.json").mkdir()
    assert load(tmp_path / "folder.json", now=NOW) == {}
    save(tmp_path / "folder.json", {"a": Learned(at=NOW, limit=7)}, now=NOW)
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder.json"]  # and no litter


def test_a_folder_that_cannot_be_made_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    save(tmp_path / "file" / "limits.json", {"a": Learned(at=NOW, limit=7)}, now=NOW)
    assert load(tmp_path / "file" / "limits.json", now=NOW) == {}


def test_a_full_disk_keeps_what_was_known_and_nothing_else(path: Path) -> None:
    resource = pytest.importorskip("resource")
    save(path, {"a": Learned(at=NOW, limit=7)}, now=NOW)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, limits[1]))  # no file grows beyond four bytes
    try:
        save(path, {"b": Learned(at=NOW, limit=8)}, now=NOW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_several_writers_never_leave_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "limits.json"

    def save_often(name: str) -> None:
        for n in range(1, 60):
            save(path, {name: Learned(at=NOW, limit=n)}, now=NOW)

    writers = [threading.Thread(target=save_often, args=(name,)) for name in "abc"]
    for writer in writers:
        writer.start()
    reads = 0
    while any(writer.is_alive() for writer in writers):
        if path.exists():
            assert msgspec.json.decode(path.read_bytes(), type=dict[str, Learned])
            reads += 1
    for writer in writers:
        writer.join()
    assert reads
    assert [entry.name for entry in tmp_path.iterdir()] == ["limits.json"]


def test_a_guess_is_not_remembered() -> None:
    lane = Lane(Endpoint("http://a/v1", model="m"), FakeServer())
    assert learned_of(lane, now=NOW) is None


@pytest.mark.parametrize("slots", [12, 24, 48, 100])
def test_a_limit_found_by_refusals_is_remembered_as_such(slots: int) -> None:
    async def main() -> None:
        transport = SimulatedTransport(Scenario(capacity=Reject(slots=slots), seed=1))
        async with Bench(transport) as bench:
            await bench.ask_all(*numbered(300))
            learned = learned_of(bench.lanes[0], now=NOW)
            assert learned is not None
            assert learned.limit is not None and 0.8 * slots <= learned.limit <= 1.25 * slots
            assert learned.refuses

    run(main())


@pytest.mark.parametrize("slots", [50, 60, 90])
def test_of_a_climb_past_the_slots_of_a_silent_queue_no_more_is_remembered_than_they_need(slots: int) -> None:
    async def main() -> None:
        latency = Latency(sigma=0.6).scaled_to(0.25)
        transport = SimulatedTransport(Scenario(latency=latency, capacity=Queue(slots=slots), seed=1))
        async with Bench(transport) as bench:
            await bench.ask_all(*numbered(1000))
            assert bench.lanes[0].limit.limit > 9 * slots
            learned = learned_of(bench.lanes[0], now=NOW)
            assert learned is not None
            assert learned.settled
            assert learned.limit is not None and slots <= learned.limit <= 8 * slots

    run(main())


def test_a_rate_that_was_measured_is_remembered_in_place_of_a_limit_with_its_burst() -> None:
    async def main() -> None:
        transport = SimulatedTransport(
            Scenario(capacity=Rate(per_second=20.0, burst=5, hints="none"), seed=1)
        )
        async with Bench(transport) as bench:
            await bench.ask_all(*numbered(600))
            learned = learned_of(bench.lanes[0], now=NOW)
            assert learned is not None
            assert learned.limit is None
            assert learned.rate is not None and 14.0 <= learned.rate <= 30.0
            assert learned.burst <= 20

    run(main())


def test_a_rate_that_nobody_measured_is_not_remembered() -> None:
    lane = Lane(Endpoint("http://a/v1", model="m"), FakeServer())
    lane.begin_pace(20.0, now=0.0)
    assert learned_of(lane, now=NOW) is None


def test_a_capacity_far_below_what_was_under_way_at_once_is_not_remembered() -> None:
    lane = Lane(
        Endpoint("http://a/v1", model="m"),
        FakeServer(),
        start=LimitConfig(start=40, is_known=True, refuses=True),
    )
    assert learned_of(lane, now=NOW) is not None
    lane.limit.proven = 400
    assert learned_of(lane, now=NOW) is None


def test_a_rate_below_what_was_answered_on_average_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    lane = Lane(Endpoint("http://a/v1", model="m"), FakeServer())
    lane.begin_pace(10.0, now=0.0)
    monkeypatch.setattr(Pace, "is_proven", True)
    lane.answered = 300
    lane._newest_answered = 100.0
    assert learned_of(lane, now=NOW) == Learned(at=NOW, rate=10.0)
    lane._newest_answered = 31.0
    assert learned_of(lane, now=NOW) == Learned(at=NOW, rate=10.0)
    lane._newest_answered = 20.0
    assert learned_of(lane, now=NOW) is None


def test_nothing_is_remembered_of_an_endpoint_that_was_never_there() -> None:
    async def main() -> None:
        async with Bench(FakeServer(TransportFailed("502"), latency=0.05)) as bench:
            await bench.ask_all(*numbered(300))
            assert learned_of(bench.lanes[0], now=NOW) is None

    run(main())


def test_the_users_own_ceiling_is_not_taken_for_what_the_endpoint_bears() -> None:
    async def main() -> None:
        server = FakeServer(Reply("7"))
        async with Bench(server, config=EngineConfig(max_concurrent=8)) as bench:
            await bench.ask_all(*numbered(300))
            assert learned_of(bench.lanes[0], now=NOW) is None

    run(main())


def test_the_next_process_starts_where_this_one_ended(path: Path) -> None:
    server = seeded(Scenario(capacity=Reject(slots=200)), 8)
    cold = score_batches([server])[0]
    save(path, {"s": Learned(at=NOW, limit=cold.limits[0], refuses=True)}, now=NOW)
    known = load(path, now=NOW + 3600.0)["s"]
    assert known.limit is not None
    warm = score_batches([server], start=known.start)[0]
    assert warm.over_ideal <= min(cold.over_ideal, 1.1)
    first_second = [event for event in warm.events if event.at == 0.0]
    assert len(first_second) >= 190  # all of them at once, with no search


def test_a_climb_that_the_end_of_a_run_cut_short_goes_on_with_the_next_level() -> None:
    known = Learned(at=NOW, limit=300)
    assert known.start == LimitConfig(start=600)
    assert replace(known, collapses_at=400).start == LimitConfig(start=600, collapses_at=400)
    assert replace(known, settled=True).start == LimitConfig(start=300, is_known=True, is_settled=True)
    lane = Lane(Endpoint("http://a/v1", model="m"), FakeServer(), start=known.start)
    assert learned_of(lane, now=NOW) is None  # or each run that sends a few calls would double it


def test_a_remembered_limit_that_no_longer_holds_is_unlearned() -> None:
    shrunk = seeded(Scenario(capacity=Reject(slots=16)), 8)
    start = LimitConfig(start=200, is_known=True, refuses=True)
    result = score_batches([shrunk], samples=500, start=start)[0]
    assert result.failures == 0
    assert 12 <= result.limits[0] <= 24


def test_an_endpoint_that_once_refused_is_not_lost_for_it() -> None:
    async def main() -> None:
        server = FakeServer(lambda a: RateLimited("slow down") if a.arrival < 3 else Reply("7"))
        async with Bench(server) as bench:
            await bench.ask_all(*numbered(50))
            assert not bench.lanes[0].is_lost

    run(main())
