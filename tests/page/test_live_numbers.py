"""What the page is told once a second."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plaudit.journal.activity import Activity, EndpointActivity
from plaudit.journal.index import JournalIndex
from plaudit.journal.writer import JournalWriter
from plaudit.page.live_numbers import news


def moment(at: float, session: str, **endpoint: float) -> Activity:
    return Activity(
        at=at,
        session=session,
        waiting=int(endpoint.get("in_flight", 0)),
        endpoints={"http://host/v1 m": EndpointActivity(**endpoint)},  # type: ignore[arg-type]
    )


def journal(path: Path, moments: Sequence[Activity]) -> JournalIndex:
    JournalWriter(path).close()
    index = JournalIndex(path)
    index.activity.extend(moments)
    return index


def test_engines_that_share_a_journal_are_added_up(tmp_path: Path) -> None:
    moments = [
        moment(100.0, "a", in_flight=8, limit=16, ok=0),
        moment(101.0, "b", in_flight=4, limit=8, ok=10),
        moment(102.0, "a", in_flight=8, limit=16, ok=20, rate_limited=3),
        moment(103.0, "b", in_flight=2, limit=8, ok=30),
    ]
    with journal(tmp_path / "j", moments) as index:
        found = news(index, now=104.0)
    (endpoint,) = found["endpoints"]
    assert endpoint["in_flight"] == [8, 12, 12, 2]  # the first engine ends at 102
    assert endpoint["limit"] == [16, 24, 24, 8]
    assert endpoint["answered_per_s"] == [0.0, 10.0, 20.0, 20.0]
    assert (endpoint["ok"], endpoint["rate_limited"]) == (50, 3)
    assert found["live"]["series"]["waiting"] == [8, 12, 12, 2]


def test_a_pace_is_told_in_place_of_the_limit(tmp_path: Path) -> None:
    with journal(tmp_path / "j", [moment(100.0, "a", in_flight=8, limit=4096, pace=2.5)]) as index:
        (endpoint,) = news(index, now=101.0)["endpoints"]
    assert (endpoint["limit"], endpoint["pace"]) == ([None], [2.5])


def test_a_run_that_is_over_is_shown_whole_and_one_under_way_by_its_last_minutes(tmp_path: Path) -> None:
    moments = [moment(100.0 + n, "a", in_flight=n, ok=n) for n in range(3000)]
    with journal(tmp_path / "j", moments) as index:
        over, live = news(index, now=10_000.0), news(index, now=3100.0)
    assert not over["live"]["is_live"] and over["live"]["series"]["at"][0] < 120.0
    assert live["live"]["is_live"] and live["live"]["series"]["at"][0] >= 2500.0
    assert over["live"]["last_at"] == 3099.0
    assert max(live["endpoints"][0]["answered_per_s"]) < 1.5


def test_a_run_on_a_machine_with_another_clock_is_live_while_it_writes(tmp_path: Path) -> None:
    moments = [moment(5000.0, "ahead", in_flight=1)]
    with journal(tmp_path / "j", moments) as index:
        assert not news(index, now=1000.0)["live"]["is_live"]  # it ended; only its clock is ahead
        JournalWriter(tmp_path / "j", look=lambda: moment(0.0, "", in_flight=3)).close()
        index.refresh()
        assert news(index, now=9e9)["live"]["is_live"]
