"""BatchRewardManager, for users of `reward_manager: batch`: scores by plaudit, by a judge or by a function.

    BatchRewardManager(tokenizer, 1)                        as plaudit.compute_score does: rules, else a judge
    BatchRewardManager(tokenizer, 1, judge=Rubric("..."))   a judge alone
    BatchRewardManager(tokenizer, 1, my_function)           a function of the user's, called once for a batch

The function is called as verl calls it: compute_score(data_sources=, solution_strs=, ground_truths=,
extra_infos=) gives a list of numbers or dictionaries. Each of extra_infos has `raw_prompt` and `uid`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plaudit.errors import ConfigError
from plaudit.integrations.verl.batch_row import BatchRow
from plaudit.integrations.verl.legacy.handover import BatchScorer, Collect, Earned, Task, TwoCallManager
from plaudit.integrations.verl.legacy.length_penalty_config import LengthPenaltyConfig
from plaudit.integrations.verl.legacy.length_penalty_manager import LengthReward
from plaudit.integrations.verl.rule_score import ComputeScore, Ruling, check_is_plain, is_verls_own
from plaudit.judges.base import Judge, Panel
from plaudit.rewards import Component, Reward
from plaudit.scoring import Scoring
from plaudit.settings import load
from plaudit.types import Cause, Message, Source, Verdict

SCORE = "score"
OWN_OPTIONS = ("use_async_io", "time_limit", "on_failure", "max_failure_rate")


class BatchRewardManager(TwoCallManager):
    """Rewards a batch in one go. What has no score gets the mean of its group: no advantage."""

    def __init__(
        self,
        tokenizer: Any,
        num_examine: int = 0,
        compute_score: ComputeScore | None = None,
        reward_fn_key: str = "data_source",
        *,
        judge: Judge | Panel | str | None = None,
        **reward_kwargs: Any,
    ) -> None:
        """Ask the judge for a word, if its server is up.

        Args:
            tokenizer: verl's.
            num_examine: How many rows of each data source are printed.
            compute_score: A function for a batch; None, or verl's own for single rows: as plaudit scores.
            reward_fn_key: The column that names the data source.
            judge: A judge, the name of a kind or a file, in place of a function.
            reward_kwargs: `use_async_io`, `time_limit`, `on_failure` and `max_failure_rate`, as in
                LengthPenaltyConfig; the function gets all others.

        Raises:
            ConfigError: a function and a judge are both given, or an option for a function that is not.
        """
        own = {name: reward_kwargs.pop(name) for name in OWN_OPTIONS if name in reward_kwargs}
        config = LengthPenaltyConfig(model_name="", enable=False, enable_rule=False, judge=judge, **own)
        has_function = compute_score is not None and not is_verls_own(compute_score)
        if has_function and judge is not None:
            raise ConfigError("and judge are both given; leave out one of them", setting="compute_score")
        if reward_kwargs and not has_function:
            raise ConfigError(
                f"{next(iter(reward_kwargs))!r} is for your own compute_score, but there is none; "
                "give custom_reward_function.path, or leave it out"
            )
        scorer: BatchScorer
        if judge is not None:
            scorer = LengthReward(config)
        elif compute_score is not None and has_function:
            scorer = _ByFunction(compute_score, reward_kwargs, config)
        else:
            scorer = _ByPlaudit(config)
        super().__init__(tokenizer, num_examine, reward_fn_key, scorer, use_async_io=config.use_async_io)


class _ByPlaudit:
    """As plaudit.compute_score does: a rule where the data source has one, else a judge, and a monitor."""

    def __init__(self, config: LengthPenaltyConfig) -> None:
        self._config = config
        self._scoring: Scoring | None = self._begun()
        self._scoring.check_judge()

    def _begun(self) -> Scoring:
        return Scoring(load({"deadline": self._config.time_limit}))

    def send(self, rows: Sequence[BatchRow]) -> Collect:
        scoring = self._scoring = self._scoring or self._begun()
        samples = [row.sample for row in rows]
        task = Task(
            lambda: scoring.rewards(
                samples,
                on_failure=self._config.on_failure,
                max_failure_rate=self._config.max_failure_rate,
            ),
            use_async_io=self._config.use_async_io,
        )

        def collect() -> Sequence[Earned]:
            rewards = task.result()
            assert rewards is not None, "it keeps the time limit itself"
            return [{SCORE: row.reward, **row.flat()} for row in rewards.rows]

        return collect

    def shutdown(self) -> None:
        self._scoring = None  # its engine stops once nothing refers to it

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_scoring": None}


class _ByFunction:
    """By one call of a function for the whole batch. What it does not say in time counts as missing."""

    def __init__(self, fn: ComputeScore, kwargs: dict[str, Any], config: LengthPenaltyConfig) -> None:
        check_is_plain(fn)
        self._fn = fn
        self._kwargs = kwargs
        self._config = config
        self._reward = Reward(
            [Component(SCORE)], on_failure=config.on_failure, max_failure_rate=config.max_failure_rate
        )

    def send(self, rows: Sequence[BatchRow]) -> Collect:
        task = Task(lambda: self._call(rows), use_async_io=self._config.use_async_io)

        def collect() -> Sequence[Earned]:
            rulings = task.result(self._config.time_limit) or [_LATE] * len(rows)
            verdicts = {SCORE: [ruling.verdict for ruling in rulings]}
            rewards = self._reward.combine([row.sample for row in rows], verdicts=verdicts)
            pairs = zip(rewards.rows, rulings, strict=True)
            return [
                {SCORE: row.reward, **ruling.extra, "plaudit/valid": float(row.valid)}
                for row, ruling in pairs
            ]

        return collect

    def shutdown(self) -> None:
        """A function has nothing to stop."""

    def _call(self, rows: Sequence[BatchRow]) -> list[Ruling]:
        results = self._fn(
            data_sources=[row.data_source for row in rows],
            solution_strs=[row.solution for row in rows],
            ground_truths=[row.ground_truth for row in rows],
            extra_infos=[
                {"raw_prompt": _as_given(row.sample.prompt), "uid": row.sample.group, **row.extra_info}
                for row in rows
            ],
            **self._kwargs,
        )
        results = list(results)
        if len(results) != len(rows):
            raise ConfigError(
                f"compute_score gave {len(results)} scores for {len(rows)} responses; give one for each"
            )
        return [Ruling.of(result) for result in results]


_LATE = Ruling(
    Verdict.failed(Cause.DEADLINE, "compute_score did not answer within time_limit", source=Source.RULE)
)


def _as_given(prompt: str | Sequence[Message]) -> str | list[Message]:
    return prompt if isinstance(prompt, str) else list(prompt)
