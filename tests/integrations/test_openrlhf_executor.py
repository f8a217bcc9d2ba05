"""The adapter for OpenRLHF with tensors, and with OpenRLHF's own executor."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from choosy import JUDGE, Choosy
from loopback import INSTANT, loopback
from openrlhf.utils.agent import SingleTurnAgentExecutor

from plaudit.integrations.openrlhf import reward_function

pytestmark = pytest.mark.environments

PROMPT = "<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n"


def test_it_gives_tensors_of_one_number_a_row() -> None:
    found = reward_function(JUDGE, **Choosy().options)([PROMPT + "worth 7<|im_end|>"], [PROMPT], ["4"])
    assert found["rewards"].tolist() == pytest.approx([0.7])
    assert found["scores"] is found["rewards"]
    assert found["extra_logs"]["judge_valid"].tolist() == [1.0]
    assert found["rewards"].dtype == torch.float32


def test_a_missing_verdict_is_a_number_near_the_others_of_its_prompt() -> None:
    reward_func = reward_function(JUDGE, **Choosy().options)
    for worth in (2, 4):
        reward_func([f"{PROMPT}worth {worth}"], [PROMPT], [None])
    found = reward_func([PROMPT + "lost"], [PROMPT], [None])
    assert found["rewards"].tolist() == pytest.approx([0.3])
    assert found["extra_logs"]["judge_valid"].tolist() == [0.0]


class Tokenizer:
    """One token for each character."""

    def __call__(self, text: str, **_: Any) -> dict[str, Any]:
        return {"input_ids": torch.tensor([list(map(ord, text))])}

    def decode(self, tokens: list[int], **_: Any) -> str:
        return "".join(map(chr, tokens))


class Policy:
    async def generate(self, tokens: list[int], *_: Any, **__: Any) -> Any:
        reply = SimpleNamespace(
            token_ids=list(map(ord, "worth 7<|im_end|>")), logprobs=None, finish_reason="stop", text=""
        )
        return SimpleNamespace(outputs=[reply], prompt_token_ids=tokens)


def test_openrlhfs_own_executor_loads_and_calls_it(tmp_path: Path) -> None:
    file = tmp_path / "reward.py"
    sampling = SimpleNamespace(max_tokens=100, logprobs=None)
    with loopback(INSTANT) as server:
        file.write_text(
            "from plaudit import Rubric\n"
            "from plaudit.integrations.openrlhf import reward_function\n"
            f"reward_func = reward_function(Rubric('Is it kind?'), url={server.url!r}, model='m')\n"
        )
        executor = SingleTurnAgentExecutor(str(file))
        found = asyncio.run(executor.execute(PROMPT, "4", sampling, 4096, Tokenizer(), Policy()))
        assert server.stats.answered == 1
    assert 0.0 <= torch.tensor([found["reward"]]).item() <= 1.0
    assert found["extra_logs"]["judge_valid"].item() == 1.0
