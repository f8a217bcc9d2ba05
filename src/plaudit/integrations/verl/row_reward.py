"""The judged reward of a row: ask the judge and the rule, meet the rest of the group, combine.

Knows nothing of verl or Ray: rows come in, numbers with their extra information go out. A row without a
verdict raises where the trainer leaves out what raises; elsewhere it is data, and raises only if the settings
say that a judge that stays down ends the training.
"""

from __future__ import annotations

import asyncio
import logging
import math
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from plaudit.errors import BatchFailed, NoVerdict, PlauditError, spelling
from plaudit.integrations.verl.batch_row import BatchRow
from plaudit.integrations.verl.combination import Combination, GroupMember, extra_info
from plaudit.integrations.verl.reward_settings import PLACE, RewardSettings, as_key
from plaudit.integrations.verl.rule_score import RuleScorer
from plaudit.judges.base import Judge, Panel, compares
from plaudit.judges.check import check_judge, check_weight, judge_of_one
from plaudit.judges.scale import unit_score
from plaudit.policy.fingerprint import sample_id
from plaudit.rewards.failure import StandIns
from plaudit.setup.preflight import check_answers
from plaudit.types import Cause, Sample, Source, Status, Verdict

log = logging.getLogger("plaudit")
T = TypeVar("T")

PASSING = (Status.FAILED, Status.DEADLINE)
"""Failures that asking again may mend; the others are answers."""
TOLD = 100
"""Kinds of trouble a process warns of; what comes after that is in the extra information."""
PAUSE = 10.0
"""Seconds between two questions about one row while the judge is down."""
WINDOW = 200
"""Rows over which the failure rate is taken."""
RECENT = 20
DOWN = 0.8
"""The judge is down when so large a share of the most recent rows fail. A judge that never takes some kinds
of rows is not down: the others are judged."""
FEWEST = 5


class RewardEngine(Protocol):
    """Judges rows and brings groups together: in this process, or for the whole cluster."""

    async def ascore(
        self, samples: Sequence[Sample], judge: Judge | Panel, *, deadline: float | None = None
    ) -> list[Verdict]: ...

    async def gather(
        self, group: str, member: str, payload: T, *, size: int, timeout: float
    ) -> dict[str, T]: ...

    def close(self) -> None: ...


class RowReward:
    """Scores rows one at a time, as trainers hand them over; any number at once, on one event loop."""

    def __init__(
        self, settings: RewardSettings, judge: Judge | Panel, engine: RewardEngine, rule: RuleScorer
    ) -> None:
        with spelling(as_key):
            check_judge(judge, for_rewards=True)
            check_weight("coefficient", settings.coefficient, judge)
        self._settings = settings
        self._judge, self._lone_judge = judge, judge_of_one(judge)
        self._compares = compares(judge)
        self._engine = engine
        self._rule = rule
        self._combination = Combination(settings)
        self._stand_ins = StandIns()
        self._outage = Outage(settings.max_failure_rate)
        self._told: set[str] = set()
        self._meetings: set[asyncio.Task[Any]] = set()
        self._end = ""
        self._has_ended = asyncio.Event()

    async def ended(self) -> str:
        """Wait until the training is to end; why it is."""
        await self._has_ended.wait()
        return self._end

    async def score(self, row: BatchRow) -> tuple[float, dict[str, float | str | None]]:
        """The reward of one row, and what to report beside it.

        Raises NoVerdict where the row is to be left out, because it or its group has too few verdicts, and
        BatchFailed where the training is to end; every row after that does.
        """
        if self._end:
            raise BatchFailed(self._end)
        try:
            return await self._score(row)
        except BatchFailed as error:
            self._end = str(error)
            self._has_ended.set()
            raise

    async def _score(self, row: BatchRow) -> tuple[float, dict[str, float | str | None]]:
        if "raw_prompt" in row.missing:
            self._say("raw_prompt", row.missing["raw_prompt"])
        me = uuid.uuid4().hex  # two rows of a group may say the same
        if row.broken:
            self._say("broken", row.broken)
        verdict, said = await asyncio.gather(self._judged(row, me), self._rule.ask(row))
        if said.verdict.error:
            self._say(f"rule {row.data_source}", said.verdict.error)
        member = GroupMember(
            judge=unit_score(verdict, self._judge),
            status=verdict.status,
            length=row.length,
            rule=said.verdict.score,
            has_rule=said.is_known,
        )
        came = {me: member}
        if said.detail:
            verdict = replace(verdict, reason=said.detail, error=said.detail)
        if self._masks(row):
            came = await self._meet_to_be_sure(row, me, member)
        elif self._combination.needs_group:
            meeting = asyncio.create_task(self._meet(row, "scores", me, member))
            if row.is_validation is None and member.judge is not None and not self._combination.compares:
                self._keep(meeting)  # others may need this row, which may have no others
            else:
                came = await meeting
        return self._outcome(row, me, came, verdict)

    def _outcome(
        self, row: BatchRow, me: str, came: dict[str, GroupMember], verdict: Verdict
    ) -> tuple[float, dict[str, float | str | None]]:
        earned = self._combination.rows(list(came.values()))[list(came).index(me)]
        source = f"{'validation' if row.is_validation else 'training'} {row.data_source}"
        reward = earned.reward
        if self._masks(row) and not (earned.valid and self._is_sure(row, came)):
            raise NoVerdict(
                f"{row.name} is left out: too few rows of its group have a verdict to compare it with"
                if verdict.is_valid
                else f"{row.name} is left out: it has no verdict ({verdict.status}): {verdict.error}"
            )
        if earned.valid and reward is not None:
            self._stand_ins.add(reward, group=None, source=source)
        elif (len(came) == 1 and isinstance(self._settings.failure, str)) or reward is None:
            # There is no group, so it gets the nearest mean known.
            reward = self._stand_ins.value(verdict.status, group=None, source=source)
        return reward, extra_info(
            earned,
            came[me],
            verdict,
            reward=reward,
            members=len(came),
            record=sample_id(row.sample),
            texts=self._settings.texts,
            has_gaps=bool(row.is_validation) and row.can_be_left_out,
        )

    # -- the judge ----------------------------------------------------------------------------------------

    async def _judged(self, row: BatchRow, me: str) -> Verdict:
        came: dict[str, Sample | None] = {me: row.sample}
        if self._compares:  # also if this one cannot be judged: the others wait for it
            came = await self._meet(row, "answers", me, None if row.broken else row.sample)
        if row.broken:
            return _failed(row.broken)
        answers = {member: sample for member, sample in came.items() if sample is not None}
        judge = self._judge if len(answers) > 1 else self._lone_judge
        if judge is None:
            return _failed(
                f"{type(self._judge).__name__} compares responses, and {row.name} is alone; "
                f"set {PLACE}.group_size to 2 or more, or choose a judge of single responses"
            )
        return await self._asked(list(answers.values()), judge, list(answers).index(me))

    async def _asked(self, samples: Sequence[Sample], judge: Judge | Panel, place: int) -> Verdict:
        """The verdict on one of the samples; while the judge is down, asks again."""
        loop, outage = asyncio.get_running_loop(), self._outage
        until = loop.time() + self._settings.patience
        is_first = True
        while True:
            try:
                verdicts = await self._engine.ascore(samples, judge, deadline=self._settings.deadline)
            except PlauditError as error:  # the judge demands what these samples do not have
                self._say(f"judge {error}", str(error))
                return _failed(str(error))
            verdict = verdicts[place]
            if verdict.is_valid or is_first:
                outage.note(failed=not verdict.is_valid)
            if verdict.is_valid:
                return verdict
            if self._settings.coefficient:
                check_answers([verdict])
            self._say(f"verdict {verdict.cause}", f"a row has no verdict ({verdict.status}): {verdict.error}")
            can_mend = verdict.status in PASSING and outage.is_down and self._settings.coefficient != 0
            if not can_mend or loop.time() + PAUSE > until:
                return self._without(verdict)
            self._say("down", f"the judge seems to be down: {outage}; trying again")
            is_first = False
            await asyncio.sleep(PAUSE)

    def _without(self, verdict: Verdict) -> Verdict:
        """The verdict that is none, unless too many are, and the training is to stop then."""
        if self._outage.is_over and self._settings.coefficient:
            if self._settings.too_many == "stop":
                raise BatchFailed(
                    f"{self._outage}, more than {PLACE}.max_failure_rate={self._settings.max_failure_rate:g} "
                    f"allows, and {PLACE}.too_many=stop ends the training; resume from verl's last "
                    f"checkpoint: what was judged is stored. The last error: {verdict.error}"
                )
            self._say("too many", f"{self._outage}; such rows get no advantage, and training goes on")
        return verdict

    # -- the group ----------------------------------------------------------------------------------------

    def _masks(self, row: BatchRow) -> bool:
        """Whether the row is left out where it has no verdict. Validation reports every row."""
        if self._settings.failure == "mask" and not row.can_be_left_out:
            self._say(
                "mask",
                f"{PLACE}.failure=mask: this verl trainer accepts no missing rewards; group_mean is used",
            )
        is_wanted = self._settings.failure in ("auto", "mask")
        return is_wanted and row.can_be_left_out and not row.is_validation

    async def _meet_to_be_sure(self, row: BatchRow, me: str, member: GroupMember) -> dict[str, GroupMember]:
        """The rows of the group that are judged, once they are enough to train on; all where they compare."""
        if self._combination.compares:
            return await self._meet(row, "scores", me, member)
        if row.is_validation is None or row.sample.group is None or self._size(row) == 1:
            return {me: member}
        if not self._combination.rows([member])[0].valid:
            self._keep(asyncio.create_task(self._give_up(row, me)))
            return {me: member}
        came = await self._meet(row, "judged", me, member, size=self._quorum(row))
        return {name: other for name, other in came.items() if other is not None}

    async def _give_up(self, row: BatchRow, me: str) -> None:
        """Let the judged rows of a group go once so many have no verdict that the others are too few."""
        quorum = self._quorum(row)
        allowed, timeout = self._size(row) - quorum, self._settings.group_timeout
        try:
            lost = await self._engine.gather(
                f"{row.sample.group} lost", me, True, size=allowed + 1, timeout=timeout
            )
            if len(lost) > allowed and me == min(lost):  # one of them is enough
                self._say("whole group", WHOLE_GROUP)
                names = (f"lost {number}" for number in range(quorum))
                await asyncio.gather(*(self._meet(row, "judged", name, None, size=quorum) for name in names))
        except PlauditError as error:
            self._say("gather", f"the group of {row.name} could not meet: {error}")

    def _keep(self, task: asyncio.Task[Any]) -> None:
        """Hold a task that nothing awaits until it is done."""
        self._meetings.add(task)
        task.add_done_callback(self._meetings.discard)

    def _is_sure(self, row: BatchRow, came: Mapping[str, GroupMember]) -> bool:
        """Whether so many rows of the group are judged that it is worth training on."""
        has_met = row.is_validation is False and row.sample.group is not None
        return self._combination.compares or not has_met or len(came) >= self._quorum(row)

    def _quorum(self, row: BatchRow) -> int:
        """So many verdicts make a group worth training on: at least two, and half of it."""
        size = self._size(row)
        return max(2, math.ceil(size / 2)) if size > 1 else 1

    def _size(self, row: BatchRow) -> int:
        settings = self._settings
        return (settings.val_group_size if row.is_validation else settings.group_size) or 1

    async def _meet(
        self, row: BatchRow, what: str, me: str, brought: T, *, size: int | None = None
    ) -> dict[str, T]:
        """What the rows of the group bring, this one among them; itself alone where there is no group."""
        settings = self._settings
        size = size or self._size(row)
        if size == 1:
            return {me: brought}
        if row.sample.group is None:
            self._say("uid", row.missing.get("uid", f"uid: {row.name} has none"))
            return {me: brought}
        group = f"{row.sample.group} {'validation ' if row.is_validation else ''}{what}"
        timeout = settings.unsure_timeout if row.is_validation is None else settings.group_timeout
        try:
            came = await self._engine.gather(group, me, brought, size=size, timeout=timeout)
        except PlauditError as error:
            self._say("gather", f"the group of {row.name} could not meet: {error}")
            return {me: brought}
        if len(came) < size:
            self._say("late", _late(row, len(came), size, timeout))
        return came

    def _say(self, key: str, message: str) -> None:
        """Warn once of each kind of trouble in each process; the rest is in the extra information."""
        is_old = key in self._told or len(self._told) >= TOLD
        if not is_old:
            self._told.add(key)
        log.log(logging.DEBUG if is_old else logging.WARNING, "%s", message)


WHOLE_GROUP = (
    "a group is left out with all its rows: too few have a verdict. If no group of a batch is left, verl's "
    "synchronous trainer ends the run, unless trainer.v1.sampler.sync_refill_failed_groups=True (verl 0.9.1)"
)


def _late(row: BatchRow, came: int, size: int, timeout: float) -> str:
    what = f"{came} of the {size} rows of the group of {row.name} came within {timeout:g} s"
    if row.is_validation is None:
        return (
            f"{what}, and it is unknown whether it is training or validation; "
            'write it into the data, as extra_info["split"]: "train" or "test"'
        )
    return f"{what}; set {PLACE}.group_size to the real number, or raise {PLACE}.group_timeout"


def _failed(error: str) -> Verdict:
    return Verdict.failed(Cause.INPUT, error, source=Source.RULE)


class Outage:
    """Whether the judge is down, or only some samples unlucky: counts the last rows of this process."""

    def __init__(self, max_failure_rate: float) -> None:
        self._rate = max_failure_rate
        self._last: deque[bool] = deque(maxlen=WINDOW)
        self._recent: deque[bool] = deque(maxlen=RECENT)

    def note(self, *, failed: bool) -> None:
        """Count a row, once: asking for it again in vain says nothing new."""
        self._last.append(failed)
        self._recent.append(failed)

    @property
    def is_down(self) -> bool:
        """Whether it seems that no row gets a verdict."""
        return sum(self._recent) >= DOWN * max(len(self._recent), FEWEST)

    @property
    def is_over(self) -> bool:
        """Whether more rows fail than may; with few rows so far, those to come count as judged."""
        return sum(self._last) > self._rate * max(len(self._last), RECENT)

    def __str__(self) -> str:
        return f"{sum(self._last)} of the last {len(self._last)} rows have no verdict"
