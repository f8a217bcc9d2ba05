"""How verl calls a reward manager up to 0.7.0: a DataProto in, a tensor out, in one call or in two.

    rewards = manager(data)                       # (rows, tokens), the reward on each last token
    result = manager(data, return_dict=True)      # {"reward_tensor": ..., "reward_extra_info": ...}

    manager.submit(data)                          # returns at once
    ...                                           # old and reference log-probs
    rewards = manager.collect()

Neither verl nor torch is imported before the first tensor is made: the configuration works without them.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Generic, Protocol, TypeVar

from plaudit._loop_thread import result_of
from plaudit.errors import ConfigError
from plaudit.integrations.verl.batch_row import BatchRow, read_row

log = logging.getLogger("plaudit")
T = TypeVar("T")

TENSORS = ("prompts", "responses", "attention_mask")


Earned = Mapping[str, Any]
"""What one row gets, as its `score`, and what is said about it."""
Collect = Callable[[], Sequence[Earned]]


class BatchScorer(Protocol):
    def send(self, rows: Sequence[BatchRow]) -> Collect:
        """Send a batch off, and give what waits for it."""

    def shutdown(self) -> None: ...


class TwoCallManager:
    """A manager as trainers call it, in one call or in two. One batch at a time."""

    _scorer: BatchScorer

    def __init__(
        self,
        tokenizer: Any,
        num_examine: int,
        reward_fn_key: str,
        scorer: BatchScorer,
        *,
        use_async_io: bool = True,
    ) -> None:
        """
        num_examine     how many rows of each data source are printed, as verl's own managers do
        reward_fn_key   the column that names the data source
        use_async_io    whether `submit` leaves reading and sending to a thread
        """
        self._tokenizer = tokenizer
        self._num_examine = num_examine
        self._key = reward_fn_key
        self._scorer = scorer
        self._is_async = use_async_io
        self._sent: tuple[Any, Task[tuple[Sequence[BatchRow], Collect]] | None] | None = None
        """A batch, and what reads its rows and sends them off; None where there is nothing to ask."""
        self._called_off = ""
        self._warned: set[str] = set()

    def __call__(self, data: Any, return_dict: bool = False) -> Any:
        """The rewards of a DataProto; of the one that was submitted, without asking again."""
        if self._sent is None or not _is_same(self._sent[0], data):
            self.submit(data)
        return self.collect(return_dict)

    def submit(self, data: Any) -> None:
        """Begin to score a DataProto, and return at once."""
        if self._sent is not None:
            raise ConfigError(
                f"a batch of {len(self._sent[0])} is already in flight; collect() it before the next one"
            )
        self._called_off = ""
        if data.batch is not None and "rm_scores" in data.batch.keys():  # noqa: SIM118 - a TensorDict
            self._sent = data, None  # a reward model has spoken already
            return
        items = self._items(data)

        def read_and_send() -> tuple[Sequence[BatchRow], Collect]:
            rows = self._rows(items)
            return rows, self._scorer.send(rows) if rows else tuple

        self._sent = data, Task(read_and_send, use_async_io=self._is_async)

    def collect(self, return_dict: bool = False) -> Any:
        """The rewards of what was submitted. Waits for what is missing, up to the time limit.

        Whatever it comes to, the next batch may be submitted then.
        """
        if self._sent is None:
            raise ConfigError(self._called_off or "there is nothing to collect; submit(data) comes first")
        (data, task), self._sent = self._sent, None
        if task is None:
            return _given_rewards(data, return_dict)
        since = time.monotonic()
        found = task.result()
        assert found is not None, "no time limit was given"
        rows, collect = found
        earned = collect()
        log.info("rewards of %d responses; waited %.2f s for them", len(earned), time.monotonic() - since)
        self._print(rows, earned)
        tensor = _tensor(data, [row.length for row in rows], [one["score"] for one in earned])
        return {"reward_tensor": tensor, "reward_extra_info": _columns(earned)} if return_dict else tensor

    def shutdown_workers(self) -> None:
        """Free thread and connections; verdicts that came are kept. The next batch starts them anew."""
        if self._sent is not None:
            (_, task), self._sent = self._sent, None
            self._called_off = "the batch in flight was cancelled by shutdown_workers(); submit it again"
            if task is not None:
                task.settle()
        self._scorer.shutdown()

    # -- rows ---------------------------------------------------------------------------------------------

    def _items(self, data: Any) -> list[SimpleNamespace]:
        """The rows of a DataProto as they are now: the trainer adds columns meanwhile."""
        columns = data.non_tensor_batch
        if len(data) and self._key not in columns:
            raise ConfigError(
                "is not a column of row 0; set data.reward_fn_key to the column with the source",
                setting=self._key,
            )
        has = () if data.batch is None else data.batch.keys()
        tensors = {name: data.batch[name].cpu() for name in TENSORS if name in has}
        return [
            SimpleNamespace(
                batch={name: tensor[number] for name, tensor in tensors.items()},
                non_tensor_batch={name: column[number] for name, column in columns.items()}
                | {"data_source": columns[self._key][number]},
            )
            for number in range(len(data))
        ]

    def _rows(self, items: Sequence[SimpleNamespace]) -> list[BatchRow]:
        rows = [read_row(item, self._tokenizer, number=number) for number, item in enumerate(items)]
        if any(row.sample.group is None for row in rows):
            rows = [_with_group(row) for row in rows]
            self._warn(
                "uid",
                f"uid: {rows[0].name} has none; rows with the same prompt are taken for a group. Set "
                'non_tensor_batch["uid"] if they are not one',
            )
        if rows and "raw_prompt" in rows[0].missing:
            self._warn("raw_prompt", rows[0].missing["raw_prompt"])
        return rows

    def _warn(self, key: str, message: str) -> None:
        """Say once what holds for every batch."""
        if key not in self._warned:
            self._warned.add(key)
            log.warning("%s", message)

    def _print(self, rows: Sequence[BatchRow], earned: Sequence[Earned]) -> None:
        printed: Counter[str] = Counter()
        for row, one in zip(rows, earned, strict=True):
            if printed[row.data_source] < self._num_examine:
                printed[row.data_source] += 1
                print("[prompt]", _prompt_text(row))
                print("[response]", row.solution)
                print("[ground_truth]", row.ground_truth)
                for name, value in one.items():
                    print(f"[{name}]", value)

    def __getstate__(self) -> dict[str, Any]:
        if self._sent is not None:
            raise TypeError(
                "a batch is in flight and cannot leave this process; collect() it before pickling"
            )
        return self.__dict__


# -- what verl has and wants --------------------------------------------------------------------------------


def _given_rewards(data: Any, return_dict: bool) -> Any:
    scores = data.batch["rm_scores"]
    if not return_dict:
        return scores
    names = data.meta_info.get("reward_extra_keys", [])
    return {
        "reward_tensor": scores,
        "reward_extra_info": {name: data.non_tensor_batch[name] for name in names},
    }


def _is_same(sent: Any, data: Any) -> bool:
    """Whether these are the responses that were submitted; trainers add columns meanwhile."""
    import torch

    if sent is data:
        return True
    return len(sent) == len(data) and torch.equal(sent.batch["responses"], data.batch["responses"])


def _tensor(data: Any, lengths: Sequence[int], rewards: Sequence[float]) -> Any:
    """Zeros, with each reward on the last token of its response; on the first where the response is empty."""
    import torch

    tensor = torch.zeros_like(data.batch["responses"], dtype=torch.float32)  # (rows, tokens)
    for row, (length, reward) in enumerate(zip(lengths, rewards, strict=True)):
        tensor[row, max(length - 1, 0)] = reward
    return tensor


def _columns(earned: Sequence[Earned]) -> dict[str, list[Any]]:
    """The extra information in the order of the batch: every key has a value of one type for every row."""
    names = dict.fromkeys(name for one in earned for name in one)
    return {name: _column([one.get(name) for one in earned]) for name in names}


def _column(values: Sequence[Any]) -> list[Any]:
    if any(isinstance(value, str) for value in values):
        return ["" if value is None else str(value) for value in values]
    return [_number(value) if value is None or isinstance(value, (int, float)) else value for value in values]


def _number(value: float | None) -> float:
    return 0.0 if value is None or math.isnan(value) else float(value)


def _prompt_text(row: BatchRow) -> str:
    prompt = row.sample.prompt
    return (
        prompt
        if isinstance(prompt, str)
        else "\n".join(f"{turn['role']}: {turn['content']}" for turn in prompt)
    )


def _with_group(row: BatchRow) -> BatchRow:
    group = row.sample.group or json.dumps(row.sample.prompt, ensure_ascii=False)
    return replace(row, sample=replace(row.sample, group=group))


class Task(Generic[T]):
    """Work on a thread of its own, or, for debugging, done here and now; `result` raises what it raised."""

    def __init__(self, work: Callable[[], T], *, use_async_io: bool = True) -> None:
        self._work = work
        self._future: Future[T] = Future()
        self._thread: threading.Thread | None = None
        if use_async_io:
            self._thread = threading.Thread(target=self._run, name="plaudit-rewards", daemon=True)
            self._thread.start()
        else:
            self._future.set_result(work())

    def result(self, timeout: float | None = None) -> T | None:
        """What came of it; None where that takes longer than `timeout` seconds."""
        if self._thread is not None and not self._thread.is_alive() and not self._future.done():
            return self._work()  # a forked child has the task, and not the thread
        try:
            return result_of(self._future, timeout)
        except TimeoutError:
            if self._future.done():  # it is the work's own
                raise
            return None

    def settle(self) -> None:
        """Wait until it has ended, whatever came of it."""
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            self._future.set_result(self._work())
        except BaseException as error:  # noqa: BLE001 - raised where somebody asks for the result
            self._future.set_exception(error)
