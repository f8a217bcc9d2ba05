"""Rows of data, read alike by every front end: the prompt, the response, the reference, the other columns.

Pure. A prompt is text or a conversation, whose turns are mappings or objects, with text or content parts. The
same row gives the same Sample, hence the same judge input and the same cache key, wherever it came from.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import PurePath
from typing import Any

from plaudit.errors import ConfigError, spelling
from plaudit.turns import field_of, several, turns_of
from plaudit.types import Message, Sample

NO_TASK = "(The task was not recorded.)"
"""The prompt of a row that has none."""
_ENDINGS = (".jsonl", ".json", ".csv", ".tsv", ".parquet")
SOURCE = "data_source"
"""The column that names the data set a row is from."""

PROMPTS = ("prompt", "question", "instruction", "query", "problem", "input")
RESPONSES = (
    "response", "completion", "model_output", "model_response", "model_answer", "prediction",
    "generated_text", "generation", "output", "answer", "solution",
)  # fmt: skip
REFERENCES = ("reference", "ground_truth", "reference_answer", "expected", "target", "answer", "solution")
CONVERSATIONS = ("messages", "conversations", "conversation")
"""Names that columns have in common data sets; the first that is there is taken."""
_ROLES = {
    **dict.fromkeys(("gpt", "model", "ai", "bot", "chatbot"), "assistant"),
    **dict.fromkeys(("function", "ipython", "observation"), "tool"),
    "human": "user",
}
"""What data sets and models call a speaker, in our words."""

Prompt = str | tuple[Message, ...]
Rows = Sample | Mapping[str, Any] | Iterable[Sample | Mapping[str, Any]]
"""What can be judged in Python: samples, rows as mappings, or a table that has rows."""


class MissingField(ConfigError):
    """A row lacks a column that it needs."""


@dataclass(frozen=True, slots=True)
class Fields:
    """Which columns of a data set hold what; `a.b` is the field `b` of the object in column `a`."""

    prompt: str = "prompt"
    response: str = "response"
    """The same as `prompt` where a conversation holds both: its last turn is the response."""
    reference: str = "reference"
    group: str = "group"
    context: str = ""
    """A column with more of the task, which follows the prompt."""

    def sample(self, row: Mapping[str, Any]) -> Sample:
        """A row as judges take it; other columns become `extra`. ConfigError where it lacks something."""
        prompt, response = _needed(row, self.prompt), _needed(row, self.response)
        if self.prompt == self.response:
            prompt, response = _split(read_prompt(prompt, self.prompt), self.prompt)
        else:
            more = row.get(self.context)
            if isinstance(prompt, str) and isinstance(more, str) and more.strip():
                prompt = f"{prompt}\n\n{more}"
            prompt, response = read_prompt(prompt, self.prompt), read_response(response, self.response)
        used = {self.prompt, self.response, self.reference, self.group, self.context}
        extra = {name: value for name, value in row.items() if name not in used}
        group = _label(value_of(row, self.group), self.group)
        return made_sample(prompt, response, value_of(row, self.reference), group=group, extra=extra)

    def __str__(self) -> str:
        """What is read from where, for people; empty where the columns have plaudit's own names."""
        if self.prompt == self.response:
            return f"response from the last turn of {self.prompt!r}, prompt from the turns before it"
        named = {name: getattr(self, name) for name in ("prompt", "response", "reference", "group")}
        found = {name: repr(column) for name, column in named.items() if column != name}
        if self.context:
            found["prompt"] = f"{self.prompt!r} and {self.context!r}"
        return ", ".join(f"{name} from {column}" for name, column in found.items())


def value_of(row: Mapping[str, Any], name: str) -> Any:
    """The value of a column, or of a field within one where the name has dots; None where there is none."""
    if name in row or "." not in name:
        return row.get(name)
    value: Any = row
    for step in name.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _needed(row: Mapping[str, Any], name: str) -> Any:
    value = plain(value_of(row, name))
    if value is None and name not in row:
        known = ", ".join(map(str, list(row)[:8])) or "none at all"
        lists = ((one, held) for one, held in row.items() if isinstance(held, list) and held)
        inside = next((one for one, held in lists if isinstance(held[0], Mapping)), None)
        hint = f" (the rows seem to be in {inside!r}: jq -c '.{inside}[]' takes them out)" if inside else ""
        raise MissingField(f"no {name!r}; its fields are: {known}{hint}")
    if value is None or (isinstance(value, list) and not value):
        raise ConfigError(f"{name!r} is {kind_of(value)}, neither text nor a list of messages")
    return value


def find_fields(names: Collection[str], given: Mapping[str, str | None] | None = None) -> Fields:
    """Recognise the columns of a data set by their names, whatever their capitals; some may be `given`.

    Where nothing is recognised, they have plaudit's own names.
    """
    found = {name: column for name, column in (given or {}).items() if column}
    prompt = found.get("prompt") or _first(PROMPTS, names)
    response = found.get("response") or _first(RESPONSES, set(names) - {prompt})
    conversation = _first(CONVERSATIONS, names)
    if conversation and not response:
        prompt = response = found.get("prompt") or conversation
    elif conversation and not prompt:
        prompt = conversation
    elif "prompt" in found and not response:
        response = "response"
    found |= {name: column for name, column in (("prompt", prompt), ("response", response)) if column}
    if prompt and response:
        if (prompt, response) != ("prompt", "response"):
            rest = set(names) - {prompt, response}
            found.setdefault("reference", _first(REFERENCES, rest) or "reference")
        if prompt == "instruction" and "input" in names and response != "input":
            found["context"] = "input"
    return Fields(**found)


class RowReader:
    """Reads the rows of one data set: its first row decides which columns hold what."""

    def __init__(self, given: Mapping[str, str | None] | None = None) -> None:
        self._given = given
        self.fields: Fields | None = None
        """The columns, once a row was read."""

    def __call__(self, row: Mapping[str, Any]) -> Sample:
        """The next row. Raises ConfigError where it cannot be judged."""
        if self.fields is None:
            self.fields = find_fields(row.keys(), self._given)
        return self.fields.sample(row)


def as_samples(rows: Rows) -> list[Sample]:
    """Samples as they are; rows of data, or of a data frame or data set, as samples; one makes a list of one.

    ConfigError where one of them is neither, or lacks a column.
    """
    if isinstance(rows, list) and all(isinstance(one, Sample) for one in rows):
        return rows[:]  # the rule, and many a batch has but one
    table: Any = rows
    if isinstance(rows, Sample | Mapping):
        table = [rows]
    elif isinstance(rows, str | PurePath) and str(rows).endswith(_ENDINGS):
        raise ConfigError(
            "is the name of a file; read it first, like pandas.read_json(FILE, lines=True), "
            "or run: plaudit score FILE",
            setting="samples",
            value=str(rows),
        )
    elif isinstance(rows, str) or not isinstance(rows, Iterable):
        raise ConfigError(
            f'should be a list of Sample(prompt, response) or of {{"prompt": ..., "response": ...}}, '
            f"and is {kind_of(rows)}",
            setting="samples",
        )
    elif hasattr(rows, "to_dicts"):  # Polars
        table = rows.to_dicts()
    elif hasattr(rows, "to_dict") and hasattr(rows, "columns"):  # pandas
        table = rows.to_dict("records")
    read = RowReader()
    return [
        one if isinstance(one, Sample) else _row_sample(number, one, read) for number, one in enumerate(table)
    ]


def _row_sample(number: int, row: Any, read: RowReader) -> Sample:
    if not isinstance(row, Mapping):
        raise ConfigError(
            f'is {kind_of(row)}; write Sample(prompt, response) or {{"prompt": ..., "response": ...}}',
            setting=f"samples[{number}]",
        )
    try:
        return read(row)
    except ConfigError as error:
        what = "has" if isinstance(error, MissingField) else "cannot be judged:"
        raise ConfigError(f"{what} {error}", setting=f"samples[{number}]") from None


def read_sample(
    prompt: Any,
    response: Any,
    reference: Any = None,
    *,
    group: Any = None,
    extra: Mapping[str, Any] | None = None,
) -> Sample:
    """A row as judges take it: a prompt and a response that are text or turns, a reference in whatever form.

    ConfigError where the prompt or the response is neither text nor a conversation.
    """
    return made_sample(read_prompt(prompt), read_response(response), reference, group=group, extra=extra)


def made_sample(
    prompt: Prompt,
    response: Prompt,
    reference: Any = None,
    *,
    group: Any = None,
    extra: Mapping[str, Any] | None = None,
) -> Sample:
    """`read_sample` of a prompt and a response that were read."""
    columns = {name: _cell(value) for name, value in (extra or {}).items()}
    reference = plain(reference)
    with spelling(lambda *_: "reference"):
        if is_parts(reference) and (images := images_of([{"content": reference}])):
            columns[REFERENCE_IMAGES] = list(images)
    tools = columns.get("tools")
    is_list = isinstance(tools, list) and all(isinstance(tool, Mapping) for tool in tools)
    return Sample(
        _with_pictures(prompt, columns),
        response,
        read_reference(reference),
        str(group) if group is not None and str(group) else None,
        columns,
        tools=tools if is_list and tools else (),
    )


def _with_pictures(prompt: Prompt, columns: Mapping[str, Any]) -> Prompt:
    """The prompt with the pictures of the row's column, where its turns only mark the places of them."""
    pictures = columns.get("images", columns.get("image"))
    if isinstance(prompt, str) or pictures is None or any("images" in turn for turn in prompt):
        return prompt
    places = [turn["content"].count(_IMAGE) for turn in prompt]
    if not sum(places):
        return prompt
    with spelling(lambda *_: "images"):
        given = [_picture(one) for one in (pictures if isinstance(pictures, list | tuple) else [pictures])]
    if len(given) != sum(places):
        raise ConfigError(f"has {sum(places)} places for {len(given)} pictures", setting="prompt")
    ends = list(accumulate(places))
    shares = [tuple(given[end - count : end]) for end, count in zip(ends, places, strict=True)]
    return tuple(
        turn | {"images": share} if share else turn for turn, share in zip(prompt, shares, strict=True)
    )


def read_prompt(value: Any, name: str = "prompt") -> Prompt:
    """What was asked: text, or turns of text; NO_TASK where nothing is there. Errors call it by `name`."""
    if value is None or isinstance(value, str):
        return value if value and value.strip() else NO_TASK
    return _messages(name, value, is_judged=False) or NO_TASK


def read_response(value: Any, name: str = "response") -> Prompt:
    """What was answered: text, or the turns of a trajectory; a single answer without tool calls is text."""
    if value is None or isinstance(value, str):
        return value or ""
    messages = _messages(name, value, is_judged=True)
    if len(messages) == 1 and not {"tool_calls", "images"} & messages[0].keys():
        return messages[0]["content"]
    return messages or ""


def read_reference(value: Any) -> str | None:
    """A ground truth as text: JSON where it is none; None where it says nothing.

    Of content parts it is their text, with marks where pictures and other files stand.
    """
    value = _cell(value)
    if is_parts(value):
        try:
            value = text_of(value)
        except ConfigError as error:
            raise ConfigError(f"has {error}", setting="reference") from None
    if value is None or isinstance(value, str):
        return value if value and value.strip() else None
    return json.dumps(value, ensure_ascii=False, default=str)


def role_of(name: str) -> str:
    """Who speaks: `assistant`, `user`, `tool`, `system`, whatever a data set calls them; or another name."""
    folded = name.strip().casefold()
    return _ROLES.get(folded, folded)


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


def _cell(value: Any) -> Any:
    """The plain value of a column; None where it is NaN, which is how pandas has cells that are empty."""
    value = plain(value)
    return None if isinstance(value, float) and math.isnan(value) else value


def kind_of(value: Any) -> str:
    """What a value is, in words for a message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "missing (NaN)" if value != value else "a number"  # noqa: PLR0124 - NaN is not itself
    if isinstance(value, str):
        return "text" if value else "empty text"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    return "an object" if isinstance(value, Mapping) else f"a {type(value).__name__}"


def _messages(name: str, turns: Any, *, is_judged: bool) -> tuple[Message, ...]:
    if isinstance(turns, Mapping | bytes) or not isinstance(turns, Iterable):
        remedy = "; make it text" if is_judged and kind_of(turns) == "a number" else ""
        raise ConfigError(f"{name!r} is {kind_of(turns)}, neither text nor a list of messages{remedy}")
    return tuple(
        _message(name, number, turn)
        for number, whole in enumerate(map(plain, turns), start=1)
        for turn in turns_of(whole, with_reasoning=is_judged)
    )


def _message(name: str, number: int, turn: Any) -> Message:
    if isinstance(turn, str):
        raise ConfigError(f"{name!r} is a list of texts; give each its own row")
    role = field_of(turn, "role")
    if not isinstance(role, str) or (isinstance(turn, Mapping) and not {"content", "tool_calls"} & set(turn)):
        raise ConfigError(f'message {number} of {name!r} is not like {{"role": "user", "content": "..."}}')
    try:
        content = text_of(field_of(turn, "content"))
    except ConfigError as error:
        raise ConfigError(f"message {number} of {name!r} has {error}") from None
    message: Message = {"role": role_of(role), "content": content}
    if calls := several(plain(field_of(turn, "tool_calls"))):
        message["tool_calls"] = [_call(name, number, call) for call in calls]
    if isinstance(asked := field_of(turn, "tool_call_id"), str) and asked:
        message["tool_call_id"] = asked
    if isinstance(speaker := field_of(turn, "name"), str) and speaker:
        message["name"] = speaker
    try:
        if images := images_of([turn]):
            message["images"] = images
    except ConfigError as error:
        raise ConfigError(f"message {number} of {name!r} {error}") from None
    return message


_TEXTS = ("text", "input_text", "output_text")
_PICTURES = ("image_url", "image", "input_image")
"""Types of content parts that hold a picture."""
_IMAGE = "[image]"
"""What marks the place of a picture in a text."""
_FILES = ("file", "input_file")
"""Types of content parts that hold a file: its text, or its data."""
REFERENCE_IMAGES = "reference_images"
"""The column with the pictures of the reference, as URLs."""


def is_parts(value: Any) -> bool:
    """Whether a value is content parts, or one, as chat endpoints take them."""
    parts = [value] if isinstance(value, Mapping) else value
    known = (*_TEXTS, *_PICTURES, *_FILES)
    is_list = isinstance(parts, list | tuple) and bool(parts)
    return is_list and all(isinstance(part, Mapping) and part.get("type") in known for part in parts)


def images_of(turns: Any) -> tuple[str, ...]:
    """The pictures and PDF files of a conversation, in order, as URLs; none of a text.

    Raises:
        ConfigError: A picture is neither a URL nor data, or a file is nothing that can be shown.
    """
    if isinstance(turns, str):
        return ()
    found: list[str] = []
    for turn in (part for whole in turns for part in turns_of(whole)):
        images = field_of(turn, "images") or ()
        found += map(_picture, images if isinstance(images, list | tuple) else [images])
        content = field_of(turn, "content")
        parts = content if isinstance(content, list | tuple) else ()
        for part in parts:
            value = field_of(part, "image_url") or field_of(part, "image") or field_of(part, "source")
            if field_of(part, "type") in _PICTURES and value is not None:  # else it only marks the place
                found.append(_picture(value))
            elif field_of(part, "type") in _FILES and (document := _file(part)[1]):
                found.append(document)
    return tuple(found)


def reference_images(sample: Sample) -> tuple[str, ...]:
    """The pictures of a sample's reference, which stand in a column of their own."""
    return images_of([{"images": (sample.extra or {}).get(REFERENCE_IMAGES)}])


def _file(part: Any) -> tuple[str, str]:
    """The text of a file among content parts, and its data as a URL where an endpoint has to read it."""
    inner = field_of(part, "file")
    named = inner if isinstance(inner, Mapping) else part
    name = str(field_of(named, "filename") or field_of(named, "name") or "file")
    fields = ("content", "text", "file_data", "data")
    value = next((found for field in fields if (found := field_of(named, field)) is not None), None)
    kind = ""
    if isinstance(value, str) and value.startswith("data:") and ";base64," in value:
        kind, _, encoded = value[len("data:") :].partition(";base64,")
        try:
            value = base64.b64decode(encoded, validate=True)
        except ValueError:
            raise ConfigError(f"a file {name[:40]!r} whose data is not base64") from None
    if isinstance(value, bytes):
        if value.startswith(b"%PDF"):
            document = base64.b64encode(value).decode()
            return f"[file {name}]", f"{PDF};base64,{document}"
        if kind.startswith("image/"):
            return "[image]", _picture(value)
        try:
            value = value.decode()
        except UnicodeDecodeError:
            value = None
    if not isinstance(value, str):
        raise ConfigError(
            f"a file {name[:40]!r} that is neither text nor a PDF; give its text as `content`, "
            "or its data as `file_data`: data:application/pdf;base64,..."
        )
    return f"[file {name}]\n{value}\n[end of {name}]\n", ""


PDF = "data:application/pdf"
"""How the URL of a PDF file begins."""


def _picture(value: Any) -> str:
    """A picture as a URL: from one, bytes, base64, a cell of a data set, or an image of Pillow's."""
    if isinstance(value, Mapping):
        value = value.get("url") or value.get("bytes") or value.get("data")
    if hasattr(value, "save") and hasattr(value, "mode"):
        buffer = io.BytesIO()
        value.save(buffer, format="PNG")
        value = buffer.getvalue()
    if isinstance(value, bytes):
        value = base64.b64encode(value).decode()
        return f"data:image/{_format(value) or 'png'};base64,{value}"
    if isinstance(value, str) and (kind := _format(value)):
        return f"data:image/{kind};base64,{value}"
    if isinstance(value, str) and value.startswith(("data:image/", PDF, "https://", "http://")):
        return value
    raise ConfigError("has a picture that is neither data nor a URL; give data:image/png;base64,... or bytes")


_FORMATS = {"iVBORw0KGgo": "png", "/9j/": "jpeg", "UklGR": "webp", "R0lGOD": "gif"}
"""How the base64 of a picture begins, as Ollama and Anthropic take it."""


def _format(encoded: str) -> str | None:
    return next((kind for start, kind in _FORMATS.items() if encoded.startswith(start)), None)


def _call(name: str, number: int, call: Any) -> Mapping[str, Any]:
    """A tool call as chat endpoints write it, from a mapping, an object, or JSON text."""
    if isinstance(call, str):
        with contextlib.suppress(ValueError):  # a text has no name, as is said below
            call = json.loads(call)
    function = field_of(call, "function")
    function = call if function is None else function
    called, arguments = field_of(function, "name"), field_of(function, "arguments")
    if not isinstance(called, str):
        raise ConfigError(f"message {number} of {name!r} has a tool call without a name")
    made = {"type": "function", "function": {"name": called, "arguments": plain(arguments)}}
    return {"id": str(field_of(call, "id") or ""), **made}


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    text, kind = field_of(part, "text"), field_of(part, "type")
    if isinstance(text, str):
        return text
    if not isinstance(kind, str):
        raise ConfigError(f"{kind_of(part)} among its content parts")
    if kind in _FILES:
        return _file(part)[0]
    if kind in _TEXTS and text is not None:
        raise ConfigError(f"{kind_of(text)} in place of a text among its content parts")
    return "" if kind in _TEXTS else _IMAGE if kind in _PICTURES else f"[{kind}]"


def _split(turns: Prompt, name: str) -> tuple[Prompt, str]:
    """A conversation as a task and the response that ends it."""
    if isinstance(turns, str) or turns[-1]["role"] != "assistant":
        raise ConfigError(f"{name!r} does not end with a turn of the assistant, which is what is judged")
    return turns[:-1], turns[-1]["content"]


def _first(wanted: Iterable[str], names: Collection[str]) -> str:
    spelled = {str(name).strip().lower(): name for name in names}
    known = spelled | {name: name for name in names}
    return next((known[name] for name in wanted if name in known), "")


def _label(value: Any, name: str) -> str | None:
    value = _cell(value)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise ConfigError(f"{name!r} is {kind_of(value)}, not text")


HEAD = 64
"""Characters by which a prompt that lost its beginning is recognised."""


def response_of(text: str, prompt: str) -> str:
    """What a model added to its prompt in a text that holds both; the whole text where it holds no prompt.

    A prompt that was too long may have lost its head in the text.
    """
    _, found, response = text.partition(prompt) if prompt else ("", "", "")
    if found:
        return response
    cut = prompt.find(text[:HEAD])
    while cut >= 0:
        if text.startswith(prompt[cut:]):
            return text[len(prompt) - cut :]
        cut = prompt.find(text[:HEAD], cut + 1)
    return text
