"""A turn of a conversation as chat endpoints take it, from the forms in which other APIs write it.

These are the content blocks of Anthropic, the items of OpenAI's responses, its former `function_call`, and
ShareGPT. Reasoning in a field of its own is put between tags, like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_OWN_FIELDS = {"function_call", "reasoning_content", "reasoning"}
_BLOCKS = ("tool_result", "tool_use", "thinking", "redacted_thinking")


def turns_of(turn: Any, *, with_reasoning: bool = True) -> tuple[Any, ...]:
    """The turn itself, or those that it stands for: one may hold what is said, called and answered.

    Reasoning in a field of its own may be left out, as chat templates do with that of earlier turns.
    """
    if isinstance(turn, dict) and isinstance(turn.get("content"), str) and _OWN_FIELDS.isdisjoint(turn):
        return (turn,)
    if isinstance(turn, Mapping) and "from" in turn and "value" in turn:
        return ({"role": turn["from"], "content": turn["value"]},)
    match field_of(turn, "type"):
        case "function_call":
            call = {"id": field_of(turn, "call_id"), "function": turn}
            return ({"role": "assistant", "content": "", "tool_calls": [call]},)
        case "function_call_output":
            return (_result(turn, "call_id", "output"),)
        case "reasoning":
            return ()
    content = field_of(turn, "content")
    parts = content if isinstance(content, list | tuple) else ()
    blocks = {kind: [part for part in parts if field_of(part, "type") == kind] for kind in _BLOCKS}
    said = [part for part in parts if field_of(part, "type") not in _BLOCKS]
    thoughts = [field_of(block, "thinking") for block in blocks["thinking"]]
    thoughts.append(field_of(turn, "reasoning_content") or field_of(turn, "reasoning"))
    hidden = "\n".join(thought for thought in thoughts if isinstance(thought, str) and with_reasoning)
    calls = [
        {"id": field_of(block, "id"), "name": field_of(block, "name"), "arguments": field_of(block, "input")}
        for block in blocks["tool_use"]
    ]
    calls += filter(None, [field_of(turn, "function_call")])
    if len(said) == len(parts) and not calls and not hidden:
        return (turn,)
    names = ("role", "images", "tool_call_id", "name")
    own = {name: value for name in names if (value := field_of(turn, name)) is not None}
    own["content"] = said if parts else content or ""
    if hidden:
        own["content"] = [f"<think>{hidden}</think>", *(said if parts else [content or ""])]
    if calls := [*several(field_of(turn, "tool_calls")), *calls]:
        own["tool_calls"] = calls
    results = [_result(block, "tool_use_id", "content") for block in blocks["tool_result"]]
    return (*results, own) if own["content"] or calls else tuple(results)


def field_of(thing: Any, name: str) -> Any:
    """A field of a mapping or of an object; None where there is none."""
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def several(value: Any) -> tuple[Any, ...]:
    """What stands where a list belongs: its items, the one thing that is no list, or nothing."""
    if isinstance(value, str | bytes | Mapping | None):
        return (value,) if value else ()
    return tuple(value) if isinstance(value, Iterable) else (value,)


def _result(block: Any, asked: str, said: str) -> Mapping[str, Any]:
    return {"role": "tool", "tool_call_id": field_of(block, asked), "content": field_of(block, said)}
