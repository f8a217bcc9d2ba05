"""What is checked of a judge and its samples before the first call, and of its verdicts before they are used.

Any judge may have a method `check(sample)`, which raises ConfigError where the sample lacks something; and
`could_give(verdict, sample)`, by which stored verdicts are checked. Without that, its `scale` decides.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from plaudit.errors import ConfigError
from plaudit.judges.base import Judge, Panel, compares, higher_is_better, is_panel
from plaudit.types import Cause, Failure, Sample, Source, Verdict

CouldGive = Callable[[Verdict, Sample], bool]
"""Whether a verdict on a sample can be the judge's own."""


@runtime_checkable
class Demanding(Protocol):
    """A judge that cannot judge just any sample."""

    def check(self, sample: Sample) -> None:
        """Raises ConfigError, naming the field, where the sample cannot be judged."""
        ...


def check_judge(judge: Judge | Panel, *, for_rewards: bool = False) -> None:
    """Check what a judge says about itself; `for_rewards`: its scores become rewards, and need a lowest one.

    ConfigError where it is no judge, or its `version` or `scale` is missing or makes no sense.
    """
    name = type(judge).__name__
    has_methods = is_panel(judge) or (hasattr(judge, "render") and hasattr(judge, "parse"))
    if isinstance(judge, type) or not has_methods:
        raise ConfigError(
            'is not a judge; give one like Rubric("Is it correct?")', setting="judge", value=judge
        )
    version = getattr(judge, "version", None)
    if not isinstance(version, str) or not version:
        raise ConfigError(
            f"of class {name} has no version, which every cache key needs; "
            'add one to the class, like version = "tone-1"',
            setting="judge",
        )
    match getattr(judge, "scale", None):
        case (int() | float() as low, int() | float() as high) if -math.inf <= low < high < math.inf:
            pass
        case None:
            raise ConfigError(
                f"of class {name} has no scale, so plaudit cannot tell good scores from bad ones; "
                "add the lowest and the highest score to the class, like scale = (0, 10)",
                setting="judge",
            )
        case scale:
            raise ConfigError(
                f"of class {name} has scale={scale!r}; write two numbers, its lowest score first, "
                "like scale = (0, 10)",
                setting="judge",
            )
    if for_rewards and low == -math.inf:
        raise ConfigError(
            f"of class {name} has no lowest score, but a reward is between 0 and 1; "
            "give its scale a lower end (for a Checklist: clip=True)",
            setting="judge",
        )


def check_weight(name: str, weight: float, judge: Judge | Panel) -> None:
    """Raise ConfigError where a negative weight turns the score of a judge round that was turned round."""
    if weight < 0 and not higher_is_better(judge):
        raise ConfigError(
            f"would reward what {type(judge).__name__} looks for: its score is already inverted, 1 being the "
            "best; make it positive",
            setting=name,
            value=weight,
        )


def as_judge(judge: Judge | Panel | str) -> Judge | Panel:
    """A judge that was checked; a text becomes a Rubric. Raises ConfigError where it is no judge."""
    if isinstance(judge, str):
        from plaudit.judges.rubric import Rubric  # it needs this module

        if judge.endswith((".toml", ".yaml", ".yml", ".json")) and len(judge.split()) == 1:
            raise ConfigError(
                "is the name of a file; write load_judge(FILE), which plaudit exports",
                setting="judge",
                value=judge,
            )
        return Rubric(judge)
    check_judge(judge)
    return judge


def judge_of_one(judge: Judge | Panel) -> Judge | Panel | None:
    """The judge for a response that has no others in its group; None where the judge has to compare."""
    if not compares(judge):
        return judge
    alone: Callable[[], Judge | Panel] | None = getattr(judge, "alone", None)
    return alone() if alone is not None else None


def split_lone(
    judge: Judge | Panel, samples: Sequence[Sample], rows: Sequence[int]
) -> tuple[list[int], list[int]]:
    """These rows without those that a judge would compare with others, of which there are none; and those."""
    sizes = Counter(samples[row].group for row in rows) if compares(judge) else Counter()
    lone = [row for row in rows if sizes[samples[row].group] == 1]
    return [row for row in rows if sizes[samples[row].group] != 1], lone


def could_give(judge: object) -> CouldGive | None:
    """How to tell whether a stored verdict can be this judge's own; None where nothing is known of it."""
    own: CouldGive | None = getattr(judge, "could_give", None)
    if own is not None:
        return own
    match getattr(judge, "scale", None):
        case (int() | float() as low, int() | float() as high):
            return lambda verdict, _: verdict.score is not None and low <= verdict.score <= high
        case _:
            return None


def _misfits(judge: object, samples: Iterable[tuple[int, Sample]]) -> Iterator[tuple[int, ConfigError]]:
    """Which of these numbered samples lack what the judge demands."""
    check: Any = getattr(judge, "check", None)  # isinstance of a protocol costs 20 µs
    for number, sample in samples if check else ():
        try:
            check(sample)
        except ConfigError as error:
            yield number, error


def check_samples(judge: object, samples: Iterable[tuple[int, Sample]]) -> None:
    """Ask a judge that has demands whether these numbered samples meet them; ConfigError names the first."""
    for number, error in _misfits(judge, samples):
        raise error.at(f"sample {number}") from None


def unfit_rows(judge: Judge | Panel, samples: Sequence[Sample]) -> dict[int, Verdict]:
    """The rows that lack what the judge demands, each with the verdict that says so.

    For trainers, where one such row must not cost the others their verdicts. A judge that compares responses
    can compare none of a group with such a row.
    """
    found: dict[int, Verdict] = {}
    for row, error in _misfits(judge, enumerate(samples)):
        failure = Failure(Cause.INPUT, {"field": error.setting})
        found[row] = Verdict.failed(failure, str(error.at(f"row {row}")), source=Source.RULE)
    if found and compares(judge):
        groups = {samples[row].group: verdict for row, verdict in found.items()}
        for row, sample in enumerate(samples):
            if sample.group in groups:
                found.setdefault(row, groups[sample.group])
    return found
