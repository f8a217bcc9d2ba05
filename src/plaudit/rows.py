"""Rows of data, read alike by every front end: the prompt, the response, the reference, the other columns.

Pure. A prompt is text or a conversation, whose turns are mappings or objects, with text or content parts. The
same row gives the same Sample, hence the same judge input and the same cache key, wherever it came from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from plaudit.errors import ConfigError
from plaudit.types import Message, Sample

NO_TASK = "(The task was not recorded.)"
"""The prompt of a row that has none."""
SOURCE = "data_source"
"""The column that names the data set a row is from."""

Prompt = str | tuple[Message, ...]


def read_sample(
    prompt: Any,
    response: Any,
    reference: Any = None,
    *,
    group: Any = None,
    extra: Mapping[str, Any] | None = None,
) -> Sample:
    """A row as judges take it.

    Args:
        prompt: Text, or the turns of a conversation; nothing where the task was not recorded.
        response: Text, or the turns of a conversation.
        reference: The ground truth, in whatever a data set keeps it.
        group: What the responses to one prompt have in common; nothing for a row of its own.
        extra: The other columns of the row.

    Raises:
        ConfigError: The prompt or the response is neither text nor a conversation.
    """
    return Sample(
        read_prompt(prompt),
        read_response(response),
        read_reference(reference),
        None if group is None or group == "" else str(group),
        {name: plain(value) for name, value in (extra or {}).items()},
    )


def read_prompt(value: Any, name: str = "prompt") -> Prompt:
    """What was asked: text, or turns of text; NO_TASK where nothing is there.

    Raises:
        ConfigError: It is neither; the message calls it by `name`.
    """
    if value is None or isinstance(value, str):
        return value if value and value.strip() else NO_TASK
    if isinstance(value, Mapping) or not isinstance(value, Iterable):
        raise ConfigError(f"{name!r} is {kind_of(value)}, neither text nor a list of messages")
    return tuple(_message(name, number, turn) for number, turn in enumerate(value, start=1)) or NO_TASK


def read_response(value: Any) -> str:
    """What was answered, as text. Of several turns (tools were called) each has its role before it."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, Mapping) or not isinstance(value, Iterable):
        raise ConfigError(f"'response' is {kind_of(value)}, neither text nor a list of messages")
    turns = list(value)
    messages = [_message("response", number, turn) for number, turn in enumerate(turns, start=1)]
    if len(messages) == 1 and not _has_calls(turns[0]):
        return messages[0]["content"]
    return "\n\n".join(f"[{message['role']}]\n{message['content']}" for message in messages)


def read_reference(value: Any) -> str | None:
    """A ground truth as text: JSON where it is none; None where it says nothing."""
    value = plain(value)
    if value is None or isinstance(value, str):
        return value if value and value.strip() else None
    return json.dumps(value, ensure_ascii=False, default=str)


def text_of(content: Any) -> str:
    """The text of a turn's content; of content parts, their texts, with a mark like [image] for the others.

    Raises:
        ConfigError: It is neither text nor content parts.
    """
    if content is None or isinstance(content, str):
        return content or ""
    parts = [content] if isinstance(content, Mapping) else content
    if not isinstance(parts, Iterable):
        raise ConfigError(f"{kind_of(content)} as its content, not text")
    return "".join(map(_part, parts))  # chat templates put nothing between them either


def plain(value: Any) -> Any:
    """A value without numpy in it, which is how data sets in Parquet arrive."""
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def kind_of(value: Any) -> str:
    """What a value is, in words for a message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "text" if value else "empty text"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    return "an object" if isinstance(value, Mapping) else f"a {type(value).__name__}"


def _message(name: str, number: int, turn: Any) -> Message:
    role = _field(turn, "role")
    if not isinstance(role, str) or (isinstance(turn, Mapping) and not {"content", "tool_calls"} & set(turn)):
        raise ConfigError(f'message {number} of {name!r} is not like {{"role": "user", "content": "..."}}')
    try:
        content = text_of(_field(turn, "content"))
    except ConfigError as error:
        raise ConfigError(f"message {number} of {name!r} has {error}") from None
    if _has_calls(turn):
        calls = plain(_field(turn, "tool_calls"))
        content += f"\n[tool calls] {json.dumps(calls, ensure_ascii=False, default=str)}"
    return {"role": str(role), "content": content}


def _has_calls(turn: Any) -> bool:
    calls = _field(turn, "tool_calls")
    return calls is not None and len(calls) > 0


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    text, kind = _field(part, "text"), _field(part, "type")
    if isinstance(text, str):
        return text
    if not isinstance(kind, str):
        raise ConfigError(f"{kind_of(part)} among its content parts")
    return "" if kind == "text" else f"[{kind}]"


def _field(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
