"""One row of a verl batch, read: the task, the response, the ground truth, and whose group it is in.

Nothing here imports verl or torch: a row is what `data[i]` gives, with `batch` and `non_tensor_batch`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from plaudit.errors import ConfigError
from plaudit.journal.base import STEP_KEY
from plaudit.rows import NO_TASK, SOURCE, made_sample, plain, read_prompt
from plaudit.types import Message, Sample

HELD_OUT = frozenset({"test", "val", "valid", "validation", "dev", "eval"})
"""Names of held-out splits, as data sets write them into `extra_info["split"]`."""
NOT_EXTRA = frozenset({
    "raw_prompt", "raw_prompt_ids", "full_prompts", "prompt", "uid", "reward_model", "extra_info",
    "data_source", "index", "agent_name", "tools_kwargs", "interaction_kwargs", "multi_modal_data",
    "multi_modal_inputs", "tool_extra_fields", "reward_scores", "__num_turns__", "prompt_len",
    "response_len", "request_id", "session_id", "global_steps",
})  # fmt: skip
"""Columns that verl adds or uses itself; the others are the data set's own, and judges may read them."""


@dataclass(frozen=True, slots=True)
class BatchRow:
    """What a reward needs to know of one response."""

    sample: Sample
    """Its `group` is verl's `uid`; None where there is none."""
    length: int
    """Tokens of the response, without padding."""
    data_source: str = ""
    ground_truth: Any = None
    extra_info: Mapping[str, Any] = field(default_factory=dict)
    """A copy, with what verl adds for its rules: the row's own stays as it was."""
    is_validation: bool | None = None
    """None: neither verl nor the data says it."""
    can_be_left_out: bool = False
    """Whether verl goes on with the others of its group where the reward of this row raises."""
    name: str = "a row"
    """How messages call it."""
    broken: str = ""
    """Why it can be judged by nothing, if it cannot."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """What the row should have and has not, by key: a message with the remedy."""
    decoded: str | None = None
    """The response's tokens as one text; None: the sample has it."""

    @property
    def solution(self) -> str:
        """The response as verl's rules get it: of an agent loop, with what the tools said."""
        return self.sample.text if self.decoded is None else self.decoded


def read_row(
    item: Any,
    tokenizer: Any,
    *,
    number: int | None = None,
    is_validation: bool | None = None,
    earlier: Iterable[Any] = (),
) -> BatchRow:
    """Read one row. Raises ConfigError, naming the key, the row and the remedy, where there is no response.

    number          its place in the batch, for messages, where the caller knows it
    is_validation   what the trainer says, if it says something; else `extra_info["split"]` may
    earlier         the sequences of the same trajectory before this one
    """
    columns: Mapping[str, Any] = item.non_tensor_batch
    info = columns.get("extra_info")
    extra = dict(info) if isinstance(info, Mapping) else {}
    source, uid = _text(columns.get("data_source")), _text(columns.get("uid"))
    name = _name(number, uid=uid, source=source, index=extra.get("index"))
    ids = _response_ids(item.batch, name, columns.get("response_len"))
    missing: dict[str, str] = {}
    if not uid:
        missing["uid"] = (
            f"uid: {name} has none, and counts as its own group; "
            'have the trainer set non_tensor_batch["uid"], the same for all responses to one prompt'
        )
    holder = columns.get("reward_model")
    truth = plain(holder.get("ground_truth")) if isinstance(holder, Mapping) else None
    if truth is None:
        missing["ground_truth"] = (
            f'reward_model["ground_truth"]: {name} has none; write it into the data\'s column reward_model, '
            "or set reward.plaudit.rule=off if the judge alone decides"
        )
    if not source:
        missing["data_source"] = (
            f"data_source: {name} has none, so no rule of verl's is for it; "
            "add the column data_source to the data, or set reward.plaudit.rule=off"
        )
    prompt = read_prompt(columns.get("raw_prompt"), "raw_prompt")
    if prompt == NO_TASK:
        prompt = _decoded(tokenizer, _prompt_ids(item.batch, columns.get("prompt_len")), name)
        missing["raw_prompt"] = (
            f"raw_prompt: {name} has none, so the judge sees the task as decoded from its tokens, "
            "with the text of the chat template in it; set data.return_raw_chat=True"
        )
    solution = _decoded(tokenizer, ids, name)
    turns = [turn for one in earlier for turn in _turns(one, None, tokenizer, name)]
    turns += _turns(item, solution, tokenizer, name)
    tools = columns.get("tool_extra_fields")
    others = {key: value for key, value in columns.items() if key not in NOT_EXTRA}
    others |= _step(columns) | extra | ({SOURCE: source} if source else {})
    seen = columns.get("multi_modal_data")
    if isinstance(seen, Mapping) and seen.get("image") is not None:
        others["images"] = seen["image"]
    return BatchRow(
        sample=made_sample(
            prompt, tuple(turns) if len(turns) > 1 else solution, truth, group=uid, extra=others
        ),
        length=len(ids),
        data_source=source,
        ground_truth=truth,
        extra_info={
            **extra,
            **(dict(tools) if isinstance(tools, Mapping) else {}),
            "num_turns": columns.get("__num_turns__"),
            "rollout_reward_scores": columns.get("reward_scores", {}),
        },
        is_validation=validation_of(columns, is_validation),
        can_be_left_out=can_be_left_out(columns),
        name=name,
        missing=missing,
        decoded=solution,
    )


def can_be_left_out(columns: Mapping[str, Any]) -> bool:
    """Whether the row comes from an agent loop of verl's V1, which numbers the sessions of a group."""
    return "session_id" in columns and "tool_extra_fields" in columns


def validation_of(columns: Mapping[str, Any], said: bool | None) -> bool | None:
    """Whether a row is validation: what the trainer said, else what its split says; None: unknown."""
    info = columns.get("extra_info")
    split = info.get("split") if isinstance(info, Mapping) else None
    is_held_out = split.lower() in HELD_OUT if isinstance(split, str) and split else None
    return is_held_out if said is None else bool(said)


def _name(number: int | None, *, uid: str, source: str, index: Any) -> str:
    place = f"row {number}" if number is not None else "the row"
    known = [f"uid {uid!r}"] * bool(uid) + [f"data source {source!r}"] * bool(source)
    known += [f"index {index}"] * (index is not None)
    return f"{place} ({', '.join(known)})" if known else place


def _text(value: Any) -> str:
    return "" if value is None else str(value)


# -- tokens ------------------------------------------------------------------------------------------------


def _response_ids(batch: Any, name: str, length: Any) -> list[int]:
    """The response's tokens without padding, which stands behind them.

    `length` is what verl says of it: with several sequences in a trajectory the mask is padded as a whole.
    """
    responses, mask = _tensor(batch, "responses", name), _tensor(batch, "attention_mask", name)
    if length is None:
        length = mask[len(mask) - len(responses) :].sum()
    return responses[: int(length)].tolist()  # type: ignore[no-any-return]


def _turns(item: Any, text: str | None, tokenizer: Any, name: str) -> list[Message]:
    """A response turn by turn: what the model wrote (`response_mask` 1) and what tools answered (0).

    `text` is the whole of it, where it was decoded: that of a response of one turn.
    """
    ids = _response_ids(item.batch, name, item.non_tensor_batch.get("response_len"))
    mask = [1] * len(ids)
    if "response_mask" in item.batch.keys():  # noqa: SIM118 - as in _tensor
        mask = item.batch["response_mask"].tolist()
    runs = [
        (is_own, [token for token, _ in run])
        for is_own, run in groupby(zip(ids, mask, strict=False), key=lambda pair: bool(pair[1]))
    ]
    whole = text if len(runs) == 1 else None
    return [
        {
            "role": "assistant" if is_own else "tool",
            "content": _decoded(tokenizer, run, name) if whole is None else whole,
        }
        for is_own, run in runs
    ]


def _prompt_ids(batch: Any, length: Any) -> list[int]:
    """The prompt's tokens without padding, which stands before them, or behind where verl says how many."""
    if batch is None or "prompts" not in batch.keys() or "attention_mask" not in batch.keys():  # noqa: SIM118
        return []
    prompts, mask = batch["prompts"], batch["attention_mask"]
    if length is not None:
        return prompts[: int(length)].tolist()  # type: ignore[no-any-return]
    return prompts[mask[: len(prompts)] != 0].tolist()  # type: ignore[no-any-return]


def _tensor(batch: Any, key: str, name: str) -> Any:
    if batch is None or key not in batch.keys():  # noqa: SIM118 - a TensorDict iterates over its rows
        raise ConfigError(
            f"is missing in {name}, so there is no response to judge; "
            "give the reward what the rollout made, with prompts, responses and attention_mask",
            setting=key,
        )
    return batch[key]


def _decoded(tokenizer: Any, ids: Sequence[int], name: str) -> str:
    if not ids:
        return ""
    try:
        return str(tokenizer.decode(ids, skip_special_tokens=True))
    except (ValueError, TypeError, ArithmeticError, LookupError, RuntimeError, AttributeError) as error:
        raise ConfigError(
            f"of {name} cannot be decoded ({type(error).__name__}: {error}); "
            "actor_rollout_ref.model.path must name the model that wrote it",
            setting="responses",
        ) from None


def _step(columns: Mapping[str, Any]) -> dict[str, int]:
    """The step of the training, for the journal, where verl says it."""
    step = plain(columns.get("global_steps"))
    return {STEP_KEY: step} if isinstance(step, int) and not isinstance(step, bool) else {}
