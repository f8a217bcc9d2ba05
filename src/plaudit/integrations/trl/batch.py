"""A batch as TRL hands it over, as samples: lists of prompts and completions, plain or conversational.

Pure. Completions of one prompt lie side by side, `num_generations` of them: so groups are told apart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from plaudit.errors import ConfigError
from plaudit.types import Message, Sample

Columns = Mapping[str, Any]
NO_COLUMNS = frozenset({"trainer_state", "log_extra", "log_metric", "environments"})
"""What TRL passes beside the columns of the data set."""


def samples_of(
    prompts: Sequence[Any],
    completions: Sequence[Any],
    columns: Columns,
    *,
    reference: str | None = None,
    num_generations: int | None = None,
) -> list[Sample]:
    """One sample for each completion, in order; `reference` names the column with the right answers."""
    if len(prompts) != len(completions):
        raise ConfigError(
            f"completions has {len(completions)} entries for {len(prompts)} prompts; give one for each"
        )
    rows = columns_of(columns, len(prompts))
    references = _references(rows, reference, len(prompts))
    groups = groups_of(prompts, num_generations)
    samples: list[Sample] = []
    for row, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
        is_new = not row or groups[row] != groups[row - 1]
        task = task_of(prompt) if is_new else samples[-1].prompt  # one text for the whole group
        extra = {name: values[row] for name, values in rows.items()}
        samples.append(Sample(task, text_of(completion), references[row], groups[row], extra))
    return samples


def columns_of(columns: Columns, count: int) -> dict[str, Sequence[Any]]:
    """The columns of the data set: what has a value for each row."""
    return {
        name: values
        for name, values in columns.items()
        if name not in NO_COLUMNS and isinstance(values, list | tuple) and len(values) == count
    }


def groups_of(prompts: Sequence[Any], num_generations: int | None = None) -> list[str]:
    """A name for each row's group: equal prompts side by side, cut where a group is complete."""
    groups: list[str] = []
    number = size = 0
    for row, prompt in enumerate(prompts):
        is_full = num_generations is not None and size >= num_generations
        if row and (is_full or prompt != prompts[row - 1]):
            number, size = number + 1, 0
        size += 1
        groups.append(str(number))
    return groups


def task_of(prompt: Any) -> str | list[Message]:
    """The prompt as judges take it: text, or turns of text."""
    if isinstance(prompt, str):
        return prompt
    return [{"role": str(turn["role"]), "content": _content(turn)} for turn in prompt]


def text_of(completion: Any) -> str:
    """What the policy said. Of several turns (tools were called) each has its role before it."""
    if isinstance(completion, str):
        return completion
    if len(completion) == 1 and not completion[0].get("tool_calls"):
        return _content(completion[0])
    return "\n\n".join(f"[{turn.get('role', '')}]\n{_content(turn)}{_calls(turn)}" for turn in completion)


def _content(turn: Mapping[str, Any]) -> str:
    """The text of a turn; of one in parts (text, images), the text, and a mark where something else is."""
    content = turn.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    parts = (part if isinstance(part, Mapping) else {"text": str(part)} for part in content)
    return "\n".join(str(part.get("text") or f"[{part.get('type', 'part')}]") for part in parts)


def _calls(turn: Mapping[str, Any]) -> str:
    calls = turn.get("tool_calls")
    return f"\n[tool calls] {json.dumps(calls, ensure_ascii=False, default=str)}" if calls else ""


def _references(rows: Columns, name: str | None, count: int) -> list[str | None]:
    if name is None:
        return [None] * count
    if name not in rows:
        raise ConfigError(
            f"names no column of the data set, which has {', '.join(rows) or 'none'} "
            "beside the prompt; name the column with the right answers",
            setting="reference",
            value=name,
        )
    return [_reference(value) for value in rows[name]]


def _reference(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
