"""Lines in, scored lines out, in order, with always enough of them in flight and never many in memory.

Lines are handed to the engine in small batches. A batch that is done waits, as bytes, until those before it
are written: one slow call delays the output, not the other calls. OnFailure says what a line without a
verdict gets as its score.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Protocol

from plaudit.cli.input import CHUNK_LINES, LineSource, RowSource, Taken, WholeGroups
from plaudit.cli.output import Sink
from plaudit.errors import ConfigError
from plaudit.rows import RowReader
from plaudit.setup.json_lines import BadLine, Check, Line, parse, read_back, render_all
from plaudit.types import Sample, Verdict

CHUNK_BYTES = 1 << 20
OPEN_LINES = 8192
"""Lines handed to the engine and not done: more than any endpoint takes at once."""
OPEN_BYTES = 32 << 20
DONE_BYTES = 48 << 20
"""Scored lines that wait for one before them."""
POLL = 0.05
"""Seconds between two looks at what is done, where nothing wakes us earlier."""
CANCEL_WAIT = 1.0
"""Seconds that all cancelled batches together get to hand over what they have."""
ON_FAILURE = ("null", "group-mean", "raise")
_NO_SCORE = b'"score":null,"status":'


class PendingBatch(Protocol):
    """A batch in flight, as the engine gives it."""

    def done(self) -> bool: ...
    def result(self, timeout: float | None = None) -> list[Verdict]: ...
    def cancel(self) -> None: ...


Submit = Callable[[list[Sample]], PendingBatch]
Settle = Callable[[Line, Verdict], Verdict]
"""Called for each line in order of completion, once: counts it, and says what a failure becomes."""


@dataclass(slots=True)
class _Chunk:
    lines: list[Line]
    pending: PendingBatch
    size: int
    output: bytes | None = None
    """The scored lines, once they are done."""


@dataclass(slots=True)
class Stream:
    """One run over one input. Drive it with `run`, once."""

    source: LineSource | RowSource
    sink: Sink
    submit: Submit
    settle: Settle
    on_bad: Callable[[BadLine], None]
    """Called for each line that cannot be scored; raises where that ends the run."""
    wake: Event
    should_stop: Callable[[], bool]
    check: Check | None = None
    """What the judge demands of each sample, if it demands anything."""
    read: RowReader = field(default_factory=RowReader)
    """Knows which fields hold what, or finds out by the first line."""
    groups: WholeGroups | None = None
    """Keeps groups together, where the judge compares responses."""
    _chunks: deque[_Chunk] = field(default_factory=deque)

    def run(self) -> bool:
        """Score every line; True when all were written, False when it had to stop."""
        while not self.should_stop():
            self.wake.clear()
            did_something = self._fill()
            did_something |= self._collect()
            while self._chunks and (output := self._chunks[0].output) is not None:
                self.sink.write(output)
                self._chunks.popleft()
            if self._chunks:
                if not did_something:
                    self.wake.wait(POLL)
            elif self.source.exhausted and not self.groups:
                return True
        return False

    def abandon(self) -> None:
        """Stop all calls and write what is done; lines without a verdict are left out."""
        for chunk in self._chunks:
            if chunk.output is None:
                chunk.pending.cancel()
        until = time.monotonic() + CANCEL_WAIT
        for chunk in self._chunks:
            if chunk.output is None:
                verdicts: list[Verdict] = []
                with contextlib.suppress(TimeoutError):  # what it has is in the cache
                    verdicts = chunk.pending.result(timeout=max(until - time.monotonic(), 0.0))
                scored = zip(chunk.lines, verdicts, strict=False)
                chunk.output = self._render([one for one in scored if one[1].is_valid])
            self.sink.write(chunk.output)
        self._chunks.clear()

    def _fill(self) -> bool:
        open_chunks = [chunk for chunk in self._chunks if chunk.output is None]
        lines = sum(len(chunk.lines) for chunk in open_chunks)
        size = sum(chunk.size for chunk in open_chunks)
        waiting = sum(len(chunk.output) for chunk in self._chunks if chunk.output is not None)
        did_something = False
        while lines < OPEN_LINES and size < OPEN_BYTES and waiting < DONE_BYTES:
            wait = 0.0 if self._chunks else POLL
            taken = self.source.take(lines=CHUNK_LINES, size=CHUNK_BYTES, wait=wait)
            if self.should_stop():
                break
            good = self._good_lines(taken)
            if self.groups is not None:
                good = self.groups.add(good, is_end=self.source.exhausted)
            if not taken and not good:
                break
            did_something = True
            if good:
                pending = self.submit([line.sample for line in good])
                self._chunks.append(_Chunk(good, pending, sum(len(line.raw) for line in good)))
                lines += len(good)
                size += self._chunks[-1].size
        return did_something

    def _good_lines(self, taken: Sequence[Taken]) -> list[Line]:
        good = []
        for one in taken:
            line = one if isinstance(one, Line | BadLine) else parse(*one, self.check, read=self.read)
            if isinstance(line, BadLine):
                self.on_bad(line)
            else:
                good.append(line)
        return good

    def _collect(self) -> bool:
        did_something = False
        for chunk in self._chunks:
            if chunk.output is None and chunk.pending.done():
                chunk.output = self._render(list(zip(chunk.lines, chunk.pending.result(), strict=True)))
                chunk.lines = []
                did_something = True
        return did_something

    def _render(self, scored: list[tuple[Line, Verdict]]) -> bytes:
        return render_all((line, self.settle(line, verdict)) for line, verdict in scored)


@dataclass(slots=True)
class _GroupScores:
    size: int = 0
    valid: int = 0
    total: float = 0.0


class OnFailure:
    """One choice of --on-failure, and what it has to remember of the lines it has seen.

    `settle` is called once for each line; `fill_in` may be called when all are seen.
    """

    def __init__(self, choice: str) -> None:
        self._value = None if choice in ON_FAILURE else _number(choice)
        self.is_raising = choice == "raise"
        """Whether a single failure is to be reported as an error."""
        self.needs_second_pass = choice == "group-mean"
        """Whether lines already written may have to change."""
        self._groups: dict[str, _GroupScores] = {}
        self.first: tuple[int, Verdict] | None = None
        """The first line without a verdict, by number."""

    def settle(self, line: Line, verdict: Verdict) -> Verdict:
        """The verdict as it is written; its status always says what really happened."""
        if self.needs_second_pass and line.sample.group is not None:
            group = self._groups.setdefault(line.sample.group, _GroupScores())
            group.size += 1
            if verdict.score is not None:
                group.valid += 1
                group.total += verdict.score
        if verdict.is_valid:
            return verdict
        if self.first is None or line.number < self.first[0]:
            self.first = (line.number, verdict)
        return verdict if self._value is None else replace(verdict, score=self._value)

    def fill_in(self, written: bytes, group_field: str = "group") -> bytes:
        """A written line with the mean of its group where it has no score.

        A group with fewer valid verdicts than max(2, half of it) says too little about the others, and lines
        without a group have no others: null stays.
        """
        if not self.needs_second_pass or _NO_SCORE not in written:
            return written
        score, name = read_back(written, group_field)
        if score is not None or name is None:
            return written
        group = self._groups[name]
        if group.valid < max(2, group.size / 2):
            return written
        # The last one is the score itself: only text comes after it, and within text quotes are escaped.
        head, _, tail = written.rpartition(_NO_SCORE)
        return head + f'"score":{group.total / group.valid!r},"status":'.encode() + tail


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ConfigError(
            f"is not one of {', '.join(ON_FAILURE)} or a number like 0.0", setting="on_failure", value=text
        )
    return value
