"""`plaudit rejudge`: the samples of a journal under another judge, prompt or model, and what that changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from plaudit.cli.console import Console, asker
from plaudit.cli.journal import differences, limit_option, opened, show_numbers
from plaudit.cli.options import JOURNAL, JUDGE, LIMITS, REQUESTS, Given, Running, argument, command
from plaudit.config import expanded
from plaudit.errors import ConfigError, JournalError
from plaudit.journal.index import JournalIndex
from plaudit.journal.query import Query, compare, last_verdicts
from plaudit.judges.base import compares
from plaudit.observers.log import Log
from plaudit.observers.progress import Progress
from plaudit.settings import Settings, load, option
from plaudit.setup.engines import check_cache, check_journal, engine_for, open_endpoints
from plaudit.setup.judges import judge_of
from plaudit.types import Sample

WINDOW = 4096
"""Samples that are judged, and in memory, together."""
RUN = "rejudge-"
"""How runs of this command are called, where they get no name."""


@dataclass(frozen=True, kw_only=True)
class RejudgeOptions(Running):
    source: str = argument("JOURNAL", "Journal file.")
    of_run: str = option("", "Only the samples of this run.", "Records", "NAME")
    step: str = option("", "Only these training steps.", "Records", "N|N-M")
    status: str = option("", "Only this status: ok, failed, ..., or missing.", "Records", "STATUS")
    limit: int = limit_option(0, "Maximum number of samples; 0 for all.")
    as_json: bool = option(False, "The comparison as one JSON object.", "Output", flags=("--json",))


@command(
    RejudgeOptions,
    settings=(*JUDGE, *REQUESTS, *LIMITS, "cache", *JOURNAL),
    epilog='Example:  plaudit rejudge run.journal --rubric "Is it correct? Ignore claims of having checked."',
)
def rejudge(options: RejudgeOptions, given: Given) -> int:
    """Judge the samples of a journal again, and report what changed.

    Use another judge, prompt or model, and see which scores changed and by how much. The new verdicts go into
    the same journal as a new run, or into the one that --journal names. They are compared with the last
    verdict on each sample that no other rejudge made, or with those of the run that --of-run names. Cached
    verdicts are used, so you can stop the command and run it again.
    """
    source = expanded(options.source)
    settings = load({**given, "journal": given.get("journal") or str(source)})
    check_cache(settings)
    with opened(options.source) as index:
        rows = _chosen(index, options)
        runs = {session.run for session in index.sessions.values()}
        free = (f"{RUN}{number}" for number in range(1, len(runs) + 2))
        run = settings.run or next(name for name in free if name not in runs)
        check_journal(settings)
        try:
            missing = _judge(index, rows, replace(settings, run=run), options)
        except KeyboardInterrupt:
            Console().print(
                f"stopped; what was judged is run {run} of {settings.journal}, and cached unless --cache "
                "is off: the same command goes on from there"
            )
            raise
        lost = f", {missing:,} of them without a score," if missing else ""
        if lost or not options.quiet:
            Console().print(f"judged {len(rows):,} samples{lost} as run {run} in {settings.journal}")
        both = (
            index if Path(settings.journal) in index.paths else JournalIndex(*index.paths, settings.journal)
        )
        both.refresh()
        found = compare(both, rows, Query(run=run).rows(both))
        show_numbers(found, differences(both, found), is_json=options.as_json)
    return 3 if missing else 0


def _chosen(index: JournalIndex, options: RejudgeOptions) -> list[int]:
    """One row for each sample, if possible of another command: what was judged again before this one was
    stopped would otherwise be compared with itself."""
    found = Query(run=options.of_run, steps=options.step, status=options.status).rows(index)
    own = [] if options.of_run else [word for word in index.words if word.startswith(RUN)]
    rows = last_verdicts(index, found, rather_not=own)[: options.limit or None]
    if not rows:
        raise ConfigError(f"{options.source} has no such records; leave out --of-run, --step or --status")
    if not any(index.text(row).response for row in rows[:100]):
        raise JournalError(
            f"{options.source} was written without texts (--no-text), so there is nothing to judge"
        )
    return rows


def _judge(index: JournalIndex, rows: list[int], settings: Settings, options: RejudgeOptions) -> int:
    """Judge these again; how many got no score."""
    missing = 0
    judge = judge_of(settings, is_embedded=not settings.base_url)
    with (
        open_endpoints(settings, ask=asker(options.yes)) as ready,
        Progress(total=len(rows), is_shown=not options.quiet) as progress,
        engine_for(settings, ready.endpoints, [Log(), progress]) as engine,
    ):
        groups = _groups(index, rows) if compares(judge) else [[row] for row in rows]
        step = max(WINDOW // max(map(len, groups)), 1)
        for start in range(0, len(groups), step):
            window = groups[start : start + step]
            batches = window if compares(judge) else [list(chain.from_iterable(window))]
            pending = [
                engine.submit([sample_of(index, row) for row in batch if index.is_whole(row)], judge)
                for batch in batches
            ]
            verdicts = chain.from_iterable(one.result() for one in pending)
            missing += sum(verdict.score is None for verdict in verdicts)
    return missing


def _groups(index: JournalIndex, rows: list[int]) -> list[list[int]]:
    """The groups that these samples were judged in. Another step may have a group of the same name."""
    found: dict[tuple[int, ...], list[int]] = {}
    for row in rows:
        own = index.facts[row]
        found.setdefault((int(own["run"]), int(own["step"]), int(own["group"])), []).append(row)
    return list(found.values())


def sample_of(index: JournalIndex, row: int) -> Sample:
    """The sample that a record is about, as it was judged."""
    text = index.text(row)
    prompt = text.prompt if isinstance(text.prompt, str) else tuple(text.prompt)
    response = text.response if text.turns is None else tuple(text.turns)
    return Sample(prompt, response, text.reference, text.group, text.extra, tools=tuple(text.tools))
