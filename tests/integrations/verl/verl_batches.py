"""Real verl batches on a CPU: a tokenizer of a few words, a configuration, rows as a rollout leaves them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

WORDS = ["answer", "right", "wrong", "lost", *(str(number) for number in range(200))]
PROMPT = [{"role": "user", "content": "What is 7 times 8?"}]
PROMPT_WIDTH, WIDTH = 4, 6


def save_tokenizer(folder: Path) -> Path:
    """A tokenizer of whole words, as transformers loads it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = ["<pad>", "<eos>", "<unk>"]
    vocabulary = {word: number for number, word in enumerate([*special, *WORDS])}
    raw = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    raw.decoder = decoders.WordPiece(prefix="##")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )
    tokenizer.save_pretrained(folder)
    return folder


def configuration(tokenizer: Path, *, n: int = 4, num_workers: int = 2, **reward: Any) -> Any:
    """verl's own reward section, with plaudit's manager in it and what a test changes."""
    import verl
    from omegaconf import OmegaConf

    shipped = OmegaConf.load(Path(verl.__file__).parent / "trainer" / "config" / "reward" / "reward.yaml")
    manager = {
        "source": "importlib",
        "name": "RewardManager",
        "module": {"path": "pkg://plaudit.integrations.verl"},
    }
    return OmegaConf.create(
        {
            "actor_rollout_ref": {
                "model": {"path": str(tokenizer), "tokenizer_path": str(tokenizer)},
                "rollout": {"n": n, "val_kwargs": {"n": 1}, "multi_turn": {}},
            },
            "reward": OmegaConf.merge(
                shipped, {"num_workers": num_workers, "reward_manager": manager}, reward
            ),
        }
    )


def batch(tokenizer: Any, responses: Sequence[str], *, validate: bool = False, **columns: Any) -> Any:
    """A DataProto of these responses; a column is a list with a value for each row, None leaves it out."""
    import numpy as np
    import torch
    from verl import DataProto

    count = len(responses)
    tokens = [tokenizer.encode(text) for text in responses]
    prompts = torch.zeros(count, PROMPT_WIDTH, dtype=torch.long)
    prompts[:, 2:] = 3
    answers = torch.zeros(count, WIDTH, dtype=torch.long)
    mask = torch.zeros(count, PROMPT_WIDTH + WIDTH, dtype=torch.long)
    mask[:, 2:PROMPT_WIDTH] = 1
    for row, ids in enumerate(tokens):
        answers[row, : len(ids)] = torch.tensor(ids, dtype=torch.long)
        mask[row, PROMPT_WIDTH : PROMPT_WIDTH + len(ids)] = 1
    given: dict[str, Any] = {
        "uid": [f"u{row // 4}" for row in range(count)],
        "data_source": ["own/questions"] * count,
        "reward_model": [{"ground_truth": "56"}] * count,
        "extra_info": [{"index": row, "split": "train"} for row in range(count)],
        "raw_prompt": [PROMPT] * count,
    }
    given |= columns
    non_tensors = {}
    for name, values in given.items():
        if values is not None:
            non_tensors[name] = np.empty(count, dtype=object)
            non_tensors[name][:] = values
    return DataProto.from_dict(
        tensors={"prompts": prompts, "responses": answers, "attention_mask": mask},
        non_tensors=non_tensors,
        meta_info={"validate": validate} if validate else {},
    )
