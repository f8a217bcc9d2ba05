"""verl's reward loop (0.7.1 and later) judged by a language model: the class to name in the configuration.

verl makes one of these in each worker process and hands it one response at a time, as it finishes generating;
all of them share one engine, and groups meet there.
"""

from __future__ import annotations

import asyncio
import ctypes
import functools
import logging
import threading
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from plaudit.errors import BatchFailed, ConfigError
from plaudit.integrations.verl.batch_row import BatchRow, can_be_left_out, read_row, validation_of
from plaudit.integrations.verl.reward_engine import (
    check_judge_answers,
    judge_for,
    open_reward_engine,
    resolve,
    start_cluster_engine,
)
from plaudit.integrations.verl.reward_settings import (
    RewardSettings,
    at,
    is_chosen,
    settings_from,
    workers_needed,
)
from plaudit.integrations.verl.row_reward import RowReward
from plaudit.integrations.verl.rule_score import RuleScorer, verls_own
from plaudit.types import Sample

log = logging.getLogger("plaudit")

try:
    from verl.experimental.reward_loop.reward_loop import RewardLoopManager
    from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase
except ImportError as error:
    try:
        found = f"verl {version('verl')} is installed"
    except PackageNotFoundError:
        found = "verl is not installed"
    raise ImportError(
        f"RewardManager needs the reward loop of verl 0.7.1 or later, and {found} ({error}); "
        "pip install 'verl>=0.7.1', or see docs/verl-legacy.md for the managers of 0.4 to 0.7.0"
    ) from error


class RewardManager(RewardManagerBase):  # type: ignore[misc]
    """reward = rule_coefficient x verl's own score + coefficient x the judge's - the length penalty."""

    def __init__(
        self,
        config: Any,
        tokenizer: Any,
        compute_score: Any = None,
        reward_router_address: str | None = None,
        reward_model_tokenizer: Any = None,
        **_: Any,
    ) -> None:
        settings = settings_from(config)
        super().__init__(config=config, tokenizer=tokenizer, compute_score=compute_score)
        plain = resolve(settings)
        _check_room(config, settings)
        own = {
            "reward_router_address": reward_router_address,
            "reward_model_tokenizer": reward_model_tokenizer,
        }
        rule = RuleScorer(
            compute_score or verls_own(), settings.rule_use, extra=own if reward_router_address else {}
        )
        judge = judge_for(settings, plain)
        self._engine = open_reward_engine(settings, plain)
        if settings.coefficient:
            check_judge_answers(self._engine, judge)
        self._judged = RowReward(settings, judge, self._engine, rule)

    def close(self) -> None:
        """Leave the engine; verl itself ends the whole process instead."""
        self._engine.close()

    async def run_single(self, data: Any) -> dict[str, Any]:
        """The reward of one response, with the same keys of extra information whatever failed.

        Raises NoVerdict where there is none and verl leaves out what raises.
        """
        if isinstance(data, EndQuery):
            return {"end": await self._judged.ended()}
        *earlier, item = (data[place] for place in range(len(data)))  # of a trajectory, the last is rewarded
        is_validation = (data.meta_info or {}).get("validate")  # not every version says it
        try:
            row = await asyncio.to_thread(
                read_row, item, self.tokenizer, is_validation=is_validation, earlier=earlier
            )
        except ConfigError as error:
            row = _unread(item, is_validation, str(error))
        reward, extra = await self._judged.score(row)
        return {"reward_score": reward, "reward_extra_info": extra}


def _check_before_generating(manager: type[Any]) -> None:
    """Let verl's driver start the engine, and notice a wrong key or a broken worker before it generates.

    verl starts its reward workers without waiting for them, and drops rows whose worker is dead: a misspelt
    key would cost a whole batch of generation before the run ends, if it ends.
    """
    start = getattr(manager, "_init_reward_loop_workers", None)
    if start is None or hasattr(start, "__wrapped__"):
        return

    @functools.wraps(start)
    def checked_start(self: Any) -> None:
        if not is_chosen(self.config):
            start(self)
            return
        import ray

        settings = settings_from(self.config)
        judge_for(settings, resolve(settings))
        self.plaudit_engine = start_cluster_engine(self.config, settings)
        start(self)
        ray.get([worker.__ray_ready__.remote() for worker in self.reward_loop_workers])
        if at(self.config, "trainer", "use_v1"):
            arguments = (list(self.reward_loop_workers), threading.get_ident())
            threading.Thread(
                target=_end_with_workers, args=arguments, name="plaudit-end", daemon=True
            ).start()

    manager._init_reward_loop_workers = checked_start


class EndQuery:
    """What the driver asks each worker in place of a row; the answer comes when the training is to end."""


def _end_with_workers(workers: Sequence[Any], driver: int) -> None:
    """Raise BatchFailed in the driver's thread once a worker says so: V1 only drops rows that raise."""
    import ray

    queries = [worker.compute_score.remote(EndQuery()) for worker in workers]
    while queries:
        try:
            done, queries = ray.wait(queries)
            why = ray.get(done[0])["end"]
        except (ray.exceptions.RayError, RuntimeError, ValueError) as error:
            log.debug("a reward worker is gone, or Ray is: %s", error)
            if not ray.is_initialized():
                return
            continue
        log.error("the training ends: %s", why)
        _raise_in(driver, why)
        return


def _raise_in(thread: int, why: str) -> None:
    """Raise BatchFailed where a thread is at work; Python takes a class for that, not an error."""
    made = {
        "__init__": lambda self: BatchFailed.__init__(self, why),
        "__reduce__": lambda _: (BatchFailed, (why,)),  # on its way through Ray to the user's process
    }
    kind = type("TrainingEnded", (BatchFailed,), made)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))


_check_before_generating(RewardLoopManager)


def _check_room(config: Any, settings: RewardSettings) -> None:
    """Warn where rows may wait for others of their group that never come, or cannot get into a worker."""
    rollouts = at(config, "actor_rollout_ref", "rollout", "n") or settings.group_size
    if settings.group_size != rollouts:
        log.warning(
            "reward.plaudit.group_size=%s, and verl generates actor_rollout_ref.rollout.n=%s responses to a "
            "prompt; leave group_size out, unless your trainer groups rows by itself",
            settings.group_size,
            rollouts,
        )
    if (needed := workers_needed(config, settings)) is not None:
        log.warning(
            "reward.num_workers=%s is little for data.train_batch_size=%s x %s rows: Ray lets 1,000 into a "
            "worker at once, and rows that wait for their group take the room of those they wait for; set it "
            "to %d",
            at(config, "reward", "num_workers"),
            at(config, "data", "train_batch_size"),
            settings.group_size,
            needed,
        )


def _unread(item: Any, is_validation: bool | None, broken: str) -> BatchRow:
    """A row that cannot be read, in its group all the same: the others would wait for it."""
    columns: Mapping[str, Any] = item.non_tensor_batch
    uid = columns.get("uid")
    return BatchRow(
        Sample("", "", group=None if uid is None else str(uid)),
        length=0,
        data_source=str(columns.get("data_source") or ""),
        is_validation=validation_of(columns, is_validation),
        can_be_left_out=can_be_left_out(columns),
        broken=broken,
    )
