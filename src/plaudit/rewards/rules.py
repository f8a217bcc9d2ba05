"""Rewards by rule: any function of a sample, the form of a response, and which data sources have a rule."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass

from plaudit.errors import ConfigError
from plaudit.rewards.base import Rows
from plaudit.types import Sample

log = logging.getLogger("plaudit")

MATH = frozenset({
    "openai/gsm8k", "gsm8k",
    "lighteval/MATH", "DigitalLearningGmbH/MATH-lighteval", "HuggingFaceH4/MATH-500", "MATH", "math",
    "math500", "amc23", "minerva_math", "olympiadbench", "hiyouga/geometry3k", "hiyouga/math12k",
    "BytedTsinghua-SIA/DAPO-Math-17k", "agentica-org/DeepScaleR-Preview-Dataset",
})  # fmt: skip
MATH_PREFIXES = ("aime", "math_dapo", "numina_", "AI-MO/", "Maxwell-Jia/AIME")
"""The names that public training sets of mathematics go by."""


@dataclass(frozen=True, slots=True)
class RuleReward:
    """Scores each sample by a function: a number, True or False, or None where the rule cannot say.

    An exception or a NaN costs its own sample only: it has no value, and the reward's failure policy decides.
    """

    fn: Callable[[Sample], float | bool | None]

    def values(self, rows: Rows) -> list[float | None]:
        return [self._value(sample) for sample in rows.samples]

    def _value(self, sample: Sample) -> float | None:
        try:
            value = self.fn(sample)
            number = None if value is None else float(value)
        except Exception:  # user code, as a judge's is
            log.exception("the rule %s failed on a sample", getattr(self.fn, "__name__", self.fn))
            return None
        return number if number is not None and math.isfinite(number) else None


@dataclass(frozen=True, slots=True)
class FormatReward:
    r"""Whether a response has its tags, or its pattern.

    FormatReward(tags=("think", "answer"))               <think>...</think> <answer>...</answer>
    FormatReward(pattern=r"*\boxed{*}*")                 `*` stands for any text, everything else for itself

    Tags come in this order, each once, none empty, and nothing but white space around them. There are no
    regular expressions here: a response written to blow one up would stop the trainer.
    """

    pattern: str | None = None
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.tags, str):
            raise ConfigError(f"is one text; write tags=({self.tags!r},)", setting="tags", value=self.tags)
        if (self.pattern is None) == (not self.tags):
            raise ConfigError(
                'or pattern, one of them, is needed by a FormatReward; like tags=("think", "answer")',
                setting="tags",
            )
        if self.pattern is not None and not self.pattern.strip("*"):
            raise ConfigError(
                "fits every response; write what has to be there", setting="pattern", value=self.pattern
            )
        for tag in self.tags:
            if not tag or not tag.replace("_", "a").replace("-", "a").isalnum():
                raise ConfigError(
                    f"has {tag!r}, which is not a name; write it without brackets, like 'answer'",
                    setting="tags",
                )
        if len(set(self.tags)) < len(self.tags):
            raise ConfigError(
                "names one twice; each comes once in a response", setting="tags", value=self.tags
            )

    def fits(self, response: str) -> bool:
        """Whether the response has the form."""
        if self.pattern is not None:
            return _fits_pattern(response, self.pattern.split("*"))
        return _fits_tags(response, self.tags)

    def values(self, rows: Rows) -> list[float | None]:
        return [float(self.fits(sample.text)) for sample in rows.samples]


def _fits_pattern(text: str, parts: list[str]) -> bool:
    """Leftmost pieces first: if any way of laying the pieces out fits, this one does."""
    first, last = parts[0], parts[-1]
    if len(parts) == 1:
        return text == first
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return False
    at, end = len(first), len(text) - len(last)
    for part in parts[1:-1]:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _fits_tags(text: str, tags: tuple[str, ...]) -> bool:
    rest = text.strip()
    for tag in tags:
        opening, closing = f"<{tag}>", f"</{tag}>"
        if text.count(opening) != 1 or text.count(closing) != 1 or not rest.startswith(opening):
            return False
        inside, _, rest = rest.removeprefix(opening).partition(closing)
        if not inside.strip():
            return False
        rest = rest.lstrip()
    return not rest


def is_mathematical(data_source: str) -> bool:
    """Whether answers of this data source are checked as mathematics."""
    return data_source in MATH or data_source.lower().startswith(tuple(p.lower() for p in MATH_PREFIXES))
