"""A conversation as a judge sees it: who said what, turn by turn, behind marks that no turn can hold.

    <turn-KFAGBCOPLMHA assistant>
    Let me run the tests.
    <turn-KFAGBCOPLMHA assistant calls run_tests, call 1>
    {"path": "tests"}
    <turn-KFAGBCOPLMHA tool run_tests, result of call 1>
    2 failed, 10 passed

Calls are numbered, since the ids of servers are random: the same conversation is always the same text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from plaudit.errors import ConfigError
from plaudit.judges.clean import CUT, TURN
from plaudit.judges.content import has_content
from plaudit.reasoning import without_reasoning
from plaudit.rows import role_of, text_of
from plaudit.turns import turns_of
from plaudit.types import Sample

View = Literal["full", "last"]
"""What is shown of a trajectory: all of it, or what the assistant says in its last turn."""

_ROLE = re.compile(r"[a-z]{1,16}")
_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_LONG_TURN = 4
"""A turn that takes more than this part of the room is cut itself, so that the others can be shown."""


class Transcript(str):
    """Turns as one text, each behind a mark with its speaker. Only `transcript` makes one."""

    __slots__ = ()


def without_marks(text: str) -> str:
    """A text of somebody else's, which can then hold no turn and no cut of ours.

    What they become is invisible, too, so it is removed and counted like the rest.
    """
    return text.replace(TURN, "\x02").replace(CUT, "\x02")


def transcript(
    label: str, messages: object, *, before: object = (), show_thinking: bool = True
) -> Transcript:
    """The turns of a conversation, or of what follows those `before`, whose tool calls it may answer.

    `label` is what errors call it: `task`, `response`. ConfigError where it is no conversation, or has a
    tool's result that no call asked for.
    """
    calls = _Calls(label, before)
    pieces: list[str] = []
    for number, message in enumerate(_checked(label, messages), start=1):
        pieces += _turn(label, number, message, calls, show_thinking=show_thinking)
    return Transcript("\n".join(f"{TURN}{piece}" for piece in pieces))


def answer_of(sample: Sample, *, with_reasoning: bool = False, view: View = "full") -> str:
    """What a judge is to see of the response: text, or the Transcript of a trajectory.

    Raises:
        ConfigError: It is neither text nor a conversation, or a tool's result that no call asked for.
    """
    response: object = sample.response
    if not isinstance(response, str):
        turns = _checked("response", response)
        spoken = _assistant_turns(turns)
        if view == "last" or (len(turns) == len(spoken) == 1 and not turns[0].get("tool_calls")):
            response = _content("response", *spoken[-1]) if spoken else ""
        elif any(turn.get("tool_calls") or has_content(_content("response", n, turn)) for n, turn in spoken):
            return transcript("response", response, before=sample.prompt, show_thinking=with_reasoning)
        else:
            return ""
    return response if with_reasoning or isinstance(response, Transcript) else without_reasoning(response)


def hides_reasoning(sample: Sample, answer: str) -> bool:
    """Whether the response has reasoning that the answer, as `answer_of` gave it, does not show."""
    if isinstance(sample.response, str):
        return answer != sample.response
    spoken = _assistant_turns(_checked("response", sample.response))
    texts = [text_of(turn.get("content")) for _, turn in spoken]
    return any(without_reasoning(text) != text and text not in answer for text in texts)


def cut_turns(text: str, max_chars: int) -> tuple[str, str]:
    """A transcript that fits, and what was left out: the middle of long turns first, then turns between."""
    if len(text) <= max_chars:
        return text, ""
    pieces = text.split(TURN)[1:]
    room = max(max_chars // _LONG_TURN, 1)
    notes = []
    missing = sum(max(len(piece) - room, 0) for piece in pieces)
    if missing:
        pieces = [_shortened(piece, room) for piece in pieces]
        notes.append(f"{missing:,} characters left out of long turns")
    front, back = _ends(pieces, max_chars)
    cut = ""
    if left_out := len(pieces) - front - back:
        cut = f"{CUT}{left_out:,} turns left out>\n"
        notes.append(f"{left_out:,} of {len(pieces):,} turns left out of the middle")
    marked = [TURN + piece for piece in pieces]
    return "".join((*marked[:front], cut, *marked[len(marked) - back :])), "; ".join(notes)


def _ends(pieces: list[str], max_chars: int) -> tuple[int, int]:
    """How many turns of the beginning and of the end fit: the first, the last, and then by turns."""
    front, back = 1, min(1, len(pieces) - 1)
    used = len(pieces[0]) + (len(pieces[-1]) if back else 0)
    while front + back < len(pieces):
        is_front = front < back
        size = len(pieces[front] if is_front else pieces[-1 - back])
        if used + size > max_chars:
            break
        used += size
        front, back = front + is_front, back + (not is_front)
    return front, back


def _shortened(piece: str, room: int) -> str:
    missing = len(piece) - room
    if missing <= 0:
        return piece
    header, _, text = piece.partition("\n")
    half = room // 2
    return f"{header}\n{text[:half]}\n{CUT}{missing:,} characters left out>\n{text[len(text) - half :]}\n"


class _Calls:
    """The tool calls so far, from those of the turns `before` on, and which of them wait for a result."""

    def __init__(self, label: str, before: object) -> None:
        self._label = label
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._open: dict[int, None] = {}
        for message in () if isinstance(before, str) else _checked("task", before):
            list(self.made_in(message))

    def made_in(self, message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """The calls of a turn: what each is called, and its arguments."""
        for call in message.get("tool_calls") or ():
            found = call.get("function", call) if isinstance(call, Mapping) else {}
            name = found.get("name") if isinstance(found, Mapping) else None
            if not isinstance(name, str):
                raise ConfigError(
                    'has a tool call without a name; write it like {"id": "1", "function": '
                    '{"name": "search", "arguments": "{}"}}',
                    setting=self._label,
                )
            self._names.append(name if _NAME.fullmatch(name) else "other")
            number = len(self._names)
            if call.get("id"):
                self._numbers[str(call["id"])] = number
            self._open[number] = None
            arguments = found.get("arguments", "")
            text = arguments if isinstance(arguments, str) else _json(self._label, arguments)
            yield f"{self._names[-1]}, call {number}", without_marks(text)

    def answered_by(self, number: int, message: Mapping[str, Any]) -> str:
        """Whose result a tool's turn is. Raises ConfigError where no call asked for it."""
        asked = message.get("tool_call_id")
        call = self._numbers.get(str(asked)) if asked else next(iter(self._open), None)
        if call is None and (asked or self._names):
            raise ConfigError(
                f"has a tool result (message {number}, {str(asked or 'without tool_call_id')[:40]}) that no "
                "call before it asked for; keep the assistant's turn with its tool_calls",
                setting=self._label,
            )
        if call is None:  # calls that are written as text, as some models do
            name = str(message.get("name") or "")
            return f" {name}" if _NAME.fullmatch(name) else ""
        self._open.pop(call, None)
        return f" {self._names[call - 1]}, result of call {call}"


def _turn(
    label: str, number: int, message: Mapping[str, Any], calls: _Calls, *, show_thinking: bool
) -> Iterator[str]:
    role, text = message["role"], without_marks(_content(label, number, message))
    if role == "tool":
        yield f"tool{calls.answered_by(number, message)}>\n{text}"
        return
    if role == "assistant" and not show_thinking:
        text = without_reasoning(text)
    made = list(calls.made_in(message))
    speaker = role if _ROLE.fullmatch(str(role)) else "other"
    if text or not made:
        yield f"{speaker}>\n{text}"
    for name, arguments in made:
        yield f"{speaker} calls {name}>\n{arguments}"


def _content(label: str, number: int, message: Mapping[str, Any]) -> str:
    try:
        return text_of(message.get("content"))
    except ConfigError as error:
        raise ConfigError(f"has a message ({number}) with {error}", setting=label) from None


def _checked(label: str, messages: object) -> list[Mapping[str, Any]]:
    """The turns of a conversation, their speakers in our words."""
    if not isinstance(messages, list | tuple):
        raise ConfigError(f"is {type(messages).__name__}; give text, or a list of messages", setting=label)
    turns = []
    is_judged = label == "response"
    for message in (turn for whole in messages for turn in turns_of(whole, with_reasoning=is_judged)):
        role = message.get("role") if isinstance(message, Mapping) else None
        if not isinstance(role, str) or not ("content" in message or message.get("tool_calls")):
            raise ConfigError("has a message without `role` and `content`", setting=label)
        known = role_of(role)
        turns.append(message if known == role else {**message, "role": known})
    return turns


def _assistant_turns(turns: list[Mapping[str, Any]]) -> list[tuple[int, Mapping[str, Any]]]:
    """What the assistant says or calls in a response, turn by turn, with their numbers.

    ConfigError where it has no turn, but one of a speaker of another name has, who may be it.
    """
    spoken = [(number, turn) for number, turn in enumerate(turns, start=1) if turn["role"] == "assistant"]
    others = {turn["role"] for turn in turns} - {"user", "system", "developer", "tool"}
    if others and not spoken:
        raise ConfigError(
            f"has no turn of the assistant, and turns of {min(others)[:40]!r}; "
            'write {"role": "assistant", ...} for what is to be judged',
            setting="response",
        )
    return spoken


def tool_list(tools: Iterable[Mapping[str, Any]]) -> str:
    """The tools that an assistant had, one a line. Raises ConfigError where they are none."""
    if isinstance(tools, str) or not all(isinstance(tool, Mapping) for tool in tools):
        raise ConfigError(
            'are not a list of tools; write each like {"type": "function", "function": {"name": "search"}}',
            setting="tools",
        )
    return "\n".join(_json("tools", tool) for tool in tools)


def _json(label: str, value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):
        raise ConfigError("holds data that contains itself, or has no JSON form", setting=label) from None
