"""Which responses are judged together: each group's distinct answers, under hidden ids, in a derived order.

Ids and order are hashes of what is judged, so the order of the samples changes nothing, the cache finds the
same group again, and no response can know its own place or name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from plaudit.errors import ConfigError
from plaudit.judges.content import answer_of, has_content
from plaudit.judges.fence import Content
from plaudit.types import Sample

ID_LENGTH = 8
"""Letters: two answers of a group of 64 have the same id once in a hundred million groups."""


@dataclass(frozen=True, slots=True)
class AnswerGroup:
    """One group: what its samples share, and who gave each distinct answer."""

    name: str
    prompt: Content
    reference: str | None
    answers: Mapping[str, tuple[int, ...]]
    """From answer to samples, by index. Answers without content are left out."""


def answer_groups(
    samples: Sequence[Sample], *, salt: str, show_thinking: bool = False, shuffle: bool = True
) -> list[AnswerGroup]:
    """The groups of a batch. Raises ConfigError, naming the group, where there is nothing to compare."""
    groups: dict[str, list[int]] = {}
    for index, sample in enumerate(samples):
        if sample.group is None:
            raise ConfigError(
                f"sample {index} has no group; give the samples to be compared the same `group`"
            )
        groups.setdefault(sample.group, []).append(index)
    return [
        _answer_group(name, indices, samples, salt, show_thinking=show_thinking, shuffle=shuffle)
        for name, indices in groups.items()
    ]


def alias(prompt: Content, answer: str, *, salt: str) -> str:
    """The id of an answer to a prompt: capital letters, so that none of it can be taken for a score."""
    digest = _digest("id", salt, _canonical(prompt), answer)
    return "".join(chr(ord("A") + byte % 26) for byte in digest[:ID_LENGTH])


def _answer_group(
    name: str, indices: list[int], samples: Sequence[Sample], salt: str, *, show_thinking: bool, shuffle: bool
) -> AnswerGroup:
    if len(indices) < 2:
        raise ConfigError(
            f"group {name!r} has one sample, and there is nothing to compare it with; "
            "use groups of two or more, or a judge of single responses"
        )
    first = samples[indices[0]]
    task = _canonical(first.prompt)
    answers: dict[str, list[int]] = {}
    for index in indices:
        sample = samples[index]
        for field, same in (
            ("prompt", sample.prompt is first.prompt or _canonical(sample.prompt) == task),
            ("reference", sample.reference == first.reference),
        ):
            if not same:
                raise ConfigError(
                    f"group {name!r} has more than one {field} (samples {indices[0]} and {index}); "
                    "samples of one group answer the same prompt"
                )
        answer = answer_of(sample, with_reasoning=show_thinking)
        if has_content(answer):
            answers.setdefault(answer, []).append(index)
    order: Iterable[str] = answers
    if shuffle:
        own = {answer: _digest("answer", answer).hex() for answer in answers}
        whole = _digest("group", salt, task, *sorted(own.values())).hex()
        order = sorted(answers, key=lambda answer: _digest("place", whole, own[answer]))
    return AnswerGroup(
        name, first.prompt, first.reference, {answer: tuple(answers[answer]) for answer in order}
    )


def _canonical(prompt: Content) -> str:
    """The prompt as one text, the same for equal prompts; whether it makes sense is for the fence to say."""
    if isinstance(prompt, str):
        return prompt
    try:
        return repr([sorted(message.items()) for message in prompt])
    except (AttributeError, TypeError):
        return repr(prompt)


def _digest(*parts: str) -> bytes:
    digest = sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data) + data)
    return digest.digest()
