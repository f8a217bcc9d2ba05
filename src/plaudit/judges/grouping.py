"""Which responses are judged together: each group's distinct answers, under hidden ids, in a derived order.

Ids and order are hashes of what is judged, so the order of the samples changes nothing, the cache finds the
same group again, and no response can know its own place or name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from plaudit.errors import ConfigError
from plaudit.judges.content import has_content
from plaudit.judges.fence import Content, shown
from plaudit.judges.prompt import PromptOptions
from plaudit.rows import REFERENCE_IMAGES, images_of
from plaudit.types import Sample

ID_LENGTH = 8
"""Letters: two answers of a group of 64 have the same id once in a hundred million groups."""

IDS = "ids"
"""Where a question's sample has the ids of its answers, which take a while to work out."""
HIDDEN = "hidden"
"""Where a question's sample says which of its answers came after reasoning that is not shown."""


@dataclass(frozen=True, slots=True)
class AnswerGroup:
    """One group: what its samples share, and who gave each distinct answer."""

    name: str
    shared: Sample
    """Their task, reference and tools, without a response."""
    answers: Mapping[str, tuple[int, ...]]
    """From answer to samples, by index. Answers without content are left out."""
    hidden: frozenset[str]
    """The answers that some sample gave after reasoning that is not shown."""
    ids: Mapping[str, str]
    """From answer to the id that it is judged under."""


def answer_groups(
    samples: Sequence[Sample], options: PromptOptions, *, salt: str, shuffle: bool = True
) -> list[AnswerGroup]:
    """The groups of a batch. Raises ConfigError, naming the group, where there is nothing to compare."""
    groups: dict[str, list[int]] = {}
    for index, sample in enumerate(samples):
        if sample.group is None:
            raise ConfigError("is missing; give the samples to be compared the same one", setting="group").at(
                f"sample {index}"
            )
        groups.setdefault(sample.group, []).append(index)
    made = []
    for name, indices in groups.items():
        distinct = _answers(name, indices, samples, options)
        first = samples[indices[0]]
        task = _text(first.prompt, options.max_chars)
        ids = {answer: _id(salt, task, text) for text, (answer, *_) in distinct.items()}
        answers = {answer: tuple(owners) for answer, owners, _ in distinct.values()}
        hidden = frozenset(answer for answer, _, is_hidden in distinct.values() if is_hidden)
        if shuffle:
            own = {answer: _digest("answer", text).hex() for text, (answer, *_) in distinct.items()}
            whole = _digest("group", salt, task, *sorted(own.values())).hex()
            order = sorted(answers, key=lambda answer: _digest("place", whole, own[answer]))
            answers = {answer: answers[answer] for answer in order}
        shared = Sample(first.prompt, "", first.reference, name, _pictures(first), tools=first.tools)
        made.append(AnswerGroup(name, shared, answers, hidden, ids))
    return made


def alias(prompt: Content, answer: str, *, salt: str, max_chars: int) -> str:
    """The id of an answer to a prompt. Answers that look the same to the judge have the same one."""
    return _id(salt, _text(prompt, max_chars), shown("response", answer, max_chars)[0])


def _id(salt: str, task: str, answer: str) -> str:
    """Capital letters, so that none of it can be taken for a score."""
    digest = _digest("id", salt, task, answer)
    return "".join(chr(ord("A") + byte % 26) for byte in digest[:ID_LENGTH])


def _answers(
    name: str, indices: list[int], samples: Sequence[Sample], options: PromptOptions
) -> dict[str, tuple[str, list[int], bool]]:
    """From each answer as it is shown to its words, its samples, and whether their reasoning is hidden."""
    if len(indices) < 2:
        raise ConfigError(
            "has one sample, and there is nothing to compare it with; "
            "use groups of two or more, or a judge of single responses",
            setting="group",
            value=name,
        )
    first = samples[indices[0]]
    max_chars = options.max_chars
    task = _text(first.prompt, max_chars)
    distinct: dict[str, tuple[str, list[int], bool]] = {}
    for index in indices:
        sample = samples[index]
        for field, same in (
            ("prompt", sample.prompt is first.prompt or _text(sample.prompt, max_chars) == task),
            ("reference", sample.reference == first.reference and _pictures(sample) == _pictures(first)),
            ("tools", sample.tools is first.tools or list(sample.tools) == list(first.tools)),
        ):
            if not same:
                raise ConfigError(
                    f"differs between samples {indices[0]} and {index} of group {name!r}; "
                    "samples of one group answer the same prompt",
                    setting=field,
                )
        if images_of(sample.response):
            raise ConfigError(
                "has pictures, which only judges of single responses can see; use one, like Rubric",
                setting="response",
            ).at(f"sample {index}")
        answer = options.answer(sample)
        if has_content(answer):
            text, _ = shown("response", answer, max_chars)
            known, owners, is_hidden = distinct.setdefault(text, (answer, [], False))
            owners.append(index)
            distinct[text] = min(known, answer), owners, is_hidden or options.hides(sample, answer)
    return distinct


def _pictures(sample: Sample) -> dict[str, Any]:
    """The column with the reference's pictures, if there is one."""
    return {name: sample.extra[name] for name in (REFERENCE_IMAGES,) if name in sample.extra}


def _text(prompt: Content, max_chars: int) -> str:
    """The prompt as it is shown; whether it can be shown at all is for the fence to say."""
    try:
        return shown("task", prompt, max_chars)[0]
    except ConfigError:
        return repr(prompt)


def _digest(*parts: str) -> bytes:
    digest = sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data) + data)
    return digest.digest()
