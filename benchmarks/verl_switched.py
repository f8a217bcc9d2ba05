"""A reward manager that judges rows as they are generated in some steps, and after all of them in others."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import ray

from plaudit.integrations.verl import RewardManager


class Gate:
    """Lets the rows of a step go once all of them are there, in all processes."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._came: dict[int, int] = {}
        self._open: dict[int, asyncio.Event] = {}

    async def passed(self, step: int) -> None:
        self._came[step] = self._came.get(step, 0) + 1
        gate = self._open.setdefault(step, asyncio.Event())
        if self._came[step] >= self._rows:
            gate.set()
        await gate.wait()


def is_overlapped(step: int) -> bool:
    """Every other step is."""
    return step % 2 == 1


class Switched(RewardManager):  # type: ignore[misc]
    """plaudit's manager; in every other step no row is judged before the last one is generated."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        gates = ray.remote(Gate).options(name="gate", get_if_exists=True, max_concurrency=1000, num_cpus=0)
        self._gate = gates.remote(int(os.environ["VERL_STEP_ROWS"]))

    async def run_single(self, data: Any) -> dict[str, Any]:
        columns = getattr(data, "non_tensor_batch", {})
        if "global_steps" not in columns:
            return await super().run_single(data)
        step = int(columns["global_steps"][0])
        if not is_overlapped(step):
            await self._gate.passed.remote(step)
        reward: dict[str, Any] = await super().run_single(data)
        with Path(os.environ["VERL_STEP_NOTES"]).open("a", encoding="utf-8") as notes:
            notes.write(json.dumps({"step": step, "judged": time.time()}) + "\n")
        return reward
