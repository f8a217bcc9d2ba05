"""A judge's prompt: what is the same for every sample (its words, its reply format, its version).

A judge of kind K has its words in prompts/K_system.txt, before the data, and prompts/K_after.txt, behind it.
Between them stand the fenced blocks: the task, the reference where there is one, the response.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

import msgspec

from plaudit.config import Sampling
from plaudit.errors import ConfigError
from plaudit.judges.content import View, answer_of, has_content, has_words, hides_reasoning
from plaudit.judges.fence import Content, fence
from plaudit.judges.template import fill, prompt_file
from plaudit.judges.transcript import tool_list
from plaudit.rows import images_of
from plaudit.types import ChatRequest, Message, Sample, Source, Status, Verdict

AS_IT_IS = Sampling()
"""A judge's own options where it says nothing of them."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Everything about a judge's requests that does not depend on the sample, worked out once."""

    version: str
    system: Message
    after: str
    schema: Mapping[str, Any] | None
    max_chars: int
    max_tokens: int
    show_thinking: bool
    top_logprobs: int
    sampling: Sampling
    view: View

    def ask(self, sample: Sample) -> ChatRequest | None:
        """The request about this sample; None where its response says nothing."""
        answer = answer_of(sample, with_reasoning=self.show_thinking, view=self.view)
        if not has_content(answer):
            return None
        contents: dict[str, Content] = {"task": sample.prompt}
        if sample.reference is not None:
            contents["reference"] = sample.reference
        if sample.tools:
            contents["tools"] = tool_list(sample.tools)
        contents["response"] = answer
        is_hidden = not self.show_thinking and hides_reasoning(sample, answer)
        hidden = ("response",) if is_hidden else ()
        if isinstance(sample.response, str):
            return self.about(contents, hidden=hidden)
        images = _images("response", sample.response[-1:] if self.view == "last" else sample.response)
        return self.about(contents, hidden=hidden, images=images)

    def about(
        self,
        contents: Mapping[str, Content],
        *,
        verdicts: int = 1,
        hidden: Iterable[str] = (),
        images: tuple[str, ...] = (),
    ) -> ChatRequest:
        """The request that shows these contents, fenced, with room for so many verdicts.

        `hidden` names those whose reasoning was taken out. `images` follow those of the task.
        """
        notes = dict.fromkeys(hidden, "its reasoning is not shown")
        fenced = fence(contents, salt=self.version.encode(), max_chars=self.max_chars, notes=notes)
        messages: tuple[Message, ...] = (self.system, {"role": "user", "content": fenced + self.after})
        request = ChatRequest(messages, verdicts * self.max_tokens, 0.0, self.schema, self.top_logprobs)
        if images := (*_images("prompt", contents["task"]), *images):
            request = replace(request, images=images)
        return request if self.sampling is AS_IT_IS else self.sampling.applied(request)


def build_prompt(
    kind: str,
    words: Mapping[str, str],
    *,
    reading: tuple[object, ...],
    max_chars: int,
    max_tokens: int,
    show_thinking: bool = False,
    schema: Mapping[str, Any] | None = None,
    top_logprobs: int = 0,
    sampling: Sampling | None = None,
    view: View = "full",
) -> Prompt:
    """Fill the prompts of a kind with the judge's words.

    `reading` is whatever else decides how a reply is read; with it the version changes.
    """
    for name, limit in (("max_chars", max_chars), ("max_tokens", max_tokens)):
        if limit < 1:
            raise ConfigError("leaves nothing to judge; use 1 or more", setting=name, value=limit)
    system, after = (fill(prompt_file(f"{kind}_{part}"), words) for part in ("system", "after"))
    if view not in get_args(View):
        raise ConfigError('should be "full" or "last"', setting="view", value=view)
    identity: tuple[object, ...] = (reading, system, after, schema, max_chars, show_thinking)
    if view != "full":
        identity += (view,)
    try:
        digest = hashlib.sha256(msgspec.json.encode(identity)).hexdigest()
    except UnicodeEncodeError:
        name = next((name for name, text in words.items() if _is_broken(text)), "a setting")
        raise ConfigError("holds a lone surrogate, which is no text; decode it anew", setting=name) from None
    return Prompt(
        version=f"{kind}-{digest[:16]}",
        system={"role": "system", "content": system},
        after="\n\n" + after,
        schema=schema,
        max_chars=max_chars,
        max_tokens=max_tokens,
        show_thinking=show_thinking,
        top_logprobs=top_logprobs,
        sampling=sampling or AS_IT_IS,
        view=view,
    )


def _images(name: str, turns: Any) -> tuple[str, ...]:
    if isinstance(turns, str):
        return ()
    try:
        return images_of(turns)
    except ConfigError as error:
        raise ConfigError(str(error), setting=name) from None


def _is_broken(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def object_schema(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """The JSON schema of a flat reply: exactly these keys, in this order."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def nothing_to_judge(score: float, parts: Mapping[str, float] | None = None) -> Verdict:
    """The verdict on a response without content: the worst score, by rule."""
    reason = "nothing to judge: the response has no content"
    return Verdict(score, Status.EMPTY, reason, source=Source.RULE, parts=parts or {})


def checked_text(name: str, value: object, remedy: str) -> str:
    """The words of a setting. Raises ConfigError where they say nothing."""
    if not isinstance(value, str) or not has_words(value):
        raise ConfigError(f"says nothing; {remedy}", setting=name, value=value)
    return value.strip()
