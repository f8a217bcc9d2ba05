"""What a row without a score gets where rows come one at a time."""

from __future__ import annotations

from plaudit.rewards.failure import GROUPS_KEPT, WINDOW, StandIns


def test_it_is_the_mean_of_the_group_else_of_the_source_else_the_middle() -> None:
    stand_ins = StandIns()
    assert stand_ins.value("failed", group="g", source="s") == 0.5
    stand_ins.add(0.0, group="other", source="s")
    assert stand_ins.value("failed", group="g", source="s") == 0.0
    stand_ins.add(0.4, group="g", source="s")
    stand_ins.add(0.8, group="g", source="s")
    assert stand_ins.value("failed", group="g", source="s") == (0.4 + 0.8) / 2
    assert stand_ins.value("failed", group=None, source="s") == (0.0 + 0.4 + 0.8) / 3


def test_a_failure_that_the_response_may_have_caused_is_worth_the_floor_where_its_group_is_unknown() -> None:
    stand_ins = StandIns()
    stand_ins.add(0.9, group="easy", source="s")
    for status in ("refused", "unreadable", "flagged", "screened"):
        assert stand_ins.value(status, group="hard", source="s") == 0.0
        assert stand_ins.value(status, group="easy", source="s") == 0.9
    assert stand_ins.value("deadline", group="hard", source="s") == 0.9


def test_a_sibling_is_awaited_only_while_one_is_being_scored() -> None:
    stand_ins = StandIns()
    assert stand_ins.sibling("g") is None
    stand_ins.begin(["g", "h", None])
    first, second, other = stand_ins.sibling("g"), stand_ins.sibling("g"), stand_ins.sibling("h")
    assert first is not None
    assert second is not None
    assert other is not None
    stand_ins.add(0.4, group="g", source="s")
    stand_ins.end(["g"])
    assert first.done()
    assert second.done()
    assert not other.done()
    stand_ins.end(["h"])  # it failed too: there is nothing to wait for any more
    assert other.done()
    assert stand_ins.sibling("h") is None


def test_it_counts_what_was_missing_among_the_last() -> None:
    stand_ins = StandIns()
    assert [stand_ins.miss() for _ in range(3)] == [1, 2, 3]
    for _ in range(WINDOW - 2):
        stand_ins.add(1.0, group=None, source="s")
    assert stand_ins.miss() == 2


def test_it_forgets_the_oldest_groups() -> None:
    stand_ins = StandIns()
    for group in range(GROUPS_KEPT + 1):
        stand_ins.add(1.0 if group else 9.0, group=group, source="s")
    assert stand_ins.value("failed", group=0, source="elsewhere") == 0.5
    assert stand_ins.value("failed", group=1, source="elsewhere") == 1.0
