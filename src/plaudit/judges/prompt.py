"""A judge's prompt: what is the same for every sample (its words, its reply format, its version).

A judge of kind K has its words in prompts/K_system.txt, before the data, and prompts/K_after.txt, behind it.
Between them stand the fenced blocks: the task, the reference where there is one, the response.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import msgspec

from plaudit.config import Sampling
from plaudit.errors import ConfigError
from plaudit.judges.base import Judge
from plaudit.judges.content import has_content, has_words
from plaudit.judges.fence import MAX_CHARS, Content, fence
from plaudit.judges.template import fill, prompt_file
from plaudit.judges.transcript import View, answer_of, hides_reasoning, tool_list, transcript
from plaudit.rows import REFERENCE_IMAGES, images_of, reference_images
from plaudit.types import ChatRequest, Message, Sample, Source, Status, Verdict

_SURROGATE = re.compile("[\ud800-\udfff]")
AS_IT_IS = Sampling()
"""A judge's own options where it says nothing of them."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PromptOptions:
    """Options of every judge that shows samples in a prompt: what is shown, and how replies are sampled."""

    show_thinking: bool = False
    """Whether the judge sees a response's `<think>...</think>`; rewarded reasoning learns to please."""
    max_chars: int = MAX_CHARS
    """Characters shown of the task, the reference and each response; of a longer text, head and tail."""
    view: View = "full"
    """What is shown of a trajectory: all of it (`full`), or what its last turn says (`last`)."""
    sampling: Sampling = AS_IT_IS
    """Temperature, top_p, seed, reasoning effort and more fields of its requests."""

    _prompt: Prompt = field(init=False, repr=False, compare=False)

    def check(self, sample: Sample) -> None:
        """Raises ConfigError where the sample's task or response is a conversation that cannot be shown.

        What is neither text nor a conversation fails alone, when it is its turn.
        """
        if isinstance(sample.prompt, (list, tuple)):
            transcript("prompt", sample.prompt)
        if isinstance(sample.response, (list, tuple)) and self.view == "full":
            transcript("response", sample.response, before=sample.prompt)

    def _set_prompt(self, kind: str, words: Mapping[str, str], **reading: Any) -> None:
        """Make the prompt, as `build_prompt` does, while the judge is made."""
        set_fields(self, _prompt=build_prompt(kind, words, self, **reading))

    def answer(self, sample: Sample) -> str:
        """What is shown of the response."""
        return answer_of(sample, with_reasoning=self.show_thinking, view=self.view)

    def hides(self, sample: Sample, answer: str) -> bool:
        """Whether the response has reasoning that the answer, as shown, does not have."""
        return not self.show_thinking and answer is not sample.response and hides_reasoning(sample, answer)

    def __repr__(self) -> str:
        """As it would be written: what comes first, first, and nothing that is as by default."""
        said = sorted((item for item in fields(self) if item.repr), key=lambda item: bool(item.kw_only))
        values = {item.name: getattr(self, item.name) for item in said}
        changed = [item.name for item in said if values[item.name] != item.default]
        return f"{type(self).__name__}({', '.join(f'{name}={values[name]!r}' for name in changed)})"


class Prompt:
    """Everything about a judge's requests that does not depend on the sample, worked out once.

    Not a dataclass: `dataclasses.asdict` of a judge would go round in circles.
    """

    __slots__ = ("after", "max_tokens", "options", "schema", "system", "top_logprobs", "version")

    def __init__(
        self,
        options: PromptOptions,
        *,
        version: str,
        system: Message,
        after: str,
        schema: Mapping[str, Any] | None,
        max_tokens: int,
        top_logprobs: int,
    ) -> None:
        self.options = options
        self.version = version
        self.system = system
        self.after = after
        self.schema = schema
        self.max_tokens = max_tokens
        self.top_logprobs = top_logprobs

    def ask(self, sample: Sample) -> ChatRequest | None:
        """The request about this sample; None where its response says nothing."""
        answer = self.options.answer(sample)
        if not has_content(answer):
            return None
        hidden = ("response",) if self.options.hides(sample, answer) else ()
        return self.about(sample, {"response": answer}, hidden=hidden, images=self.images_of(sample))

    def images_of(self, sample: Sample) -> tuple[str, ...]:
        """The pictures of the part of a response that is shown."""
        response = sample.response
        return _images("response", response[-1:] if self.options.view == "last" else response)

    def about(
        self,
        sample: Sample,
        answers: Mapping[str, Content],
        *,
        verdicts: int = 1,
        hidden: Iterable[str] = (),
        images: tuple[str, ...] = (),
    ) -> ChatRequest:
        """The request that shows these answers behind the sample's task, reference and tools, all fenced.

        Args:
            sample: What the answers are about.
            answers: What is judged, by label.
            verdicts: For how many the reply needs room.
            hidden: The labels of answers whose reasoning was taken out.
            images: The pictures of the answers; those of the task and the reference come first.
        """
        contents: dict[str, Content] = {"task": sample.prompt}
        if sample.reference is not None and sample.reference != "":
            contents["reference"] = sample.reference
            images = (*_images(REFERENCE_IMAGES, sample, reference_images), *images)
        if sample.tools:
            contents["tools"] = tool_list(sample.tools)
        contents.update(answers)
        notes = dict.fromkeys(hidden, "its reasoning is not shown")
        fenced = fence(contents, salt=self.version.encode(), max_chars=self.options.max_chars, notes=notes)
        messages: tuple[Message, ...] = (self.system, {"role": "user", "content": fenced + self.after})
        request = ChatRequest(messages, verdicts * self.max_tokens, 0.0, self.schema, self.top_logprobs)
        if images := (*_images("prompt", sample.prompt), *images):
            request = replace(request, images=images)
        sampling = self.options.sampling
        return request if sampling is AS_IT_IS else sampling.applied(request)


def build_prompt(
    kind: str,
    words: Mapping[str, str],
    judge: PromptOptions,
    *,
    max_tokens: int,
    reading: tuple[object, ...],
    schema: Mapping[str, Any] | None = None,
    top_logprobs: int = 0,
) -> Prompt:
    """Fill the prompts of a kind with the judge's words.

    `reading` is whatever else decides how a reply is read; with it the version changes.
    """
    system, after = (fill(prompt_file(f"{kind}_{part}"), words) for part in ("system", "after"))
    identity: tuple[object, ...] = (reading, system, after, schema, judge.max_chars, judge.show_thinking)
    if judge.view != "full":
        identity += (judge.view,)
    try:
        digest = hashlib.sha256(msgspec.json.encode(identity)).hexdigest()
    except UnicodeEncodeError:
        name = next((name for name, text in words.items() if _SURROGATE.search(text)), "a setting")
        raise ConfigError(
            "is not Unicode text (it contains a lone surrogate); decode it again, or, for the command line, "
            "run: export LC_ALL=C.UTF-8",
            setting=name,
        ) from None
    return Prompt(
        judge,
        version=f"{kind}-{digest[:16]}",
        system={"role": "system", "content": system},
        after="\n\n" + after,
        schema=schema,
        max_tokens=max_tokens,
        top_logprobs=top_logprobs,
    )


def set_fields(judge: object, **values: object) -> None:
    """Set what follows from the options of a frozen judge, while it is made."""
    for name, value in values.items():
        object.__setattr__(judge, name, value)


@dataclass(frozen=True, slots=True, repr=False)
class PromptJudge(PromptOptions, Judge):
    """A judge that asks about each sample by one prompt."""

    @property
    def version(self) -> str:
        """Changes with everything that could change a verdict."""
        return self._prompt.version

    def render(self, sample: Sample) -> ChatRequest | Verdict:
        """The request that judges this sample; the lowest score, without a call, where it says nothing."""
        return self._prompt.ask(sample) or nothing_to_judge(float(self.scale[0]))


def _images(name: str, content: Any, read: Callable[[Any], tuple[str, ...]] = images_of) -> tuple[str, ...]:
    """The pictures of a content; a ConfigError names the field that it stands in."""
    try:
        return read(content)
    except ConfigError as error:
        raise ConfigError(str(error), setting=name) from None


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
        raise ConfigError(f"contains no words; {remedy}", setting=name, value=value)
    return value.strip()
