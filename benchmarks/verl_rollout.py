"""A rollout for verl's V1 trainers made of transformers alone, for machines without vLLM.

verl imports this module in each of its processes (VERL_USE_EXTERNAL_MODULES) and finds the rollout
`transformers` in its own registries. The rest of a step is verl's. verl_step.py uses it.

Responses have forced lengths, since a policy of random weights hardly ever ends one by itself. Rows of a
batch are answered as each of them ends; a batch begins once all rows of the step are there.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import random
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
import torch
import verl.utils.import_utils
from transformers import AutoModelForCausalLM, DynamicCache
from verl.workers.rollout.base import _ROLLOUT_REGISTRY, BaseRollout
from verl.workers.rollout.replica import RolloutReplica, RolloutReplicaRegistry, TokenOutput

verl.utils.import_utils.is_trl_available = lambda: False  # verl 0.9.1 imports what newer TRLs lack
NAME = "transformers"
SERVER = "transformers_server_0"
QUIET = 5.0
"""Seconds without a new row after which the rows that came are a batch, however few."""
BUCKET = 512 << 20
"""Bytes of weights that are sent at once."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A row that waits for its response."""

    prompt: list[int]
    length: int
    reply: Future[list[int]]


class Server:
    """Generates with its own copy of the policy, on the trainer's GPU, and notes when it began and ended."""

    def __init__(self, path: str, longest: int) -> None:
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        dtype = torch.bfloat16 if self._device == "cuda" else torch.float32
        self._policy = AutoModelForCausalLM.from_pretrained(path, dtype=dtype).to(self._device).eval()
        self._longest, self._notes = longest, Path(os.environ["VERL_STEP_NOTES"])
        self._rows = int(os.environ["VERL_STEP_ROWS"])
        self._step, self._generated_at, self._begun_at = 0, 0.0, 0.0
        self._lengths = random.Random(0)  # the same for each run
        self._asked: queue.SimpleQueue[Asked] = queue.SimpleQueue()
        threading.Thread(target=self._generate_batches, daemon=True).start()

    async def generate(self, request_id: str, prompt_ids: list[int], **_: Any) -> TokenOutput:
        length = self._lengths.randint(self._longest // 16, self._longest)
        reply: Future[list[int]] = Future()
        self._asked.put(Asked(list(prompt_ids), length, reply))
        tokens = await asyncio.wrap_future(reply)
        return TokenOutput(
            token_ids=tokens, stop_reason="completed", extra_fields={"global_steps": self._step}
        )

    def _generate_batches(self) -> None:
        while True:
            rows = [self._asked.get()]
            with contextlib.suppress(queue.Empty):
                while len(rows) < self._rows:
                    rows.append(self._asked.get(timeout=QUIET))
            try:
                self._generate(rows)
            except Exception as error:
                for row in rows:
                    if not row.reply.done():
                        row.reply.set_exception(error)
                raise

    @torch.no_grad()
    def _generate(self, rows: list[Asked]) -> None:
        self._begun_at = self._begun_at or time.time()
        width = max(len(row.prompt) for row in rows)
        pad = self._policy.config.pad_token_id or 0
        end = self._policy.config.eos_token_id
        last = torch.tensor(
            [[pad] * (width - len(row.prompt)) + row.prompt for row in rows], device=self._device
        )
        mask = torch.tensor(
            [[0] * (width - len(row.prompt)) + [1] * len(row.prompt) for row in rows], device=self._device
        )
        places = (mask.cumsum(-1) - 1).clamp(min=0)
        cache = DynamicCache(config=self._policy.config)
        written: list[torch.Tensor] = []
        active = list(range(len(rows)))  # rows still in the batch
        while active:
            logits = self._policy(
                last,
                attention_mask=mask,
                position_ids=places,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            ).logits[:, -1]
            logits[:, end] = -torch.inf
            last = torch.multinomial(logits.float().softmax(-1), 1)
            column = torch.zeros(len(rows), dtype=torch.long, device=self._device)
            column[torch.tensor(active, device=self._device)] = last[:, 0]
            written.append(column)
            over = [row for row in active if rows[row].length <= len(written)]
            if over:
                tokens = torch.stack(written, 1)[torch.tensor(over, device=self._device)].tolist()
                self._generated_at = time.time()
                for row, answer in zip(over, tokens, strict=True):
                    rows[row].reply.set_result(answer)
                stays = [place for place, row in enumerate(active) if rows[row].length > len(written)]
                active = [active[place] for place in stays]
                if not active:
                    return
                kept = torch.tensor(stays, device=self._device)
                last, mask, places = last[kept], mask[kept], places[kept]
                cache.batch_select_indices(kept)
            mask = torch.cat([mask, mask.new_ones(len(active), 1)], 1)
            places = places[:, -1:] + 1

    async def load(self, weights: dict[str, torch.Tensor]) -> None:
        own = self._policy.state_dict()
        for name, values in weights.items():
            own[name].copy_(values)

    async def begin_step(self, step: int) -> None:
        self._step = step

    async def sleep(self) -> None:
        """verl's trainer has its batch: from here on the GPU computes log-probs."""
        if self._generated_at:
            times = {
                "step": self._step + 1,
                "begun": self._begun_at,
                "generated": self._generated_at,
                "trained": time.time(),
            }
            with self._notes.open("a", encoding="utf-8") as notes:
                notes.write(json.dumps(times) + "\n")
            self._generated_at = self._begun_at = 0.0
        if self._device == "cuda":
            torch.cuda.empty_cache()

    async def wake_up(self, tags: list[str] | None = None) -> None:
        """The weights are still there."""

    async def clear_kv_cache(self) -> None:
        """There is none between two batches."""


class Replica(RolloutReplica):
    """Starts the one server."""

    async def launch_servers(self) -> None:
        variables = {"RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": "1"}
        server = (
            ray.remote(Server)
            .options(name=SERVER, runtime_env={"env_vars": variables}, max_concurrency=self.max_concurrency)
            .remote(self.model_config.path, self.config.response_length)
        )
        self.servers.append(server)
        self._server_handle, self._server_address = server, SERVER


class Rollout(BaseRollout):
    """The trainer's side of the server: hands over the weights after each update."""

    async def resume(self, tags: list[str]) -> None:
        """Nothing was released."""

    async def release(self) -> None:
        """Nothing is: the policy is small."""

    async def update_weights(self, weights: Any, global_steps: int | None = None, **_: Any) -> None:
        server = ray.get_actor(SERVER)
        bucket: dict[str, torch.Tensor] = {}
        size = 0
        for name, values in weights:
            bucket[name] = values.detach().to("cpu", torch.bfloat16 if values.is_cuda else torch.float32)
            size += bucket[name].nbytes
            if size > BUCKET:
                await server.load.remote(bucket)
                bucket, size = {}, 0
        await server.load.remote(bucket)
        await server.begin_step.remote(global_steps or 0)


RolloutReplicaRegistry.register(NAME, lambda: Replica)
_ROLLOUT_REGISTRY[NAME, "async"] = f"{__name__}.Rollout"
