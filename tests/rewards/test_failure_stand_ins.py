"""What a row without a score gets where rows come one at a time."""

from __future__ import annotations

from plaudit.rewards.failure import GROUPS_KEPT, QUIET, SAME_STEP, WINDOW, StandIns


def scored(stand_ins: StandIns, group: str | int, *scores: float, now: float = 0.0) -> None:
    """Score rows of a group, one after another."""
    for score in scores:
        stand_ins.begin([group], now=now)
        stand_ins.add(score, group=group, source="s")
        stand_ins.end([group], now=now)


def test_it_is_the_mean_of_its_own_group_and_of_no_other() -> None:
    stand_ins = StandIns()
    scored(stand_ins, "easy", 0.9, 1.0)
    scored(stand_ins, "g", 0.4, 0.8)
    assert stand_ins.value("failed", group="g", source="s") == (0.4 + 0.8) / 2
    assert stand_ins.value("refused", group="g", source="s") == (0.4 + 0.8) / 2


def test_without_siblings_it_is_the_floor_so_that_no_failure_pays() -> None:
    stand_ins = StandIns()
    scored(stand_ins, "easy", 0.9)
    for status in ("refused", "unreadable", "flagged", "screened", "failed", "deadline"):
        assert stand_ins.value(status, group="hard", source="s") == 0.0


def test_rows_of_no_group_get_the_mean_of_their_source_unless_the_response_is_the_cause() -> None:
    stand_ins = StandIns()
    assert stand_ins.value("failed", group=None, source="s") == 0.5
    for score in (0.2, 0.4):
        stand_ins.add(score, group=None, source="s")
    assert stand_ins.value("failed", group=None, source="s") == (0.2 + 0.4) / 2
    assert stand_ins.value("refused", group=None, source="s") == 0.0


def test_a_wait_ends_once_though_several_rows_of_its_group_end_together() -> None:
    stand_ins = StandIns()
    stand_ins.begin(["g"], now=0.0)
    stand_ins.begin(["g", "g"], now=0.0)
    stand_ins.end(["g"], now=1.0)
    wait = stand_ins.siblings("g", now=1.0)
    assert wait is not None
    stand_ins.end(["g", "g"], now=2.0)
    assert wait[0].done()


def test_a_row_waits_for_all_siblings_that_are_being_scored() -> None:
    stand_ins = StandIns()
    for group in ("g", "g", "g", "h"):
        stand_ins.begin([group, None], now=0.0)
    stand_ins.end(["g"], now=1.0)  # this one failed
    first = stand_ins.siblings("g", now=1.0)
    assert first is not None
    stand_ins.end(["g"], now=2.0)
    assert first[0].done()
    assert stand_ins.siblings("g", now=2.0) is not None  # another is left
    stand_ins.end(["g"], now=3.0)
    last = stand_ins.siblings("g", now=3.0)  # one of "g" may come yet
    assert last is not None
    assert last[1] == QUIET
    assert stand_ins.siblings("g", now=3.0 + QUIET) is None


def test_a_caller_of_one_row_after_another_waits_for_nothing() -> None:
    stand_ins = StandIns()
    assert stand_ins.siblings("g", now=0.0) is None
    for group in ("g", "h", "g"):
        stand_ins.begin([group], now=0.0)
        stand_ins.end([group], now=0.0)
        assert stand_ins.siblings(group, now=0.0) is None


def test_the_first_response_of_a_step_waits_though_no_other_is_there_yet() -> None:
    stand_ins = StandIns()
    stand_ins.begin(["g"], now=0.0)
    stand_ins.begin(["h"], now=0.0)
    stand_ins.end(["g"], now=0.0)
    stand_ins.end(["h"], now=0.0)
    wait = stand_ins.siblings("g", now=0.0)  # it failed at once, and its siblings are being generated
    assert wait is not None
    scored(stand_ins, "g", 0.9, now=3.0)
    assert wait[0].done()
    assert stand_ins.siblings("g", now=3.0 + QUIET) is None
    assert stand_ins.value("failed", group="g", source="s") == 0.9


def test_once_a_group_has_as_many_rows_as_those_before_it_no_more_is_awaited() -> None:
    stand_ins = StandIns()
    scored(stand_ins, "before", 0.1, 0.2, 0.3)
    stand_ins.begin(["busy"], now=QUIET)
    stand_ins.begin(["g", "g"], now=QUIET)
    stand_ins.end(["g", "g"], now=QUIET)
    assert stand_ins.siblings("g", now=QUIET) is not None  # a third is to come
    scored(stand_ins, "g", 0.5, now=QUIET + 1)
    assert stand_ins.siblings("g", now=QUIET + 1) is None


def test_the_same_prompt_in_a_later_step_is_another_group() -> None:
    stand_ins = StandIns()
    scored(stand_ins, "g", 0.1, 0.1)
    scored(stand_ins, "g", 0.7, 0.9, now=QUIET + 1)
    assert stand_ins.value("failed", group="g", source="s") == (0.7 + 0.9) / 2


def test_once_the_size_is_known_the_next_step_may_follow_at_once() -> None:
    stand_ins = StandIns()
    scored(stand_ins, "other", 0.5, 0.5, now=-QUIET)
    scored(stand_ins, "g", 0.1, 0.1)
    scored(stand_ins, "g", 0.7, 0.9)
    assert stand_ins.value("failed", group="g", source="s") == (0.7 + 0.9) / 2


def test_a_sibling_that_comes_late_is_one_still() -> None:
    stand_ins = StandIns()
    scored(stand_ins, "other", 0.0, 0.0, 0.0)
    scored(stand_ins, "g", 0.1, 0.3)
    stand_ins.begin(["busy"], now=QUIET)
    stand_ins.begin(["g"], now=QUIET * 2)
    assert stand_ins.value("failed", group="g", source="s") == (0.1 + 0.3) / 2
    stand_ins.end(["g"], now=QUIET * 2)
    scored(stand_ins, "g", 0.5, now=SAME_STEP * 3)  # not by then
    assert stand_ins.value("failed", group="g", source="s") == 0.5


def test_it_counts_what_was_missing_among_the_last() -> None:
    stand_ins = StandIns()
    assert [stand_ins.miss() for _ in range(3)] == [1, 2, 3]
    for _ in range(WINDOW - 2):
        stand_ins.add(1.0, group=None, source="s")
    assert stand_ins.miss() == 2


def test_it_forgets_the_oldest_groups() -> None:
    stand_ins = StandIns()
    for group in range(GROUPS_KEPT + 1):
        scored(stand_ins, group, 1.0, now=group * QUIET)
    stand_ins.begin([], now=QUIET * (GROUPS_KEPT + 2))
    assert stand_ins.value("failed", group=0, source="elsewhere") == 0.0
    assert stand_ins.value("failed", group=1, source="elsewhere") == 1.0
