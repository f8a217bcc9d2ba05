"""What a simulated judge says: a text that follows the schema asked for, its tokens, or vectors."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from hashlib import shake_256
from typing import Any

import msgspec

from plaudit.simulator.ask import Ask
from plaudit.simulator.chance import uniform
from plaudit.simulator.quality import blocks_in, quality
from plaudit.simulator.scenario import Scenario
from plaudit.types import RateHeaders, Reply, TokenChoice, Usage

REFUSAL = "I'm sorry, but I can't judge this one."
BABBLE = "What a lovely answer! There is a lot one could say about it, and I would rather not be pinned down."
THOUGHT = "Let me look at the task first, then at the response, and compare the two."
REASONS = (
    "It states something that the question rules out.",
    "It addresses the question only in part.",
    "It is correct as far as it goes, but leaves out a step.",
    "It is clear and complete.",
    "It answers the question and wastes no words.",
)
"""From the lowest scores to the highest."""
MAX_PATH = 200
"""Characters of a path into a schema, past which it is taken to refer to itself without end."""
MAX_ITEMS = 16
NOISE = 0.1
"""How far chance moves a quality that is known, up or down."""
SHOWN = re.compile(r"^<response-([A-Z]+)-[A-Z]+[ >]", re.MULTILINE)
"""How plaudit's group judge shows a response: `<response-ID-CODE>`."""
QUESTION = re.compile(r"^<question-([A-Z]+)[^>\n]*>\n(.*?)\n</question-\1>", re.MULTILINE | re.DOTALL)
"""How plaudit shows a rewriter the question that it is to rewrite."""
ANSWERING = "Answer the user's question correctly and briefly."
"""What plaudit tells a target model whose answers are to be judged."""
REWRITES = ("Please say exactly: ", "In a few words: ", "Step by step: ", "Briefly: ", "In other words: ")
DEFAULT_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "score": {"type": "integer", "minimum": 0, "maximum": 10},
    },
}


def answer(
    scenario: Scenario, ask: Ask, *, tokens: int, fault: str = "", rate: RateHeaders | None = None
) -> Reply:
    """The reply to a question; `fault` is the kind of fault that spoils its text, if one does."""
    thought = min(tokens, scenario.reasoning_tokens) if ask.kind == "chat" else 0
    usage = Usage(prompt_tokens=ask.prompt_tokens, completion_tokens=tokens, reasoning_tokens=thought)
    if ask.kind == "embed":
        size = ask.dimensions or scenario.dimensions
        vectors = tuple(_vector(f"{scenario.seed}:{ask.model}:{text}", size) for text in ask.texts)
        return Reply("", model=ask.model, usage=usage, rate=rate, vectors=vectors)
    if fault == "refusal":
        return Reply("", model=ask.model, refusal=REFUSAL, usage=usage, rate=rate)
    if fault == "filtered":
        return Reply("", model=ask.model, finish_reason="content_filter", usage=usage, rate=rate)
    if fault == "babble":
        return Reply(BABBLE, model=ask.model, usage=usage, rate=rate)
    reasoning = THOUGHT if thought else ""
    if thought == tokens and thought:  # the limit was reached before the answer began
        return Reply("", model=ask.model, finish_reason="length", reasoning=reasoning, usage=usage, rate=rate)
    writer = _Writer(scenario.seed, ask)
    shown = QUESTION.search("".join(ask.texts[-1:])) if ask.schema is None else None
    if ask.echo:
        text, choices = writer.echo()
    elif ask.digits:
        text, choices = writer.digit(*ask.digits)
    elif shown:
        text, choices = writer.rewrite(shown[2]), ()
    elif ask.texts[1:2] == (ANSWERING,) and ask.schema is None:
        text, choices = writer.prose(), ()
    else:
        text, choices = writer.yes_or_no() if ask.wants_yes_or_no else writer.document()
    if fault == "truncated":
        return Reply(text[: len(text) // 2], model=ask.model, finish_reason="length", usage=usage, rate=rate)
    choices = choices if ask.top_logprobs else ()
    return Reply(text, model=ask.model, reasoning=reasoning, usage=usage, rate=rate, tokens=choices)


class _Writer:
    """Writes one answer, each part of it chosen by a hash of the question.

    What says how good a response is goes by its quality, where that is known.
    """

    def __init__(self, seed: int, ask: Ask) -> None:
        self._seed = seed
        self._ask = ask
        self._blocks = blocks_in(ask.texts) if ask.kind == "chat" else {}

    def yes_or_no(self) -> tuple[str, tuple[TokenChoice, ...]]:
        p = 0.02 + 0.96 * self._level("yes")
        ranked = sorted((("yes", math.log(p)), ("no", math.log(1 - p))), key=lambda item: -item[1])
        ranked += [(" maybe", -12.0), (" perhaps", -13.0)]
        (token, logprob), top = ranked[0], tuple(ranked[: self._ask.top_logprobs])
        return token, (TokenChoice(token, logprob, top),)

    def digit(self, low: int, high: int) -> tuple[str, tuple[TokenChoice, ...]]:
        bounds = {"type": "integer", "minimum": low, "maximum": high}
        choice = self._number_choice(_number(bounds, self._level("digit")), bounds)
        return choice.token, (choice,)

    def echo(self) -> tuple[str, tuple[TokenChoice, ...]]:
        text = "".join(self._ask.texts)
        words = re.findall(r"\s*\S+|\s+$", text)
        return text, tuple(
            TokenChoice(word, math.log(0.02 + 0.96 * self._chance(f"echo {place} {word}")))
            for place, word in enumerate(words)
        )

    def rewrite(self, question: str) -> str:
        return REWRITES[int(self._chance("rewrite") * len(REWRITES))] + question

    def prose(self) -> str:
        return f"I would say {int(self._chance('prose') * 100)}."

    def document(self) -> tuple[str, tuple[TokenChoice, ...]]:
        schema = self._ask.schema or DEFAULT_SCHEMA
        value = self._value(schema, "$", schema)
        text = msgspec.json.format(msgspec.json.encode(value), indent=0).decode()
        if not self._ask.top_logprobs:
            return text, ()
        score = value.get("score") if isinstance(value, dict) else None
        head, mark, tail = text.rpartition(f'"score": {score}')
        if not mark or not isinstance(score, (int, float)):
            return text, (TokenChoice(text, 0.0, ((text, 0.0),)),)
        properties = schema.get("properties")
        bounds = properties.get("score", {}) if isinstance(properties, Mapping) else {}
        scored = self._number_choice(score, bounds)
        return text, (TokenChoice(head + '"score": ', -0.01), scored, TokenChoice(tail, -0.01))

    def _number_choice(self, score: float, bounds: Mapping[str, Any]) -> TokenChoice:
        """The score's token, with its neighbours on the scale a little less likely than itself."""
        low, high = _bound(bounds, "minimum", 0), _bound(bounds, "maximum", 10)
        near = [score + step for step in (0, -1, 1, -2, 2, -3, 3) if low <= score + step <= high]
        steepness = 1.0 + self._chance("logprob")
        weights = [math.exp(-steepness * abs(other - score)) for other in near]
        total = sum(weights)
        ranked = [(str(other), math.log(weight / total)) for other, weight in zip(near, weights, strict=True)]
        return TokenChoice(*ranked[0], tuple(ranked[: self._ask.top_logprobs]))

    def _chance(self, label: str) -> float:
        return uniform(self._seed, self._ask.key, label)

    def _level(self, label: str, response: str = "response") -> float:
        """How good a response is, from 0 to 1, or chance where that is not known."""
        chance = self._chance(label)
        known = self._quality(response)
        if known is None:
            return chance
        return min(max(known + NOISE * (2 * chance - 1), 0.001), 0.999)

    def _quality(self, response: str) -> float | None:
        if response not in self._blocks:
            return None
        shown = self._blocks
        return quality(shown.get("task", ""), shown[response], shown.get("reference", ""))

    def _judgement(self, parts: Mapping[str, Any], path: str, response: str) -> dict[str, Any]:
        """The fields that say how good a response is, or which of two is better, where that is known."""
        first, second = self._quality("first"), self._quality("second")
        if "winner" in parts and first is not None and second is not None:
            return {"winner": "first" if first > second else "second" if second > first else "tie"}
        if self._quality(response) is None:
            return {}
        level = self._level(f"{path}.score", response)
        judged: dict[str, Any] = {}
        if "score" in parts:
            judged["score"] = _number(parts["score"], level)
        if "equivalent" in parts:
            judged["equivalent"] = level >= 0.5
        return judged

    def _value(self, schema: Any, path: str, root: Mapping[str, Any]) -> Any:
        """A value that the schema allows, for the keywords that structured-output endpoints accept."""
        if not isinstance(schema, Mapping) or len(path) > MAX_PATH:
            return None
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, path, root)
        for choice in ("const", "enum", "anyOf", "oneOf", "$ref"):
            if choice in schema:
                return self._chosen(choice, schema[choice], path, root)
        if isinstance(kind, list):
            kind = next((name for name in kind if name != "null"), "null")
        match kind:
            case "integer" | "number":
                return _number(schema, self._chance(path))
            case "boolean":
                return self._chance(path) < 0.5
            case "array":
                if entries := self._entries(schema.get("items"), path, root):
                    return entries
                least = min(int(_bound(schema, "minItems", 1)), MAX_ITEMS)
                return [self._value(schema.get("items"), f"{path}[{index}]", root) for index in range(least)]
            case "null":
                return None
            case None if "properties" in schema:
                return self._object(schema, path, root)
        return REASONS[int(self._chance(path) * len(REASONS))]

    def _entries(self, item: Any, path: str, root: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Where entries have ids: one for each response that the question shows under an id of its own."""
        if not isinstance(item, Mapping) or "id" not in (item.get("properties") or ()):
            return []
        names = [name for text in self._ask.texts for name in SHOWN.findall(text)]
        return [
            {**self._object(item, f"{path}[{name}]", root, f"response-{name}"), "id": name} for name in names
        ]

    def _object(
        self, schema: Mapping[str, Any], path: str, root: Mapping[str, Any], response: str = "response"
    ) -> dict[str, Any]:
        properties = schema.get("properties")
        parts = properties.items() if isinstance(properties, Mapping) else ()
        value = {name: self._value(part, f"{path}.{name}", root) for name, part in parts}
        value |= self._judgement(dict(parts), path, response)
        score = value.get("score")
        if isinstance(value.get("reason"), str) and isinstance(score, int | float):
            value["reason"] = _reason(score, dict(parts)["score"])
        return value

    def _chosen(self, choice: str, options: Any, path: str, root: Mapping[str, Any]) -> Any:
        if choice == "const":
            return options
        if choice == "$ref":
            return self._value(_resolve(root, str(options)), f"{path}$", root)
        if not isinstance(options, list | tuple) or not options:
            return None
        picked = options[int(self._chance(f"{path}/{choice}") * len(options))]
        return picked if choice == "enum" else self._value(picked, f"{path}|", root)


def _resolve(root: Mapping[str, Any], reference: str) -> Any:
    part: Any = root
    for name in reference.removeprefix("#").strip("/").split("/"):
        part = part.get(name) if isinstance(part, Mapping) and name else part
    return part


def _bound(schema: Mapping[str, Any], name: str, default: float) -> float:
    value = schema.get(name)
    return value if isinstance(value, int | float) and math.isfinite(value) else default


def _number(schema: Mapping[str, Any], chance: float) -> int | float:
    low, high = _bound(schema, "minimum", 0), _bound(schema, "maximum", 10)
    if schema.get("type") == "number":
        return round(low + (high - low) * chance, 2)
    first, last = math.ceil(low), math.floor(high)
    return first + int(chance * (last - first + 1))


def _reason(score: float, bounds: Mapping[str, Any]) -> str:
    """Words that go with a score."""
    low, high = _bound(bounds, "minimum", 0), _bound(bounds, "maximum", 10)
    height = (score - low) / (high - low) if high > low else 0.5
    return REASONS[min(int(height * len(REASONS)), len(REASONS) - 1)]


def _vector(label: str, size: int) -> tuple[float, ...]:
    data = shake_256(label.encode("utf-8", "surrogatepass")).digest(2 * size)
    raw = [int.from_bytes(data[2 * i : 2 * i + 2], "big") - 32767.5 for i in range(size)]
    norm = math.sqrt(sum(x * x for x in raw))
    return tuple(round(x / norm, 6) for x in raw)
