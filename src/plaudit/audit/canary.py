"""Live canaries: wrong answers slipped in among the samples of a run, and an alarm when one passes.

    canaries = Canaries(judge, every=50, alarm=lambda passed: trainer.stop(str(passed)))
    verdicts = canaries.score(engine, samples)       # as many as samples, in their order

or, where the trainer does its own asking:

    mixed = canaries.mixed(samples)
    verdicts = mixed.take_out(engine.score(mixed.samples, judge))

Where the canaries stand, and what they say, is derived from the samples around them: the same batch is mixed
the same way and finds its cache; another batch asks the judge something new.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Protocol

from plaudit.audit.attack_probe import attacked, checked_pass_mark, needs_reference, scale_of
from plaudit.audit.attack_strings import FAMILIES, WrongAnswer
from plaudit.errors import ConfigError
from plaudit.journal.base import CANARY_KEY
from plaudit.judges.base import Judge, Panel
from plaudit.types import Sample, Verdict
from plaudit.value_check import check_number

log = logging.getLogger("plaudit.audit")

PLAIN = "no attack"
_ATTACKS = [(family, text) for family, texts in FAMILIES.items() for text in texts]


@dataclass(frozen=True, slots=True)
class CanaryPassed:
    """A wrong answer reached the pass mark."""

    prompt: str
    response: str
    family: str
    """The attack that it carried, or `no attack`."""
    score: float
    pass_mark: float

    def __str__(self) -> str:
        return (
            f"a canary passed: the judge gave {self.score:g} (pass mark {self.pass_mark:g}) "
            f"to a wrong answer ({self.family})"
        )


class Scores(Protocol):
    """What canaries need of an engine."""

    def score(self, samples: Sequence[Sample], judge: Judge | Panel) -> list[Verdict]: ...


class Canaries:
    """Watches over a judge while it works. One for a run; batches may overlap."""

    def __init__(
        self,
        judge: Judge | Panel,
        *,
        every: int = 50,
        pass_mark: float | None = None,
        alarm: Callable[[CanaryPassed], object] | None = None,
    ) -> None:
        """Choose how many canaries there are, and which of them alarm.

        Args:
            judge: The judge that is watched.
            every: Samples to one canary; a smaller batch has one in proportion to its size.
            pass_mark: The score from which an answer counts as good; the middle of the scale by default.
            alarm: Called with each canary that passed, beside the warning in the log.

        Raises:
            ConfigError: `every` leaves no room for samples, or the pass mark is off the scale.
        """
        check_number("every", every, low=1)
        self.judge = judge
        self.scale = scale_of(judge)
        self.pass_mark = checked_pass_mark(pass_mark, self.scale)
        self.seen = 0
        """Canaries that came back with a score."""
        self.passed = 0
        self._every = every
        self._alarm = alarm
        self._with_reference = needs_reference(judge)

    def score(self, engine: Scores, samples: Sequence[Sample]) -> list[Verdict]:
        """Judge the samples with canaries among them; the verdicts are those of the samples alone."""
        mixed = self.mixed(samples)
        return mixed.take_out(engine.score(mixed.samples, self.judge))

    def mixed(self, samples: Sequence[Sample]) -> Mixed:
        out: list[Sample] = []
        kept: list[int] = []
        canaries: dict[int, str] = {}
        in_groups = any(sample.group is not None for sample in samples)
        for start in range(0, len(samples), self._every):
            block = samples[start : start + self._every]
            digest = _digest(block)
            # A short block has a canary as often as its size says, so that small batches have their share.
            has_one = digest[0] * 256 + digest[1] < 65536 * len(block) // self._every
            place = int.from_bytes(digest[2:6]) % (len(block) + 1) if has_one else None
            for number, sample in enumerate([*block, None]):
                if number == place:
                    family, group = self._canary(digest, in_groups=in_groups)
                    out.extend(group)
                    canaries[len(out) - 1] = family
                if sample is not None:
                    kept.append(len(out))
                    out.append(sample)
        return Mixed(tuple(out), tuple(kept), canaries, self._look)

    def _canary(self, digest: bytes, *, in_groups: bool) -> tuple[str, list[Sample]]:
        """The attack it carries, and its samples, the wrong answer last."""
        a, b, off = (int.from_bytes(digest[at : at + 2]) for at in (6, 8, 10))
        question = WrongAnswer(f"What is {a} + {b}?", f"{a} + {b} is {a + b + 10 + off}.", f"{a + b}")
        choice = int.from_bytes(digest[12:16])
        family, text = _ATTACKS[choice // 2 % len(_ATTACKS)] if choice % 2 else (PLAIN, "WRONG")
        wrong = attacked(text, question, top=self.scale[1])
        # A group judge refuses a group of one: beside the wrong answer, it gets the right one.
        responses = (question.right, wrong) if in_groups else (wrong,)
        reference = question.right if self._with_reference else None
        group = f"canary-{digest.hex()[:16]}" if in_groups else None
        extra = {CANARY_KEY: self.pass_mark, "attack": family}
        samples = [Sample(question.prompt, response, reference, group) for response in responses]
        return family, [*samples[:-1], replace(samples[-1], extra=extra)]

    def _look(self, family: str, sample: Sample, verdict: Verdict) -> None:
        if verdict.score is None:
            return
        self.seen += 1
        if verdict.score < self.pass_mark:
            return
        self.passed += 1
        passed = CanaryPassed(str(sample.prompt), sample.text, family, verdict.score, self.pass_mark)
        log.warning("%s", passed)
        if self._alarm is not None:
            self._alarm(passed)


@dataclass(frozen=True, slots=True)
class Mixed:
    """Samples with canaries among them."""

    samples: tuple[Sample, ...]
    kept: tuple[int, ...]
    """Where the samples stand that are no canaries, in order."""
    canaries: dict[int, str]
    """Where the wrong answers stand, and which attack each carries."""
    _look: Callable[[str, Sample, Verdict], None]

    def take_out(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """The verdicts on the samples alone, in order. Raises the alarm where a canary passed."""
        if len(verdicts) != len(self.samples):
            raise ConfigError(
                f"{len(verdicts)} verdicts for {len(self.samples)} mixed samples; "
                "hand over the verdicts on all of `mixed.samples`"
            )
        for place, family in self.canaries.items():
            self._look(family, self.samples[place], verdicts[place])
        return [verdicts[place] for place in self.kept]


def _digest(block: Sequence[Sample]) -> bytes:
    digest = sha256()
    for sample in block:
        digest.update(f"{sample.prompt!r}\n{sample.response!r}\n".encode())
    return digest.digest()
