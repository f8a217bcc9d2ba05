"""compute_score: one function that trainers call, with one sample or with a batch.

    compute_score(response, ground_truth, dataset_name, extra_info)                        a score
    compute_score(data_sources=..., solution_strs=..., ground_truths=..., extra_infos=...) scores, in order
    compute_score(data_source=..., solution_str=..., ground_truth=..., extra_info=...)     as verl calls it

Known data sources are scored by a rule, the others by a judge; TRAIN_WITH_MONITOR=true adds a monitor. A
judge that fails never becomes a 0.0: docs/rewards.md says what it becomes in each of the three.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from plaudit.errors import ConfigError
from plaudit.rows import NO_TASK, SOURCE, Prompt, kind_of, made_sample, read_prompt, read_response
from plaudit.types import Sample
from plaudit.value_check import check_length

if TYPE_CHECKING:
    from plaudit.rewards import RewardRow
    from plaudit.scoring import Score

TASK_KEYS = ("question", "prompt", "raw_prompt", "problem", "query", "instruction")
"""Where `extra_info` may hold the task, the first that does."""
GROUP_KEYS = ("uid", "group")
BATCH = ("data_sources", "solution_strs", "ground_truths", "extra_infos")
VERL = ("data_source", "solution_str")
PASSED_BY_VERL = frozenset({
    "reward_router_address", "reward_model_tokenizer", "sandbox_fusion_url", "concurrent_semaphore",
    "memory_limit_mb", "return_dict",
})  # fmt: skip
"""What verl passes to every function, and a judge over HTTP has no use for."""


def compute_score(
    response: str | None = None,
    ground_truth: Any = None,
    dataset_name: str | None = None,
    extra_info: Mapping[str, Any] | None = None,
    *,
    details: bool | None = None,
    max_failure_rate: float | None = None,
    **call: Any,
) -> Any:
    """A score for one sample, a list for a batch; see the top of this file for the ways to call it.

    Args:
        response: What is scored.
        ground_truth: The right answer, if there is one.
        dataset_name: The data source, by which a rule is chosen.
        extra_info: The row's other columns; the task is under `question`, `prompt` or a similar key.
        details: Whether to return a dictionary with `score` and each component, under the same keys on every
            row, in place of a number; by default only for verl's own way of calling.
        max_failure_rate: Share of missing verdicts past which BatchFailed is raised; by default 0.2.
        call: A batch's columns, or the names by which verl calls.

    Returns:
        A Score, which is a float; a dictionary, with details; a list of either for a batch.

    Raises:
        ConfigError: there is no judge, or an argument makes no sense.
        BatchFailed: too many verdicts are missing; those that arrived are stored.
    """
    from plaudit.scoring import current  # late, so that `import plaudit` stays quick

    asked = _Arguments(call, details, response, ground_truth, dataset_name, extra_info)
    scoring = current()
    if asked.is_batch:
        limit = scoring.settings.max_failure_rate if max_failure_rate is None else max_failure_rate
        batch = scoring.rewards(asked.samples, on_failure="group_mean", max_failure_rate=limit)
        return [asked.result(row.reward, row) for row in batch.rows]
    (score,) = scoring.scores(asked.samples, max_failure_rate=max_failure_rate)
    return asked.result(score, score.row)


async def acompute_score(
    response: str | None = None,
    ground_truth: Any = None,
    dataset_name: str | None = None,
    extra_info: Mapping[str, Any] | None = None,
    *,
    details: bool | None = None,
    max_failure_rate: float | None = None,
    **call: Any,
) -> Any:
    """`compute_score` for async code; the caller's event loop is not blocked."""
    from plaudit.scoring import current  # late, so that `import plaudit` stays quick

    asked = _Arguments(call, details, response, ground_truth, dataset_name, extra_info)
    scoring = current()
    if asked.is_batch:
        limit = scoring.settings.max_failure_rate if max_failure_rate is None else max_failure_rate
        batch = await scoring.arewards(asked.samples, on_failure="group_mean", max_failure_rate=limit)
        return [asked.result(row.reward, row) for row in batch.rows]
    (score,) = await scoring.ascores(asked.samples, max_failure_rate=max_failure_rate)
    return asked.result(score, score.row)


class _Arguments:
    """What a caller asked for, whichever way it was said."""

    def __init__(self, call: dict[str, Any], details: bool | None, response: str | None, *rest: Any) -> None:
        if unknown := [name for name in call if name not in (*BATCH, *VERL, *PASSED_BY_VERL)]:
            raise ConfigError(
                "is not an argument of compute_score; "
                "its settings come from the environment and from plaudit.toml",
                setting=unknown[0],
            )
        self.is_batch = any(call.get(name) is not None for name in BATCH)
        is_verl = any(call.get(name) is not None for name in VERL)
        self._has_details = is_verl if details is None else details
        if self.is_batch:
            self.samples = _batch(call)
            return
        response = call["solution_str"] if call.get("solution_str") is not None else response
        if not isinstance(response, str):
            what = "missing" if response is None else f"{kind_of(response)}, not text"
            raise ConfigError(
                f"is {what}; call it as compute_score(response, ground_truth, "
                f"dataset_name, extra_info), or with the lists {', '.join(BATCH)}",
                setting="solution_str",
            )
        truth, source, extra = rest
        self.samples = [row_sample(call.get("data_source") or source, response, truth, extra)]

    def result(self, score: float | None, row: RewardRow) -> Score | dict[str, float]:
        from plaudit.scoring import Score

        assert score is not None, "a trainer here takes numbers only"
        return {"score": float(score), **row.flat()} if self._has_details else Score(score, row)


def _batch(call: Mapping[str, Any]) -> list[Sample]:
    columns: dict[str, list[Any]] = {}
    for name in BATCH:
        if (values := call.get(name)) is not None:
            if isinstance(values, str) or not isinstance(values, Iterable):
                raise ConfigError("should be a list, with one for each response", setting=name)
            columns[name] = list(values)
    if "solution_strs" not in columns:
        raise ConfigError("is missing; a batch needs its responses", setting="solution_strs")
    count = len(columns["solution_strs"])
    for name, values in columns.items():
        check_length(name, values, count, "responses")
    return [
        row_sample(*row) for row in zip(*(columns.get(name) or [None] * count for name in BATCH), strict=True)
    ]


def row_sample(source: Any, response: Any, truth: Any, extra: Mapping[str, Any] | None) -> Sample:
    """A row as compute_score gets it: the task, the group and the other columns are in `extra`."""
    extra = extra if isinstance(extra, Mapping) else {}
    source = "" if source is None else str(source)
    task_key, task = _task(extra)
    group_key, group = _group(extra, source)
    others = {name: value for name, value in extra.items() if name not in (task_key, group_key)}
    return made_sample(
        task, read_response(response), truth, group=group, extra=others | ({SOURCE: source} if source else {})
    )


def _task(extra: Mapping[str, Any]) -> tuple[str, Prompt]:
    """The task, and the key that holds it."""
    for name in TASK_KEYS:
        try:
            task = read_prompt(extra.get(name))
        except ConfigError:
            continue  # a column of that name which holds something else
        if task != NO_TASK:
            return name, task
    return "", NO_TASK


def _group(extra: Mapping[str, Any], source: str) -> tuple[str, str | None]:
    """The group, and the key that holds it; else the row's place in the data set, which its group shares."""
    for name in GROUP_KEYS:
        if extra.get(name) is not None:
            return name, str(extra[name])
    if extra.get("index") is not None:
        return "", f"{source}/{extra.get('split', '')}/{extra['index']}"
    return "", None
