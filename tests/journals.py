"""Journals for tests: verdicts handed to a writer, and engines over scripted replies that keep one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from plaudit.config import Endpoint
from plaudit.engine import Engine
from plaudit.journal.base import Exchange, Judged
from plaudit.journal.index import JournalIndex
from plaudit.journal.writer import JournalWriter
from plaudit.judges.rubric import Rubric
from plaudit.testing import ScriptedTransport
from plaudit.types import Cause, ChatRequest, Reply, Sample, Status, Usage, Verdict

JUDGE = Rubric("Is it correct?", scale=(0, 10))


def judged(number: int = 0, *, score: float | None = 7.0, **sample: object) -> Judged:
    """A verdict as an engine hands it over."""
    facts: dict[str, object] = {"prompt": f"question {number}", "response": f"answer {number}", **sample}
    verdict = (
        Verdict.failed(Cause.UNREADABLE, "no score in the reply")
        if score is None
        else Verdict(
            score, Status.OK, f"because {number}", model="m", attempts=1, usage=Usage(100, 20, 0.001)
        )
    )
    request = ChatRequest(({"role": "user", "content": f"judge {facts['response']}"},))
    reply = '{"reason": "because", "score": 7}' if score is not None else "I would say seven"
    exchange = Exchange("http://host/v1 m", reply, None, "stop", 0.25, 1, 100, 20, 0.001)
    return Judged(Sample(**facts), JUDGE, verdict, 1, number, request, (exchange,), 0.5)  # type: ignore[arg-type]


def write(path: Path, verdicts: Iterable[Judged], *, run: str = "run-1", **options: object) -> JournalWriter:
    """A closed journal with these verdicts."""
    writer = JournalWriter(path, run=run, **options)  # type: ignore[arg-type]
    for one in verdicts:
        writer.add(one)
    writer.close()
    return writer


def read(path: Path) -> list[dict[str, object]]:
    """The records of a journal as plain data."""
    with JournalIndex(path) as index:
        return [record.as_json() for record in index.records()]


def engine(path: Path, replies: list[object], **options: object) -> Engine:
    """An engine that gets these replies, in order, and keeps a journal."""
    transport = ScriptedTransport(replies)  # type: ignore[arg-type]
    return Engine(
        endpoints=[Endpoint("http://host/v1", "m", api_key="sk-secret-key")],
        cache=None,
        transport=lambda _: transport,
        journal=path,
        **options,  # type: ignore[arg-type]
    )


GOOD = Reply('{"reason": "right", "score": 8}', model="m-1", usage=Usage(50, 9))
