"""Batches for verl's legacy managers: a real DataProto of texts, a token for each character."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # verl and what it imports have theirs
    from verl import DataProto

PROMPT_WIDTH, RESPONSE_WIDTH = 24, 64
SOURCE = "my/essays"


class Letters:
    """A tokenizer with a token for each character."""

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        assert skip_special_tokens
        return "".join(map(chr, ids))


def batch(
    responses: Sequence[str],
    *,
    uids: Sequence[str] | None = None,
    prompts: Sequence[str] | None = None,
    truth: str | None = "4",
    width: int = RESPONSE_WIDTH,
    **columns: Any,
) -> Any:
    """A DataProto, padded left and right as rollouts are; a column of None is left out."""
    count = len(responses)
    uids = uids if uids is not None else ["a"] * count
    prompts = prompts if prompts is not None else [f"What is {uid}?" for uid in uids]
    asked = torch.tensor([_left(prompt) for prompt in prompts]).reshape(count, PROMPT_WIDTH)
    answered = torch.tensor([_right(response, width) for response in responses]).reshape(count, width)
    given: dict[str, Any] = {
        "uid": list(uids),
        "data_source": [SOURCE] * count,
        "reward_model": [{"style": "rule", "ground_truth": truth} for _ in responses],
        "extra_info": [{"index": index, "split": "train"} for index in range(count)],
        "raw_prompt": [[{"role": "user", "content": prompt}] for prompt in prompts],
    }
    given |= columns
    return DataProto.from_dict(
        tensors={
            "prompts": asked,
            "responses": answered,
            "attention_mask": (torch.cat([asked, answered], dim=1) != 0).long(),
        },
        non_tensors={name: _objects(values) for name, values in given.items() if values is not None},
    )


def rewards_of(tensor: Any) -> list[float]:
    """What each row got, wherever it stands."""
    return [float(value) for value in tensor.sum(dim=-1)]


def _left(text: str) -> list[int]:
    return [0] * (PROMPT_WIDTH - len(text)) + [ord(letter) for letter in text]


def _right(text: str, width: int) -> list[int]:
    return [ord(letter) for letter in text] + [0] * (width - len(text))


def _objects(values: Sequence[Any]) -> Any:
    array = np.empty(len(values), dtype=object)
    for index, value in enumerate(values):
        array[index] = value
    return array
