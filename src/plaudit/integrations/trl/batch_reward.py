"""A judge at work in a trainer: completions in, rewards out, None where there is no verdict."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plaudit.config import EngineConfig
from plaudit.engine import Engine, forget_engine, shared_engine
from plaudit.errors import BatchFailed, ConfigError
from plaudit.integrations.trl.ranks import LENGTH, CombinedRewards, combine, rank_and_count, rank_share, turn
from plaudit.integrations.trl.samples import samples_of
from plaudit.integrations.trl.trainer_facts import generations_of, trainer_of, warn_of_others, warn_of_split
from plaudit.judges.base import Judge, Panel, compares
from plaudit.observers.log import Log
from plaudit.observers.metrics import metrics
from plaudit.policy.fingerprint import sample_id
from plaudit.rewards import Reward
from plaudit.rewards.combine import most_frequent_error
from plaudit.rewards.failure import OnContentFailure, OnFailure
from plaudit.scoring import AskedRows
from plaudit.setup.preflight import EARLY_SECONDS, GREETING_SECONDS, check_answers, check_engine
from plaudit.types import Cause, Sample, Source, Status, Verdict
from plaudit.value_check import check_length, check_number, check_value

log = logging.getLogger("plaudit")

Rule = Callable[..., Sequence[float | None] | Awaitable[Sequence[float | None]]]
"""A reward function as TRL knows them: `f(prompts=, completions=, completion_ids=, **columns) -> list`."""
RewardFunction = Callable[..., Coroutine[Any, Any, list[float | None]]]
JUDGE, MONITOR = "judge", "monitor"
Judges = Mapping[str, Judge | Panel]
Configured = tuple[EngineConfig, dict[str, Any]]
Asked = Mapping[str, AskedRows]
"""Verdicts on their way, by judge, for every row of a batch."""
WINDOW = 200
"""Rows over which failures are counted; all of a batch, where it has more."""
FIRST_ROWS = 8
"""So many failures before the first verdict are a judge that does not work."""


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """What becomes of a batch."""

    reference: str | None = None
    """The column of the data set with the right answers, for judges that compare."""
    num_generations: int | None = None
    """Completions for each prompt; None: the trainer's own."""
    deadline: float | None = 300.0
    """Seconds for a batch; unfinished completions then get status `deadline`. None: no limit."""
    on_failure: OnFailure = "mask"
    """What a completion without a verdict gets: `mask` (no advantage), `group_mean`, `raise`, or a number."""
    on_content_failure: OnContentFailure = "mask"
    """Where the completion itself may have broken the judge: `mask`, or `floor`: the worst."""
    max_failure_rate: float | None = 0.2
    """Share of the last 200 without a verdict past which BatchFailed is raised; None: never."""
    tie_eps: float = 0.0
    """Rewards of a group that differ by no more than this become equal."""

    def __post_init__(self) -> None:
        for name in ("deadline", "max_failure_rate"):
            check_value(name, getattr(self, name), float | None)
        check_value("reference", self.reference, str | None)
        if self.num_generations is not None:
            check_number("num_generations", self.num_generations, low=1)


class BatchReward:
    """What is behind the function. Goes to other processes by pickle, unless it was given a live engine."""

    def __init__(
        self,
        judges: Judges,
        rules: Mapping[str, Rule],
        reward: Reward,
        batch: BatchOptions,
        engine: Engine | Configured,
    ) -> None:
        """`engine`: the caller's own, or what opens one that all with equal options share."""
        self._made_of = judges, rules, reward, batch, engine
        self._judges = judges
        self._rules = rules
        self._reward = reward
        self._batch = batch
        if isinstance(engine, tuple):
            config, live = engine
            live = {**live, "observers": live["observers"] or [Log()]}
            self._engine = shared_engine(
                ("a rank's part", *engine), lambda: Engine.from_config(rank_share(config), **live)
            )
        else:
            self._engine = engine
        self._has_penalty = any(component.name == LENGTH for component in reward.components)
        self._compares = any(map(compares, judges.values()))
        self._watch = FailureWatch(batch.max_failure_rate)
        self._early: tuple[Sequence[Sample], Asked] | None = None
        self._has_begun = False
        self._has_warned_of_split = False

    def __reduce__(self) -> tuple[Any, ...]:
        if self._engine is self._made_of[-1]:
            raise TypeError(
                "this reward function was given a live engine, which cannot go to another process; "
                "give reward_function url= and model= (or endpoints=) in place of engine="
            )
        return BatchReward, self._made_of

    # -- what TRL calls, and what overlap() does ----------------------------------------------------------

    async def judged_reward(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        """A reward for each completion, in order; None where there is no verdict.

        Raises BatchFailed where too many verdicts are missing. Those that arrived are stored by then.
        """
        if completion_ids is None and self._has_penalty:
            raise ConfigError(
                "are missing, and a length penalty counts them; pass them, or no penalty=",
                setting="completion_ids",
            )
        if completion_ids is not None:
            check_length("completion_ids", completion_ids, len(completions), "completions")
        trainer, clock = trainer_of(columns), asyncio.get_running_loop().time
        with turn() as before:
            samples = self._samples(prompts, completions, columns, trainer)
            asked = self._collected(samples)
            start = clock()
            try:
                verdicts = await self._by_rule(
                    prompts=prompts, completions=completions, completion_ids=completion_ids, **columns
                )
                for name, rows in asked.items():
                    verdicts[name] = list((await rows).values())
            except BaseException:
                _call_off(asked)
                raise
            waited = clock() - start
            lengths = None if completion_ids is None else [len(ids) for ids in completion_ids]
            combined = await combine(
                self._reward,
                samples,
                verdicts=verdicts,
                lengths=lengths,
                generations=self._generations(trainer),
                before=before,
            )
        rewards = combined.here
        numbers = metrics(
            verdicts=verdicts[JUDGE], summary=asked[JUDGE].summary, rewards=rewards, lengths=lengths
        )
        self._show(columns, samples, verdicts, {**numbers, "judge/wait_s": waited})
        self._check(combined)
        return rewards.values

    def submit(
        self, prompts: Sequence[Any], completions: Sequence[Any], columns: Mapping[str, Any], trainer: Any
    ) -> None:
        """Ask the judges now; `judged_reward` collects when it is called for the same completions."""
        self.call_off()
        samples = self._samples(prompts, completions, columns, trainer)
        self._early = samples, self._ask(samples)

    def check_judge(self, *, is_early: bool = False) -> None:
        """Find out whether the judge will answer before anything is generated; BatchFailed where never."""
        seconds = EARLY_SECONDS if is_early else GREETING_SECONDS
        seconds = min(seconds, self._batch.deadline or seconds)
        try:
            check_engine(self._engine, self._judges[JUDGE], seconds=seconds, is_cheap=is_early)
        except BatchFailed:
            if self._engine is not self._made_of[-1]:
                forget_engine(self._engine)  # the next one finds the server as it is then
            raise

    def call_off(self) -> None:
        """Forget what was submitted and never collected."""
        if self._early is not None:
            _call_off(self._early[1])
            self._early = None

    # -- how ----------------------------------------------------------------------------------------------

    def _samples(
        self, prompts: Sequence[Any], completions: Sequence[Any], columns: Mapping[str, Any], trainer: Any
    ) -> list[Sample]:
        if not self._has_begun:
            warn_of_others(trainer, self)
        generations = self._generations(trainer)
        samples = samples_of(
            prompts, completions, columns, reference=self._batch.reference, num_generations=generations
        )
        has_parts = rank_and_count()[1] > 1 and not self._compares  # then groups are put together again
        needs_groups = self._has_penalty or self._compares
        if needs_groups and not has_parts and not self._has_warned_of_split:
            self._has_warned_of_split = warn_of_split([str(sample.group) for sample in samples], generations)
        return samples

    def _generations(self, trainer: Any) -> int | None:
        return self._batch.num_generations or generations_of(trainer)

    def _ask(self, samples: Sequence[Sample]) -> Asked:
        deadline = self._batch.deadline
        asked = {
            name: AskedRows(self._engine, judge, samples, deadline=deadline, is_raw=name != JUDGE)
            for name, judge in self._judges.items()
        }
        useless = [rows for rows in asked.values() if rows.settled and not rows.count]
        if useless and not self._has_begun:
            complaint = useless[0].settled[0].error
            _call_off(asked)
            columns = ", ".join(samples[0].extra) or "none"
            raise ConfigError(
                f"the judge can judge none of these {len(samples)} completions: {complaint}; "
                "reference= of reward_function names the column with the right answers "
                f"(there are: {columns})"
            )
        self._has_begun = True
        return asked

    def _collected(self, samples: Sequence[Sample]) -> Asked:
        """What was submitted early, if it was for these samples; else they are submitted now."""
        if self._early is not None:
            early, asked = self._early
            if list(map(_shown, early)) == list(map(_shown, samples)):
                self._early = None
                return asked
            self.call_off()
            log.warning(
                "what overlap() submitted is not what the trainer wants rewards for, so it is judged anew; "
                "does the trainer change completions after _generate?"
            )
        return self._ask(samples)

    async def _by_rule(self, **batch: Any) -> dict[str, list[Verdict]]:
        found = {}
        for name, rule in self._rules.items():
            given = rule(**batch)
            given = await given if inspect.isawaitable(given) else given
            if not isinstance(given, Iterable) or isinstance(given, str):
                raise ConfigError(
                    f"the rule {name!r} gave {given!r:.80}; it should give a number for each completion"
                )
            found[name] = [_verdict(name, value) for value in given]
            if len(found[name]) != len(batch["completions"]):
                raise ConfigError(
                    f"the rule {name!r} gave {len(found[name])} values for {len(batch['completions'])} "
                    "completions; it should give one for each, in order"
                )
        return found

    def _show(
        self,
        columns: Mapping[str, Any],
        samples: Sequence[Sample],
        verdicts: Mapping[str, list[Verdict]],
        numbers: Mapping[str, float],
    ) -> None:
        """Metrics into TRL's log, the judges' words into its table of completions."""
        if (log_metric := columns.get("log_metric")) is not None:
            for name, value in numbers.items():
                log_metric(name, value)
        if (log_extra := columns.get("log_extra")) is not None:
            for name in self._judges:
                given = verdicts[name]
                log_extra(f"{name}_status", [verdict.status.value for verdict in given])
                log_extra(f"{name}_reason", [verdict.reason or verdict.error or "" for verdict in given])
            log_extra(f"{JUDGE}_record", [sample_id(sample) for sample in samples])

    def _check(self, combined: CombinedRewards) -> None:
        """Say what failed; raise once it is too much, on every rank alike."""
        rewards, verdicts = combined.everywhere, combined.verdicts
        rows, failed = len(rewards.rows), sum(rewards.failures.values())
        judged = sum(verdict.status is Status.OK for verdict in verdicts[JUDGE])
        complaint = self._watch.complaint(rows=rows, failed=failed, judged=judged)
        if not failed:
            return
        check_answers(verdict for column in verdicts.values() for verdict in column)
        error = most_frequent_error(verdicts) or "no error was given"
        if complaint:
            raise BatchFailed(
                f'{complaint}; the most frequent error is "{error}"; what was judged is stored, so resuming '
                "from the last checkpoint pays for nothing twice; max_failure_rate= allows more"
            )
        if rank_and_count()[0]:
            return  # the first one says it
        by_status = ", ".join(f"{count} {status}" for status, count in rewards.failures.items())
        log.warning("%d of %d completions have no verdict (%s): %s", failed, rows, by_status, error)


def _verdict(rule: str, value: float | None) -> Verdict:
    """A rule's number, in the form in which rewards are combined."""
    try:
        score = math.nan if value is None else float(value)
    except (TypeError, ValueError):
        raise ConfigError(f"the rule {rule!r} gave {value!r:.80} for a completion, not a number") from None
    if not math.isfinite(score):
        error = f"the rule {rule!r} gave {'no number' if value is None else score}"
        return Verdict.failed(Cause.CODE, error, source=Source.RULE)
    return Verdict(score, Status.OK, source=Source.RULE)


def _call_off(asked: Asked) -> None:
    for rows in asked.values():
        rows.cancel()


def _shown(sample: Sample) -> tuple[object, ...]:
    """What a judge would be asked about."""
    return sample.prompt, sample.response, sample.reference, sample.group


class FailureWatch:
    """When so many verdicts are missing that training should stop.

    A batch of eight with two failures is no outage. So a batch smaller than WINDOW rows is counted together
    with those before it, and rows that have not come yet count as fine. A judge that has never given a
    verdict is stopped at once.
    """

    def __init__(self, max_failure_rate: float | None) -> None:
        self._rate = max_failure_rate
        self._last: deque[tuple[int, int]] = deque()  # (rows, failed) of each batch
        self._has_worked = False

    def complaint(self, *, rows: int, failed: int, judged: int) -> str:
        """Count a batch; what is wrong if it is one too many, else nothing.

        judged   rows on which the judge itself gave a verdict: empty ones are settled by rule
        """
        self._last.append((rows, failed))
        self._has_worked |= judged > 0
        total = sum(batch for batch, _ in self._last)
        while total - self._last[0][0] >= WINDOW:
            total -= self._last.popleft()[0]
        missing = sum(batch for _, batch in self._last)
        if self._rate is None:
            return ""
        if not self._has_worked and missing >= FIRST_ROWS and self._rate < 1.0:
            return f"the judge has given no verdict at all, on {total} completions"
        if missing > self._rate * max(total, WINDOW):
            return (
                f"{missing} of the last {total} completions have no verdict, "
                f"more than {self._rate:.0%} of {max(total, WINDOW)}"
            )
        return ""
