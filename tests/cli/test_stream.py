"""Scoring lines as they come: in order, without a barrier, without a heap of them in memory."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Sequence
from typing import BinaryIO, cast

from plaudit.cli.input import CHUNK_LINES, LineSource
from plaudit.cli.output import StreamSink
from plaudit.cli.stream import OPEN_LINES, Stream
from plaudit.setup.json_lines import BadLine
from plaudit.types import Sample, Status, Verdict


class FakePending:
    """A batch that is done when the test says so; each verdict scores its response's number."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = samples
        self.is_done = False
        self.is_cancelled = False
        self.is_stuck = False
        self.finished = len(samples)

    def done(self) -> bool:
        return self.is_done

    def cancel(self) -> None:
        self.is_cancelled = True

    def result(self, timeout: float | None = None) -> list[Verdict]:
        if self.is_stuck or not (self.is_done or self.is_cancelled):
            raise TimeoutError
        return [
            Verdict(score=float(sample.text), status=Status.OK)
            if index < self.finished
            else Verdict(score=None, status=Status.FAILED, error="cancelled")
            for index, sample in enumerate(self.samples)
        ]


class Bytes:
    """An input in memory."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read(self, _: int) -> bytes:
        content, self._content = self._content, b""
        return content


class Lines(StreamSink):
    """An output in memory."""

    def __init__(self) -> None:
        self._written = io.BytesIO()
        super().__init__(self._written)

    @property
    def content(self) -> bytes:
        return self._written.getvalue()

    @property
    def numbers(self) -> list[int]:
        return [json.loads(line)["id"] for line in self.content.splitlines()]


def content(count: int) -> bytes:
    return b"".join(b'{"id": %d, "prompt": "p", "response": "%d"}\n' % (n, n) for n in range(count))


class Run:
    """A stream over a fake engine; `step` is called whenever the stream looks whether to stop."""

    def __init__(self, source: bytes, step: Callable[[Run], bool | None]) -> None:
        self.pendings: list[FakePending] = []
        self.bad: list[BadLine] = []
        self.sink = Lines()
        self._step = step
        self.stream = Stream(
            source=LineSource(cast(BinaryIO, Bytes(source)), "x", can_stall=False),
            sink=self.sink,
            submit=self._submit,
            settle=lambda line, verdict: verdict,
            on_bad=self.bad.append,
            wake=threading.Event(),
            should_stop=lambda: bool(self._step(self)),
        )

    def _submit(self, samples: Sequence[Sample]) -> FakePending:
        self.pendings.append(FakePending(samples))
        return self.pendings[-1]

    @property
    def open_lines(self) -> int:
        return sum(len(pending.samples) for pending in self.pendings if not pending.is_done)


def finish_newest_first(run: Run) -> None:
    for pending in reversed(run.pendings):
        if not pending.is_done:
            pending.is_done = True
            return


def test_lines_come_out_in_order_whatever_order_they_finish_in() -> None:
    run = Run(content(2000), finish_newest_first)
    assert run.stream.run()
    assert run.sink.numbers == list(range(2000))


def test_an_empty_input_gives_an_empty_output() -> None:
    run = Run(b"", finish_newest_first)
    assert run.stream.run()
    assert run.sink.content == b""
    assert run.pendings == []


def test_one_slow_batch_holds_back_the_output_and_nothing_else() -> None:
    def all_but_the_first(run: Run) -> None:
        others_left = [pending for pending in run.pendings[1:] if not pending.is_done]
        if others_left:
            others_left[0].is_done = True
        elif run.pendings and sum(len(pending.samples) for pending in run.pendings) == 20_000:
            assert run.sink.content == b""
            run.pendings[0].is_done = True

    run = Run(content(20_000), all_but_the_first)
    assert run.stream.run()
    assert run.sink.numbers == list(range(20_000))


def test_enough_lines_are_open_at_once_and_no_more() -> None:
    seen: list[int] = []

    def finish_when_no_more_come(run: Run) -> None:
        seen.append(run.open_lines)
        if seen[-2:] == [run.open_lines] * 2:
            finish_newest_first(run)

    run = Run(content(3 * OPEN_LINES), finish_when_no_more_come)
    run.stream.run()
    assert OPEN_LINES - CHUNK_LINES <= max(seen) <= OPEN_LINES + CHUNK_LINES


def test_long_lines_are_read_a_few_at_a_time() -> None:
    big = b'{"id": 1, "prompt": "%s", "response": "1"}\n' % (b"x" * 4_000_000)
    seen: list[int] = []

    def finish_when_no_more_come(run: Run) -> None:
        seen.append(run.open_lines)
        if seen[-2:] == [run.open_lines] * 2:
            finish_newest_first(run)

    assert Run(big * 20, finish_when_no_more_come).stream.run()
    assert 2 <= max(seen) <= 9


def test_bad_lines_are_reported_and_left_out() -> None:
    run = Run(b"nonsense\n" + content(2) + b"{}\n", finish_newest_first)
    assert run.stream.run()
    assert [bad.number for bad in run.bad] == [1, 4]
    assert run.sink.numbers == [0, 1]


def test_a_file_of_bad_lines_only_calls_nobody() -> None:
    run = Run(b"nonsense\n" * 3, finish_newest_first)
    assert run.stream.run()
    assert run.pendings == []


def test_stopping_keeps_every_finished_line_and_leaves_out_the_others() -> None:
    def stop(run: Run) -> bool:
        return len(run.pendings) == 4

    run = Run(content(4 * CHUNK_LINES), stop)
    assert not run.stream.run()
    first, second, third, fourth = run.pendings
    first.is_done = third.is_done = True
    second.finished, fourth.finished = 10, 0
    run.stream.abandon()
    assert second.is_cancelled
    assert fourth.is_cancelled
    assert run.sink.numbers == [
        *range(CHUNK_LINES),
        *range(CHUNK_LINES, CHUNK_LINES + 10),
        *range(2 * CHUNK_LINES, 3 * CHUNK_LINES),
    ]


def test_a_batch_that_will_not_answer_does_not_hold_up_the_end() -> None:
    run = Run(content(10), lambda run: bool(run.pendings))
    run.stream.run()
    run.pendings[0].is_stuck = True
    run.stream.abandon()
    assert run.sink.content == b""
