"""The stand-in for a missing score."""

from __future__ import annotations

from plaudit.rewards.failure import GROUPS_KEPT, WINDOW, Neutral


def test_it_is_the_mean_of_the_group_else_of_the_source_else_the_middle() -> None:
    neutral = Neutral()
    assert neutral.value(group="g", source="s") == 0.5
    neutral.add(0.0, group="other", source="s")
    assert neutral.value(group="g", source="s") == 0.0
    neutral.add(0.4, group="g", source="s")
    neutral.add(0.8, group="g", source="s")
    assert neutral.value(group="g", source="s") == (0.4 + 0.8) / 2
    assert neutral.value(group=None, source="s") == (0.0 + 0.4 + 0.8) / 3


def test_it_counts_what_was_missing_among_the_last() -> None:
    neutral = Neutral()
    assert [neutral.miss() for _ in range(3)] == [1, 2, 3]
    for _ in range(WINDOW - 2):
        neutral.add(1.0, group=None, source="s")
    assert neutral.miss() == 2


def test_it_forgets_the_oldest_groups() -> None:
    neutral = Neutral()
    for group in range(GROUPS_KEPT + 1):
        neutral.add(1.0 if group else 9.0, group=group, source="s")
    assert neutral.value(group=0, source="elsewhere") == 0.5
    assert neutral.value(group=1, source="elsewhere") == 1.0
