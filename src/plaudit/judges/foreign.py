"""Judges described for other tools, read as judge files of our own.

    OpenAI graders      JSON with a `type`: score_model, label_model
    verifiers           TOML or JSON with `criteria` of name, text, weight and choices
    rewardkit           TOML with a [judge] and [[criterion]] tables
    autoevals           YAML with a `prompt` and `choice_scores`

Their prompts show the task, the response and the reference in places of their own. Ours shows these three in
fences, so what is taken over is what a prompt says about them. A prompt that shows something else cannot be
taken over, and says so: a judge that lacks half of what it was to see would score all the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plaudit.errors import ConfigError

Table = Mapping[str, Any]

_PLACEHOLDER = re.compile(r"\{\{\{?\s*([\w.]+)\s*\}?\}\}")
_SHOWN = {
    "the response": ("output", "output_text", "response", "completion", "submission", "answer_text"),
    "the task": ("input", "prompt", "question", "query", "task", "instruction", "instructions", "problem"),
    "the reference": (
        *("expected", "reference", "reference_answer", "ground_truth", "answer", "correct_answer", "target"),
        *("ideal", "solution", "label"),
    ),
}
_ONLY_DATA = re.compile(r"[^\w{]*[\w ,.'-]{0,40}[^\w{]*\{\{\{?\s*[\w.]+\s*\}?\}\}\W*")
_RULER = re.compile(r"[*=#~_\s-]+|\W*(?:begin|end) data\W*", re.IGNORECASE)
_CHOICE = r"^\W*{name}\s*[).:\]-]\s*(.+)$"
_MAX_LEVELS = 10
_SAMPLING = ("temperature", "top_p", "seed", "reasoning_effort")


@dataclass(frozen=True, slots=True)
class Foreign:
    """What another tool's file says of a judge, in our words."""

    kind: str
    options: dict[str, Any]
    notes: tuple[str, ...] = ()
    """What the file says and a judge file has no place for, with where it goes."""


def translate(table: object) -> Foreign | None:
    """A judge of another tool as one of ours, or None. ConfigError where it cannot be taken over."""
    if isinstance(table, list):
        table = {"criteria": table}
    if not isinstance(table, Mapping) or "kind" in table:
        return None
    if isinstance(table.get("type"), str) and ("input" in table or "graders" in table or "source" in table):
        return _openai(table)
    if isinstance(table.get("judge"), Mapping) and isinstance(table.get("criterion"), list):
        return _rewardkit(table)
    if isinstance(table.get("prompt"), str) and isinstance(table.get("choice_scores"), Mapping):
        return _autoevals(table)
    criteria = table.get("criteria")
    if isinstance(criteria, list) and all(isinstance(one, Mapping) and "text" in one for one in criteria):
        return _verifiers(table, criteria)
    return None


# -- OpenAI's graders ---------------------------------------------------------------------------------------


def _openai(table: Table) -> Foreign:
    kind = table["type"]
    if kind == "multi":
        names = ", ".join(map(str, table.get("graders") or {}))
        raise ConfigError(
            f"a grader of type multi computes a formula over others ({names}); put each of these into a file "
            "of its own and combine the rewards, or write a jury"
        )
    if kind not in ("score_model", "label_model"):
        raise ConfigError(f"a grader of type {kind} asks no model; use a rule or a function as the reward")
    criteria = _prose("\n\n".join(_texts(table.get("input"))))
    notes = [f"model = {table['model']!r}: give it to the engine"] if table.get("model") else []
    sampling = _table(table, "sampling_params")
    options: dict[str, Any] = {"criteria": criteria}
    for name in ("max_completions_tokens", "max_tokens"):
        if isinstance(limit := sampling.pop(name, None), int):
            options["max_tokens"] = limit
    known = {name: sampling.pop(name) for name in _SAMPLING if sampling.get(name) is not None}
    if known:
        options["sampling"] = known
    notes += [f"sampling_params.{name} = {value!r}: judges have none" for name, value in sampling.items()]
    if kind == "score_model":
        return Foreign("rubric", {**options, **_scale(table.get("range") or [0, 1])}, tuple(notes))
    labels, passing = (_labels(table, name) for name in ("labels", "passing_labels"))
    if not passing or not set(passing) < set(labels):
        raise ConfigError(f"passing_labels should be some of the labels, not all, and is {passing!r}")
    failing = [label for label in labels if label not in passing]
    anchors = {"0": f"the label is {_either(failing)}", "1": f"the label is {_either(passing)}"}
    return Foreign("rubric", {**options, "scale": [0, 1], "anchors": anchors}, tuple(notes))


def _texts(messages: object) -> list[str]:
    """The texts of a grader's messages. Raises ConfigError where there is another kind of content."""
    found = []
    for message in messages if isinstance(messages, list) else []:
        content = message.get("content") if isinstance(message, Mapping) else message
        for part in content if isinstance(content, list) else [content]:
            text = part.get("text") if isinstance(part, Mapping) else part
            if not isinstance(text, str):
                raise ConfigError("a grader's input holds something else than text, which no judge here sees")
            found.append(text)
    if not found:
        raise ConfigError("the grader has no input; it needs the messages that the model gets")
    return found


# -- lists of criteria --------------------------------------------------------------------------------------


def _verifiers(table: Table, criteria: Sequence[Table]) -> Foreign:
    _check_keys("the file", table, {"criteria"})
    made = []
    for number, one in enumerate(criteria):
        _check_keys(f"criteria[{number}]", one, {"name", "text", "weight", "choices"})
        choices = one.get("choices") or ["no", "yes"]
        if not isinstance(choices, list) or len(choices) < 2:
            raise ConfigError(f"criteria[{number}].choices is {choices!r:.40}; it should be two or more")
        text = str(one["text"])
        if choices != ["no", "yes"]:
            steps = ", ".join(f"{step} is {choice!r}" for step, choice in enumerate(choices))
            text = f"{text} ({steps})"
        made.append(_criterion(number, one.get("name"), text, one.get("weight"), len(choices) - 1))
    return Foreign("checklist", {"criteria": made})


def _rewardkit(table: Table) -> Foreign:
    judge, scoring = table["judge"], _table(table, "scoring")
    aggregation = scoring.get("aggregation", "weighted-mean")
    if aggregation != "weighted-mean":
        raise ConfigError(f"aggregation = {aggregation!r} has no counterpart; a checklist is a weighted mean")
    made = []
    for number, one in enumerate(table["criterion"]):
        if not isinstance(one, Mapping):
            raise ConfigError(f"criterion[{number}] is not a table")
        known = {"description", "type", "points", "min", "max", "weight", "name", "id"}
        _check_keys(f"criterion[{number}]", one, known)
        text, levels = _graded(number, one)
        made.append(_criterion(number, one.get("name") or one.get("id"), text, one.get("weight"), levels))
    options: dict[str, Any] = {"criteria": made}
    if judge.get("mode") == "individual":
        options["calls"] = "each"
    left = {name: value for name, value in judge.items() if name != "mode"}
    notes = {"judge": "give the model to the engine", "files": "put their text into the response"}
    return Foreign(
        "checklist",
        options,
        tuple(f"{name} = {value!r}: {notes.get(name, 'left out')}" for name, value in left.items()),
    )


def _graded(number: int, one: Table) -> tuple[str, int]:
    """A criterion's text and the levels of its answer."""
    text = str(one.get("description", ""))
    match one.get("type", "binary"):
        case "binary":
            return text, 1
        case "likert":
            points = int(_number(f"criterion[{number}].points", one.get("points", 5)))
            return f"{text} (0 is the worst, {points - 1} the best)", points - 1
        case "numeric":
            ends = {"min": one.get("min", 0), "max": one.get("max", 1)}
            low, high = (_number(f"criterion[{number}].{name}", end) for name, end in ends.items())
            return f"{text} (0 stands for {low:g}, {_MAX_LEVELS} for {high:g})", _MAX_LEVELS
        case other:
            raise ConfigError(f"criterion[{number}] is of type {other!r}; use binary, likert or numeric")


def _criterion(number: int, name: object, text: str, weight: object, levels: int) -> dict[str, Any]:
    word = re.sub(r"[^A-Za-z0-9_-]+", "_", str(name or "")).strip("_-")[:40]
    made: dict[str, Any] = {"name": word if word[:1].isalpha() else f"c{number + 1}", "text": text}
    if weight is not None:
        made["weight"] = weight
    return {**made, "levels": levels} if levels != 1 else made


def _check_keys(whose: str, table: Table, known: set[str]) -> None:
    for name in table:
        if name not in known:
            raise ConfigError(f"{whose} has {name!r}, which has no counterpart; take it out to go without")


# -- autoevals' templates -----------------------------------------------------------------------------------


def _autoevals(table: Table) -> Foreign:
    given = table["choice_scores"]
    scores = {str(choice): _number(f"choice_scores.{choice}", score) for choice, score in given.items()}
    if len(set(scores.values())) < 2:
        raise ConfigError("choice_scores give every choice the same score, so there is nothing to judge")
    anchors: dict[str, list[str]] = {}
    prompt = table["prompt"]
    for choice, score in scores.items():
        said = re.search(_CHOICE.format(name=re.escape(choice)), prompt, re.MULTILINE)
        text = _PLACEHOLDER.sub(_named, said[1].strip()) if said else f"the choice is {choice!r}"
        anchors.setdefault(f"{score:g}", []).append(text)
    listed = [re.compile(_CHOICE.format(name=re.escape(choice))) for choice in scores]
    lines = [line for line in prompt.splitlines() if not any(one.match(line) for one in listed)]
    return Foreign(
        "rubric",
        {
            "criteria": _prose("\n".join(lines)),
            **_scale([min(scores.values()), max(scores.values())], is_whole=False),
            "anchors": {score: " Or: ".join(texts) for score, texts in anchors.items()},
        },
        tuple(
            f"{name} = {value!r}: left out"
            for name, value in table.items()
            if name not in ("prompt", "choice_scores", "use_cot")
        ),
    )


# -- prompts ------------------------------------------------------------------------------------------------


def _prose(prompt: str) -> str:
    """What a prompt says about task, response and reference, without the places where they stand."""
    kept = [
        _PLACEHOLDER.sub(_named, line)
        for line in prompt.splitlines()
        if not (_is_data(line) or (line.strip() and _RULER.fullmatch(line)))
    ]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    if not text:
        raise ConfigError("the prompt contains nothing but the data; add what makes a response good")
    return text


def _is_data(line: str) -> bool:
    """Whether a line does nothing but show the task, the response or the reference."""
    return _ONLY_DATA.fullmatch(line) is not None and all(map(_named, _PLACEHOLDER.finditer(line)))


def _named(found: re.Match[str]) -> str:
    name = found[1].rpartition(".")[2].lower()
    for shown, names in _SHOWN.items():
        if name in names:
            return shown
    raise ConfigError(
        f"the prompt shows {found[0]}, and a judge sees the task, the response and the reference only; write "
        "its text in its place, or put it into the prompt of each row"
    )


def _scale(ends: Any, *, is_whole: bool | None = None) -> dict[str, Any]:
    if not isinstance(ends, list) or len(ends) != 2:
        raise ConfigError(f"range is {ends!r:.40}; it should be two numbers, the lowest score first")
    low, high = (_number("range", end) for end in ends)
    whole = is_whole if is_whole is not None else float(low).is_integer() and high - low > 1
    return {"scale": [low, high], "integer": bool(whole)}


def _number(place: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise ConfigError(f"{place} is {value!r:.40}, not a number")
    return value


def _table(table: Table, name: str) -> dict[str, Any]:
    found = table.get(name) or {}
    if not isinstance(found, Mapping):
        raise ConfigError(f"{name} is {found!r:.40}; it should be a table")
    return dict(found)


def _labels(table: Table, name: str) -> list[str]:
    found = table.get(name) or []
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ConfigError(f"{name} is {found!r:.40}; it should be a list of texts")
    return found


def _either(labels: Sequence[str]) -> str:
    return " or ".join(repr(label) for label in labels)
