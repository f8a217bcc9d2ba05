"""The cascade: a rule first, the model only where the rule cannot say.

A rule that is sure costs nothing and cannot be talked into anything. It should say True or False (or a score)
only where it is certain, and None everywhere else: what it settles, no judge looks at again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from plaudit.errors import ConfigError
from plaudit.judges.attack import signs_of_attack
from plaudit.judges.base import Judge, higher_is_better, is_panel
from plaudit.judges.check import Demanding
from plaudit.judges.prompt import set_fields
from plaudit.reasoning import without_reasoning
from plaudit.types import Reply, Request, Sample, Source, Status, Verdict

Rule = Callable[[Sample], bool | float | Verdict | None]
"""True: the best score. False: the worst. A number: that score. A verdict: just that. None: ask the judge."""


def exact_match(sample: Sample) -> bool | None:
    """Right where the answer is the reference to the letter, white space and a final full stop aside."""
    return _same(without_reasoning(sample.text), sample.reference)


def final_line(sample: Sample) -> bool | None:
    """Right where the last line is the reference, `Answer:`, `Final answer:` or `####` before it aside."""
    lines = without_reasoning(sample.text).rstrip().rsplit("\n", 1)
    return _same(_LABEL.sub("", lines[-1][-_SLACK:], count=1), sample.reference)


def flag_attacks(sample: Sample) -> Verdict | None:
    """Flagged, without a score, where the response shows signs of an attack on the judge; see attack.py."""
    signs = signs_of_attack(sample.text)
    return Verdict(None, Status.FLAGGED, error=signs, source=Source.RULE) if signs else None


RULES: Mapping[str, Rule] = {
    "exact_match": exact_match,
    "final_line": final_line,
    "flag_attacks": flag_attacks,
}
_SLACK = 10_000
"""Characters of white space and decoration that may stand around an answer for a rule to look at it."""
_LABEL = re.compile(r"^\W*(?:####|(?:the\s)?(?:final\s)?answer(?:\sis)?\s?:?)(?=\W)\**", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Cascade(Judge):
    """Decides by a rule, or by a judge if the rule cannot decide.

    Cascade("exact_match", Reference())
    """

    rule: Rule | str
    """A function of the sample, or the name of one: `exact_match`, `final_line`, `flag_attacks`."""
    judge: Judge
    """Asked where the rule says None."""

    _rule: Rule = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rule: object = RULES.get(self.rule) if isinstance(self.rule, str) else self.rule
        if not callable(rule):
            raise ConfigError(
                f"is not a rule; name one of {', '.join(RULES)}, or pass a function of the sample",
                setting="rule",
                value=self.rule,
            )
        if is_panel(self.judge) or not hasattr(self.judge, "render"):
            raise ConfigError(
                "is not a plain judge; give the cascade one, like Reference() or Rubric(...)",
                setting="judge",
                value=type(self.judge).__name__,
            )
        set_fields(self, _rule=rule)

    @property
    def version(self) -> str:
        """The judge's own: what the rule settles is never stored."""
        return self.judge.version

    @property
    def scale(self) -> tuple[float, float]:
        low, high = self.judge.scale
        return (float(low), float(high))

    @property
    def higher_is_better(self) -> bool:
        return higher_is_better(self.judge)

    def check(self, sample: Sample) -> None:
        """Whatever the judge demands of a sample."""
        if isinstance(self.judge, Demanding):
            self.judge.check(sample)

    def render(self, sample: Sample) -> Request | Verdict:
        """The rule's verdict, or the judge's request."""
        said = self._rule(sample)
        if said is None:
            return self.judge.render(sample)
        if isinstance(said, Verdict):
            return said
        name = getattr(self._rule, "__name__", type(self._rule).__name__)
        return Verdict(self._score(said), Status.OK, f"settled by the rule {name}", source=Source.RULE)

    def parse(self, reply: Reply, sample: Sample) -> Verdict:
        return self.judge.parse(reply, sample)

    def _score(self, said: object) -> float:
        low, high = self.scale
        if isinstance(said, bool):
            return high if said is self.higher_is_better else low
        if not isinstance(said, (int, float)) or not low <= said <= high or math.isnan(said):
            raise ConfigError(
                f"the rule said {said!r}; let it say True, False, None, or a score from {low:g} to {high:g}"
            )
        return float(said)


def _same(answer: str, reference: str | None) -> bool | None:
    if reference is None or len(answer) > 2 * len(reference) + _SLACK:
        return None
    wanted, given = (" ".join(text.split()).removesuffix(".").strip("* ") for text in (reference, answer))
    return True if wanted and given == wanted else None
