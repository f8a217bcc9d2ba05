"""The checklist judge: several criteria with weights, each met or not; the score is the share that is met."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from plaudit.errors import ConfigError, UnreadableVerdict
from plaudit.judges import parse
from plaudit.judges.base import Judge, Panel, Question
from plaudit.judges.fence import MAX_CHARS
from plaudit.judges.prompt import Prompt, build_prompt, checked_text, nothing_to_judge, object_schema
from plaudit.types import ChatRequest, Reply, Sample, Status, Verdict

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_TOKENS_EACH = 160
"""Room for one reason and its verdict."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One point of a checklist."""

    name: str
    """A short word; the key under which the judge replies and the verdict reports."""
    text: str
    """What a response must do to meet it."""
    weight: float = 1.0
    """How much it counts, relative to the others; 0 to report it only."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ConfigError(
                "is no name; use letters, digits, _ and -, like 'correct'", setting="name", value=self.name
            )
        checked_text("text", self.text, f"say what a response must do to be {self.name}")
        weight: object = self.weight
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight < math.inf:
            raise ConfigError(
                f"of {self.name!r} is no weight; use a number, 0 or more", setting="weight", value=weight
            )


@dataclass(frozen=True, slots=True)
class Checklist(Judge):
    """Asks for all criteria in one call. `SplitChecklist` asks for each in a call of its own.

    Checklist([Criterion("correct", "The answer is right.", weight=3), Criterion("brief", "It is short.")])
    """

    criteria: Sequence[Criterion]
    show_thinking: bool = field(default=False, kw_only=True)
    """Whether the judge sees the response's `<think>...</think>`."""
    max_chars: int = field(default=MAX_CHARS, kw_only=True)
    """Characters shown of the task, the reference and the response each; of a longer text, head and tail."""
    max_tokens: int | None = field(default=None, kw_only=True)
    """Tokens the reply may have; by default 160 for each criterion."""

    _prompt: Prompt = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        criteria = _checked(self.criteria)
        keys = [key for point in criteria for key in (f"reason_{point.name}", point.name)]
        if len(set(keys)) < len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise ConfigError(
                f"has {twice!r}, the key of another one's reason; rename it", setting="criteria"
            )
        pairs = [f'"reason_{point.name}": "...", "{point.name}": <true or false>' for point in criteria]
        words = {
            "criteria": "\n".join(f"{point.name}: {point.text.strip()}" for point in criteria),
            "form": "{" + ", ".join(pairs) + "}",
        }
        made = build_prompt(
            "checklist",
            words,
            schema=object_schema(
                {key: {"type": "boolean" if i % 2 else "string"} for i, key in enumerate(keys)}
            ),
            reading=(parse.VERSION, [float(point.weight) for point in criteria]),
            max_chars=self.max_chars,
            max_tokens=_TOKENS_EACH * len(criteria) if self.max_tokens is None else self.max_tokens,
            show_thinking=self.show_thinking,
        )
        object.__setattr__(self, "criteria", criteria)
        object.__setattr__(self, "_prompt", made)

    @property
    def version(self) -> str:
        """Changes with everything that could change a verdict."""
        return self._prompt.version

    @property
    def scale(self) -> tuple[float, float]:
        """No criterion met, all met."""
        return (0.0, 1.0)

    def render(self, sample: Sample) -> ChatRequest | Verdict:
        """The request that judges this sample; nothing met, without a call, where it says nothing."""
        parts = {point.name: 0.0 for point in self.criteria}
        return self._prompt.ask(sample) or nothing_to_judge(0.0, parts)

    def parse(self, reply: Reply, sample: Sample) -> Verdict:
        """The share that is met. Raises UnreadableVerdict unless every criterion has its one answer."""
        found = parse.single_object(reply, key=self.criteria[0].name, judged=sample.response)
        known = {key for point in self.criteria for key in (point.name, f"reason_{point.name}")}
        if unknown := found.keys() - known:
            raise UnreadableVerdict(f"the reply has {min(unknown)[:40]!r}, which is no criterion")
        missing = [point.name for point in self.criteria if point.name not in found]
        if missing:
            raise UnreadableVerdict(f"the reply leaves out the criterion {missing[0]!r}")
        met = {point.name: parse.truth(found, point.name) for point in self.criteria}
        reasons = [
            f"{name} {'met' if is_met else 'not met'}: {parse.words(found, f'reason_{name}')}"
            for name, is_met in met.items()
        ]
        return Verdict(
            score=_share(self.criteria, met),
            status=Status.OK,
            reason="; ".join(reasons),
            model=reply.model,
            usage=reply.usage,
            parts={name: float(is_met) for name, is_met in met.items()},
        )


@dataclass(frozen=True, slots=True)
class SplitChecklist(Panel):
    """Asks for each criterion in a call of its own, so that no answer colours the next.

    Costs as many calls as there are criteria. A sample whose answers are not all there has no score.
    """

    criteria: Sequence[Criterion]
    show_thinking: bool = field(default=False, kw_only=True)
    """Whether the judge sees the response's `<think>...</think>`."""
    max_chars: int = field(default=MAX_CHARS, kw_only=True)
    """Characters shown of the task, the reference and the response each; of a longer text, head and tail."""
    max_tokens: int | None = field(default=None, kw_only=True)
    """Tokens each reply may have; by default 160."""

    version: str = field(init=False, repr=False, compare=False)
    _judges: tuple[Checklist, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        criteria = _checked(self.criteria)
        judges = tuple(
            Checklist(
                [Criterion(point.name, point.text)],
                show_thinking=self.show_thinking,
                max_chars=self.max_chars,
                max_tokens=self.max_tokens,
            )
            for point in criteria
        )
        identity = [
            (judge.version, float(point.weight)) for judge, point in zip(judges, criteria, strict=True)
        ]
        version = "checklists-" + hashlib.sha256(repr(identity).encode()).hexdigest()[:16]
        for name, value in {"criteria": criteria, "version": version, "_judges": judges}.items():
            object.__setattr__(self, name, value)

    @property
    def scale(self) -> tuple[float, float]:
        """No criterion met, all met."""
        return (0.0, 1.0)

    def split(self, samples: Sequence[Sample]) -> Iterator[Question]:
        """One question for each criterion of each sample."""
        for index, sample in enumerate(samples):
            for judge in self._judges:
                yield Question(judge, sample, (index,))

    def combine(self, index: int, sample: Sample, verdicts: Sequence[Verdict]) -> Verdict:  # noqa: ARG002
        """The share that is met; the first failure where there is one."""
        for point, verdict in zip(self.criteria, verdicts, strict=True):
            if verdict.score is None:
                return Verdict(None, verdict.status, error=f"criterion {point.name!r}: {verdict.error}")
        met = {
            point.name: verdict.score == 1.0 for point, verdict in zip(self.criteria, verdicts, strict=True)
        }
        return Verdict(
            score=_share(self.criteria, met),
            status=verdicts[0].status,
            reason="; ".join(dict.fromkeys(verdict.reason for verdict in verdicts)),
            parts={name: float(is_met) for name, is_met in met.items()},
        )


def _share(criteria: Iterable[Criterion], met: dict[str, bool]) -> float:
    weights = [point.weight for point in criteria]
    return math.fsum(w for w, is_met in zip(weights, met.values(), strict=True) if is_met) / math.fsum(
        weights
    )


def _checked(criteria: object) -> tuple[Criterion, ...]:
    if not isinstance(criteria, (list, tuple)) or not criteria:
        raise ConfigError(
            'is no list of criteria; give at least one, like [Criterion("correct", "The answer is right.")]',
            setting="criteria",
            value=criteria,
        )
    names = set[str]()
    for place, point in enumerate(criteria):
        if not isinstance(point, Criterion):
            raise ConfigError(
                "is no Criterion(name, text, weight)", setting=f"criteria[{place}]", value=point
            )
        if point.name in names:
            raise ConfigError(
                f"has the name of another, {point.name!r}; give each its own", setting=f"criteria[{place}]"
            )
        names.add(point.name)
    if not 0 < math.fsum(point.weight for point in criteria) < math.inf:
        raise ConfigError(
            "have weights that sum to 0, so none of them counts; give one a weight above 0",
            setting="criteria",
        )
    return tuple(criteria)
