"""The JSON schema of every judge's reply: what OpenAI's strict mode and Gemini both accept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from plaudit.judges import Checklist, Criterion, Expected, Group, Monitor, Pairwise, Reference, Rubric, Yes
from plaudit.judges.checklist import SplitChecklist
from plaudit.types import ChatRequest, Sample

KEYWORDS = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items"},
    "string": {"enum"},
    "integer": {"minimum", "maximum", "enum"},
    "number": {"minimum", "maximum", "enum"},
    "boolean": set[str](),
}
"""What both understand beside `type` and `description`; lengths, patterns and formats are not among it."""
MAX_DEPTH = 10
MAX_PROPERTIES = 5_000


def faults(schema: Any, path: str = "$", depth: int = 1) -> Iterator[str]:
    """Everything in a schema that one of the two refuses."""
    if not isinstance(schema, dict) or str(schema.get("type")) not in KEYWORDS:
        yield f"{path}: has no single type"
        return
    kind = schema["type"]
    if unknown := schema.keys() - KEYWORDS[kind] - {"type", "description"}:
        yield f"{path}: {sorted(unknown)} is not supported for {kind}"
    if path == "$" and kind != "object":
        yield f"{path}: the root is no object"
    if depth > MAX_DEPTH:
        yield f"{path}: is nested too deeply"
    if kind == "object":
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False:
            yield f"{path}: additionalProperties is not false"
        if list(properties) != schema.get("required"):
            yield f"{path}: not every property is required, in its order"
        if len(properties) > MAX_PROPERTIES:
            yield f"{path}: has too many properties"
        for name, inner in properties.items():
            yield from faults(inner, f"{path}.{name}", depth + 1)
    if kind == "array":
        yield from faults(schema.get("items"), f"{path}[]", depth + 1)


POINTS = [Criterion("correct", "It is right."), Criterion("brief", "It is short.")]
JUDGES: dict[str, Any] = {
    "rubric": Rubric("Is it right?"),
    "rubric with fractions": Rubric("Is it right?", scale=(0, 1), integer=False),
    "rubric with the code": Rubric("Is it right?", echo=True),
    "reference": Reference(),
    "checklist": Checklist(POINTS),
    "checklist, split": SplitChecklist(POINTS),
    "monitor": Monitor("It cheats."),
    "group": Group("Is it right?"),
    "pairwise": Pairwise("Which one is right?"),
    "expected": Expected("Is it right?"),
    "yes": Yes(),
}


def schemas(judge: Any) -> list[Any]:
    samples = [Sample("6 x 7?", text, "42", "a") for text in ("41", "40")]
    if hasattr(judge, "split"):
        requests = [question.judge.render(question.sample) for question in judge.split(samples)]
    else:
        requests = [judge.render(sample) for sample in samples]
    assert requests and all(isinstance(request, ChatRequest) for request in requests)
    return [request.schema for request in requests]


@pytest.mark.parametrize("judge", JUDGES.values(), ids=JUDGES.keys())
def test_strict_endpoints_accept_every_schema_that_is_sent(judge: Any) -> None:
    for schema in schemas(judge):
        assert schema is None or list(faults(schema)) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "properties": {}, "required": []},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": []},
        {"properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False},
        *(
            {
                "type": "object",
                "properties": {"a": inner},
                "required": ["a"],
                "additionalProperties": False,
            }
            for inner in (
                {"enum": ["x", "y"]},
                {"type": ["string", "null"]},
                {"type": "string", "maxLength": 5},
                {"type": "array"},
                {"type": "object", "properties": {}, "required": []},
            )
        ),
    ],
)
def test_the_check_itself_finds_what_strict_endpoints_refuse(schema: dict[str, Any]) -> None:
    assert list(faults(schema))
