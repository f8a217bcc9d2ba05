"""Members of a group meet: everybody gets the same mapping, whoever comes late, twice or never."""

from __future__ import annotations

import asyncio
import math

import pytest
from complaints import about

from plaudit.errors import ConfigError
from plaudit.integrations.rendezvous import LULL, SLOWER, Rendezvous
from plaudit.testing import run


async def at(
    seconds: float, meeting: Rendezvous, member: str, payload: int, *, size: int = 3
) -> tuple[dict[str, int], float]:
    """Come after so many seconds; what was there, and when it was given."""
    await asyncio.sleep(seconds)
    found = await meeting.gather("g", member, payload, size=size, timeout=10.0)
    return found, asyncio.get_running_loop().time()


def test_all_leave_with_the_same_when_the_last_one_has_come() -> None:
    async def main() -> None:
        meeting = Rendezvous()
        left = await asyncio.gather(at(0, meeting, "c", 3), at(2, meeting, "a", 1), at(5, meeting, "b", 2))
        assert list(left) == [({"a": 1, "b": 2, "c": 3}, 5.0)] * 3
        assert [list(found) for found, _ in left] == [
            ["a", "b", "c"]
        ] * 3  # so that sums agree to the last bit
        assert len(meeting) == 0

    run(main())


def test_nobody_waits_longer_than_the_first_ones_patience() -> None:
    async def main() -> None:
        meeting = Rendezvous()
        left = await asyncio.gather(at(0, meeting, "a", 1), at(9, meeting, "b", 2))
        assert list(left) == [({"a": 1, "b": 2}, 10.0)] * 2

    run(main())


def test_who_comes_after_that_gets_those_who_came_and_itself_at_once() -> None:
    async def main() -> None:
        meeting = Rendezvous()
        first, late, later = await asyncio.gather(
            at(0, meeting, "a", 1), at(11, meeting, "b", 2), at(12, meeting, "c", 3)
        )
        assert first == ({"a": 1}, 10.0)
        assert late == ({"a": 1, "b": 2}, 11.0)
        assert later == ({"a": 1, "b": 2, "c": 3}, 12.0)

    run(main())


def test_a_member_that_comes_again_counts_once() -> None:
    async def main() -> None:
        meeting = Rendezvous()
        left = await asyncio.gather(
            at(0, meeting, "a", 1), at(1, meeting, "a", 7), at(2, meeting, "b", 2), at(3, meeting, "c", 3)
        )
        assert list(left) == [({"a": 7, "b": 2, "c": 3}, 3.0)] * 4

    run(main())


def test_a_member_that_comes_again_afterwards_gets_what_the_others_got() -> None:
    async def main() -> None:
        meeting = Rendezvous()
        first = await asyncio.gather(*(at(0, meeting, name, 1) for name in "abc"))
        again = await at(1000, meeting, "b", 9)
        assert again[0] == first[0][0] == {"a": 1, "b": 1, "c": 1}

    run(main())


def test_a_member_that_is_called_off_has_come_all_the_same() -> None:
    async def main() -> None:
        meeting = Rendezvous()
        gone = asyncio.create_task(at(0, meeting, "a", 1))
        await asyncio.sleep(1)
        gone.cancel()
        left = await asyncio.gather(at(0, meeting, "b", 2), at(0, meeting, "c", 3))
        assert left[0][0] == {"a": 1, "b": 2, "c": 3}

    run(main())


def test_what_one_does_with_the_mapping_is_unseen_by_the_others() -> None:
    async def main() -> None:
        meeting = Rendezvous()
        (first, _), (second, _) = await asyncio.gather(
            at(0, meeting, "a", 1, size=2), at(0, meeting, "b", 2, size=2)
        )
        first.clear()
        assert second == {"a": 1, "b": 2}
        assert (await at(0, meeting, "a", 1, size=2))[0] == {"a": 1, "b": 2}

    run(main())


def test_groups_that_have_parted_are_forgotten_in_the_end() -> None:
    async def main() -> None:
        meeting = Rendezvous(remembered=2)
        for group in "xyz":
            await meeting.gather(group, "a", 1, size=1, timeout=1.0)
        assert await meeting.gather("z", "b", 2, size=1, timeout=1.0) == {"a": 1, "b": 2}
        assert await meeting.gather("x", "b", 2, size=1, timeout=1.0) == {"b": 2}

    run(main())


async def spread(meeting: Rendezvous, group: str, *apart: float) -> float:
    """A group of three whose members come so many seconds one after another; when the last left."""

    async def come(number: int) -> None:
        await asyncio.sleep(sum(apart[: number + 1]))
        await meeting.gather(group, str(number), number, size=3, timeout=1800.0)

    await asyncio.gather(*(come(number) for number in range(len(apart))))
    return asyncio.get_running_loop().time()


def test_a_lost_member_holds_up_its_group_no_longer_than_other_groups_let_expect() -> None:
    async def main() -> None:
        meeting = Rendezvous()
        assert await spread(meeting, "whole", 0.0, 20.0, 40.0) == 60.0
        assert await spread(meeting, "lost one", 0.0, 30.0) == 60.0 + 30.0 + 60.0 * SLOWER

    run(main())


def test_groups_that_were_quick_let_a_slow_one_have_a_while() -> None:
    async def main() -> None:
        meeting = Rendezvous()
        await spread(meeting, "whole", 0.0, 0.0, 0.0)
        assert await spread(meeting, "slow", 0.0, LULL - 1, LULL - 1) == 2 * LULL - 2

    run(main())


def test_where_no_group_was_complete_yet_the_whole_time_is_given() -> None:
    async def main() -> None:
        assert await spread(Rendezvous(), "lost one", 0.0, 30.0) == 1800.0

    run(main())


def test_without_a_time_limit_a_group_waits_for_all() -> None:
    async def main() -> None:
        meeting = Rendezvous()
        waiting = asyncio.create_task(meeting.gather("g", "a", 1, size=2, timeout=math.inf))
        await asyncio.sleep(1e6)
        assert not waiting.done()
        assert len(meeting) == 1
        await meeting.gather("g", "b", 2, size=2, timeout=math.inf)
        assert await waiting == {"a": 1, "b": 2}

    run(main())


def test_members_that_disagree_on_the_size_are_told_so() -> None:
    async def main() -> None:
        meeting = Rendezvous()
        waiting = asyncio.create_task(at(0, meeting, "a", 1, size=2))
        await asyncio.sleep(0.1)
        with pytest.raises(ConfigError, check=about("size")):
            await at(0, meeting, "b", 2, size=4)
        assert await waiting == ({"a": 1}, 10.0)

    run(main())


@pytest.mark.parametrize(("size", "timeout"), [(0, 1.0), (2, 0.0), (2, math.nan)])
def test_a_meeting_that_cannot_be_is_refused(size: int, timeout: float) -> None:
    with pytest.raises(ConfigError, check=lambda error: error.setting in ("size", "timeout")):
        run(Rendezvous().gather("g", "a", 1, size=size, timeout=timeout))
