"""Rows as verl hands them over, with arrays for tensors, and a tokenizer that writes `t<number>`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


class Words:
    """Decodes token 7 as `t7`."""

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        assert skip_special_tokens
        if any(token < 0 for token in ids):
            raise OverflowError("can't convert negative int to unsigned")
        return " ".join(f"t{token}" for token in ids)


@dataclass
class Item:
    batch: dict[str, Any]
    non_tensor_batch: dict[str, Any]


PROMPT = [{"role": "user", "content": "What is 7 times 8?"}]


def item(response: Sequence[int] = (5, 6, 7), *, padding: int = 2, **columns: Any) -> Item:
    """A row with a prompt of three tokens, padded on both sides; a column of None is left out."""
    prompts = [0, 0, 1, 2, 3]
    responses = [*response, *[0] * padding]
    mask = [0, 0, 1, 1, 1] + [1] * len(response) + [0] * padding
    given: dict[str, Any] = {
        "uid": "u1",
        "data_source": "openai/gsm8k",
        "reward_model": {"ground_truth": "56", "style": "rule"},
        "extra_info": {"index": 4, "split": "train"},
        "raw_prompt": np.array(PROMPT, dtype=object),
    }
    given |= columns
    return Item(
        {
            name: np.array(value)
            for name, value in zip(
                ("prompts", "responses", "attention_mask"), (prompts, responses, mask), strict=True
            )
        },
        {name: value for name, value in given.items() if value is not None},
    )
