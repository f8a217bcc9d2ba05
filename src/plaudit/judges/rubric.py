"""The pointwise judge: one response, one rubric, one score."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from plaudit.errors import ConfigError, UnreadableVerdict
from plaudit.judges import parse
from plaudit.judges.content import answer_of, has_content
from plaudit.judges.fence import MAX_CHARS, Content, fence
from plaudit.judges.scale import Scale
from plaudit.judges.template import fill, prompt_file
from plaudit.types import ChatRequest, Message, Reply, Sample, Source, Status, Verdict


@dataclass(frozen=True, slots=True)
class Rubric:
    """Scores a response by criteria in words.

    Rubric("Is it correct and brief?", scale=(0, 10), anchors={0: "wrong", 10: "correct, no word too many"})
    """

    criteria: str
    scale: tuple[float, float] = (0, 10)
    """The worst and the best score."""
    integer: bool = field(default=True, kw_only=True)
    """Whether only whole numbers are scores."""
    anchors: Mapping[float, str] | None = field(default=None, hash=False, kw_only=True)
    """What some scores of the scale stand for."""
    show_thinking: bool = field(default=False, kw_only=True)
    """Whether the judge sees the response's `<think>...</think>`; rewarded reasoning learns to please."""
    max_chars: int = field(default=MAX_CHARS, kw_only=True)
    """Characters shown of the task, the reference and the response each; of a longer text, head and tail."""
    max_tokens: int = field(default=512, kw_only=True)
    """Tokens the reply may have. Raise it for judges that reason before they answer."""

    version: str = field(init=False, repr=False, compare=False)
    _scale: Scale = field(init=False, repr=False, compare=False)
    _salt: bytes = field(init=False, repr=False, compare=False)
    _system: Message = field(init=False, repr=False, compare=False)
    _instructions: str = field(init=False, repr=False, compare=False)
    _schema: Mapping[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check()
        scale = Scale(*self.scale, integer=self.integer)
        anchors = _checked_anchors(self.anchors or {}, scale)
        words = {
            "criteria": self.criteria.strip(),
            "scale": f"{'whole numbers ' if self.integer else ''}from {scale.low:g} to {scale.high:g}",
            "form": "<whole number>" if self.integer else "<number>",
            "anchors": "".join(f"\n{score:g}: {text}" for score, text in sorted(anchors.items())),
        }
        system = fill(prompt_file("rubric_system"), words)
        schema = {
            "type": "object",
            "properties": {"reason": {"type": "string"}, "score": scale.schema()},
            "required": ["reason", "score"],
            "additionalProperties": False,
        }
        instructions = "\n\n" + fill(prompt_file("rubric_after"), words)
        version = _version(parse.VERSION, system, instructions, schema, self.max_chars, self.show_thinking)
        for name, value in {
            "scale": (scale.low, scale.high),
            "anchors": anchors or None,
            "version": version,
            "_scale": scale,
            "_salt": version.encode(),
            "_system": {"role": "system", "content": system},
            "_instructions": instructions,
            "_schema": schema,
        }.items():
            object.__setattr__(self, name, value)

    def _check(self) -> None:
        if not isinstance(self.criteria, str) or not has_content(self.criteria):
            raise ConfigError(
                f"criteria={self.criteria!r} says nothing; write what makes a response good, "
                'like "Is it correct and brief?"'
            )
        if not isinstance(self.scale, (tuple, list)) or len(self.scale) != 2:
            raise ConfigError(f"scale={self.scale!r} needs two numbers, the worst and the best, like (0, 10)")
        for name in ("max_chars", "max_tokens"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)} leaves nothing to judge; use 1 or more")

    def render(self, sample: Sample) -> ChatRequest | Verdict:
        """The request that judges this sample; the worst score, without a call, where it says nothing."""
        answer = answer_of(sample, with_reasoning=self.show_thinking)
        if not has_content(answer):
            return Verdict(
                score=float(self._scale.low),
                status=Status.EMPTY,
                reason="nothing to judge: the response has no content",
                source=Source.RULE,
            )
        contents: dict[str, Content] = {"task": sample.prompt}
        if sample.reference is not None:
            contents["reference"] = sample.reference
        contents["response"] = answer
        user = fence(contents, salt=self._salt, max_chars=self.max_chars) + self._instructions
        messages: tuple[Message, ...] = (self._system, {"role": "user", "content": user})
        return ChatRequest(messages, self.max_tokens, temperature=0.0, schema=self._schema)

    def parse(self, reply: Reply, sample: Sample) -> Verdict:
        """The score and its reason. Raises UnreadableVerdict or Refused where there is no single one."""
        found = parse.single_object(reply, key="score", judged=sample.response)
        score = self._scale.read(found["score"])
        reason = found.get("reason", "")
        if not isinstance(reason, str):
            raise UnreadableVerdict("the reason is not text")
        return Verdict(score, Status.OK, reason, model=reply.model, usage=reply.usage)


def _version(*identity: object) -> str:
    try:
        encoded = msgspec.json.encode(identity)
    except UnicodeEncodeError as error:
        raise ConfigError(f"criteria or anchors hold a lone surrogate, which is no text: {error}") from None
    return "rubric-" + hashlib.sha256(encoded).hexdigest()[:16]


def _checked_anchors(anchors: Mapping[float, str], scale: Scale) -> dict[float, str]:
    for score, text in anchors.items():
        if isinstance(score, bool) or not isinstance(score, (int, float)) or score not in scale:
            raise ConfigError(
                f"anchors: {score!r} is not on the scale from {scale.low:g} to {scale.high:g}; "
                "describe scores that the judge can give"
            )
        if not isinstance(text, str) or not text.strip():
            raise ConfigError(f"anchors: {score!r} has no description; say what such a response is like")
    return dict(anchors)
