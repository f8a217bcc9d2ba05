"""A panel's batch: inner batches of questions for plain judges, and verdicts as soon as they can be given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, cast

from plaudit.errors import ConfigError
from plaudit.judges.base import Judge, Panel, Question, is_panel
from plaudit.judges.check import check_judge, check_samples
from plaudit.scheduling import judging
from plaudit.scheduling.batch import Batch, Items
from plaudit.types import Cause, Sample, Source, Usage, Verdict


def panel_batch(
    samples: Sequence[Sample], panel: Panel, *, model: str, deadline: float | None = None, job: str = ""
) -> Batch:
    """The batch by which a panel judges these samples. Raises ConfigError where it cannot."""
    batch = Batch(samples, cast(Judge, panel), model=model, deadline=deadline, job=job)
    asked = _Questions(batch, panel)
    for question in panel.split(samples):
        asked.add(question)
    batch.inner = asked.inner(model)
    batch.settled = [(i, asked.verdict(i)) for i, places in enumerate(asked.places) if not places]
    return batch


class _Awaited(NamedTuple):
    """Where one verdict that a sample needs will appear."""

    judge: int
    position: int
    is_payer: bool
    """Whether the call counts as this sample's own: of several that share it, the first."""


class _Questions:
    """Which questions each sample waits for."""

    def __init__(self, batch: Batch, panel: Panel) -> None:
        self.places: list[list[_Awaited]] = [[] for _ in batch.samples]
        self._batch = batch
        self._panel = panel
        self._asked: list[list[Question]] = []
        self._numbers: dict[int, int] = {}
        self._inner: tuple[Batch, ...] = ()
        self._waiting: list[int] = []

    def add(self, question: Question) -> None:
        """Take a question on, to be asked of its judge."""
        if not question.serves or not 0 <= min(question.serves) <= max(question.serves) < len(self.places):
            raise ConfigError(
                f"a question serves the samples {question.serves}, and there are {len(self.places)}; "
                "name at least one, each by its index in the batch"
            )
        number = self._numbers.setdefault(id(question.judge), len(self._asked))
        if number == len(self._asked):
            _check_plain(question.judge)
            self._asked.append([])
        questions = self._asked[number]
        for index in question.serves:
            place = _Awaited(number, len(questions), is_payer=index == question.serves[0])
            self.places[index].append(place)
        questions.append(question)

    def inner(self, model: str) -> tuple[Batch, ...]:
        """The questions as batches of plain judges, which report back here."""
        for questions in self._asked:
            check_samples(questions[0].judge, ((asked.serves[0], asked.sample) for asked in questions))
        self._waiting = [len(places) for places in self.places]
        self._inner = tuple(
            Batch(
                [question.sample for question in questions],
                questions[0].judge,
                model=model,
                job=self._batch.job,
            )
            for questions in self._asked
        )
        for number, inner in enumerate(self._inner):
            inner.forward = partial(self._forward, number)
            inner.panel = self._batch.id
            inner.serves = [question.serves for question in self._asked[number]]
        return self._inner

    def _forward(self, number: int, items: Items) -> tuple[Batch, Items]:
        inner = self._inner[number]
        fresh = [position for position, _ in items if inner.verdicts[position] is None]
        inner.deliver(items)
        ready: Items = []
        for position in fresh:
            for index in self._asked[number][position].serves:
                self._waiting[index] -= 1
                if not self._waiting[index]:
                    ready.append((index, self.verdict(index)))
        return self._batch, ready

    def verdict(self, index: int) -> Verdict:
        """The panel's verdict on a sample whose questions are all settled."""
        found = [
            (self._inner[place.judge].verdicts[place.position], place.is_payer)
            for place in self.places[index]
        ]
        verdicts = [verdict for verdict, _ in found if verdict is not None]
        paid = [v.usage for v, is_payer in found if v is not None and is_payer and v.source is Source.CALL]
        try:
            verdict = self._panel.combine(index, self._batch.samples[index], verdicts)
            _check(verdict, verdicts, self._panel)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - user code: costs its own sample only
            judging.blame(self._batch, error, f"could not combine the verdicts on sample {index}")
            verdict = Verdict.failed(Cause.CODE, f"the verdicts could not be combined: {error!r}")
        return _with_facts(verdict, verdicts, paid)


def _check(verdict: Verdict, verdicts: Sequence[Verdict], panel: Panel) -> None:
    """Raises where a panel's verdict is none, is off its scale, or is a number made out of failures."""
    if not isinstance(verdict, Verdict):
        raise TypeError(f"combine gave a {type(verdict).__name__}, not a verdict")
    judging.check_score(verdict, panel, "combine")
    if verdicts and verdict.is_valid and not any(asked.is_valid for asked in verdicts):
        raise ValueError(f"combine made the score {verdict.score} out of failures alone")


def _check_plain(judge: Judge) -> None:
    if is_panel(judge):
        raise ConfigError(
            f"a panel asks plain judges, and {type(judge).__name__} is a panel itself; "
            "ask its members instead"
        )
    check_judge(judge)


def _with_facts(verdict: Verdict, verdicts: Sequence[Verdict], paid: Sequence[Usage]) -> Verdict:
    """The panel's verdict with the facts of the calls behind it."""
    sources = {asked.source for asked in verdicts}
    if paid:
        source, usage = Source.CALL, sum(paid, Usage())
    else:
        shared = sources & {Source.CALL, Source.SHARED}
        source = Source.SHARED if shared else Source.CACHE if Source.CACHE in sources else Source.RULE
        usage = replace(sum((asked.usage for asked in verdicts), Usage()), cost=0.0 if verdicts else None)
    return replace(
        verdict,
        model="+".join(sorted({asked.model for asked in verdicts if asked.model})),
        attempts=sum(asked.attempts for asked in verdicts),
        latency_s=max((asked.latency_s for asked in verdicts), default=0.0),
        source=source,
        usage=usage,
    )
