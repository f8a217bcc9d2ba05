"""A whole run over a fake engine: what is written, what is said, and how it ends."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import pytest
from complaints import about

from plaudit.cli.console import Console
from plaudit.cli.input import KEPT_BYTES
from plaudit.cli.run_summary import RunSummary
from plaudit.cli.score import ScoreOptions, ScoreRun
from plaudit.config import Endpoint
from plaudit.errors import ConfigError
from plaudit.events import (
    BatchFinished,
    BatchStarted,
    CauseCount,
    EndpointLost,
    Observer,
    Summary,
    VerdictsReady,
)
from plaudit.judges.base import Judge, Panel
from plaudit.settings import Settings, resolve
from plaudit.setup.engines import ReadyEndpoints
from plaudit.types import Cause, Sample, Source, Status, Usage, Verdict

ENDPOINT = Endpoint("http://127.0.0.1:1/v1", model="m")
LOST = "401 from http://127.0.0.1:1/v1: set OPENAI_API_KEY"


def judged(sample: Sample) -> Verdict:
    """A response that is a number gets it; `!` fails."""
    if sample.response == "!":
        return Verdict(score=None, status=Status.FAILED, error="503 five times")
    return Verdict(score=float(sample.text), status=Status.OK, model="m", attempts=1)


@dataclass
class FakePending:
    verdicts: list[Verdict]
    is_done: bool = True

    def done(self) -> bool:
        return self.is_done

    def cancel(self) -> None:
        self.is_done = True

    def result(self, timeout: float | None = None) -> list[Verdict]:
        return self.verdicts


@dataclass
class FakeEngine:
    """Judges at once, in the thread that asks."""

    judge_one: Callable[[Sample], Verdict] = judged
    on_submit: Callable[[], None] = lambda: None
    observers: Sequence[Observer] = ()
    deadlines: list[float | None] = field(default_factory=list)
    submitted: int = 0
    is_open: bool = False

    def submit_checked(
        self, samples: Sequence[Sample], judge: Judge | Panel, *, deadline: float | None
    ) -> FakePending:
        assert self.is_open
        self.submitted += len(samples)
        self.deadlines.append(deadline)
        verdicts = [self.judge_one(sample) for sample in samples]
        for observer in self.observers:
            observer(BatchStarted(at=0.0, batch=1, samples=len(samples)))
            observer(VerdictsReady(at=0.0, batch=1, verdicts=tuple(verdicts)))
            observer(BatchFinished(at=0.0, batch=1, summary=Summary(samples=len(samples), seconds=0.0)))
        self.on_submit()
        return FakePending(verdicts)

    def __enter__(self) -> Self:
        self.is_open = True
        return self

    def __exit__(self, *error: object) -> None:
        self.is_open = False


@dataclass
class Outcome:
    status: int
    said: str
    engine: FakeEngine


@contextlib.contextmanager
def ready() -> Iterator[ReadyEndpoints]:
    yield ReadyEndpoints((ENDPOINT,), notice="Judged by m.")


def settings(**arguments: Any) -> Settings:
    return resolve(arguments, environment={}, table={})


@dataclass
class Job:
    """What is typed, and the settings."""

    source: str
    output: str
    settings: Settings
    summary: str | None = None
    quiet: bool = False
    skip_bad: bool = False

    @property
    def options(self) -> ScoreOptions:
        return ScoreOptions(
            source=self.source,
            output=self.output,
            summary=self.summary,
            quiet=self.quiet,
            skip_bad=self.skip_bad,
        )


def run(job: Job, engine: FakeEngine | None = None) -> Outcome:
    engine = engine or FakeEngine()

    def open_engine(endpoints: tuple[Endpoint, ...], observers: Sequence[Observer]) -> FakeEngine:
        assert endpoints == (ENDPOINT,)
        engine.observers = observers
        return engine

    said = io.StringIO()
    status = ScoreRun(
        job.options, job.settings, open_endpoints=ready, open_engine=open_engine, console=Console(said)
    )()
    return Outcome(status, said.getvalue(), engine)


def write(path: Path, *responses: str, group: str | None = None) -> str:
    lines = [
        json.dumps({"id": number, "prompt": "p", "response": response, "group": group})
        for number, response in enumerate(responses, start=1)
    ]
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


def test_every_line_has_a_verdict_and_the_status_is_zero(tmp_path: Path, out: Path) -> None:
    done = run(Job(write(tmp_path / "in.jsonl", "1", "2", "3"), str(out), settings()))
    assert done.status == 0
    assert [line["score"] for line in read(out)] == [1.0, 2.0, 3.0]
    assert "Judged by m." in done.said
    assert "3 of 3 lines scored" in done.said
    assert not done.engine.is_open


def test_some_lines_without_a_verdict_make_the_status_three(tmp_path: Path, out: Path) -> None:
    done = run(Job(write(tmp_path / "in.jsonl", "1", "!", "!"), str(out), settings()))
    assert done.status == 3
    assert [line["score"] for line in read(out)] == [1.0, None, None]
    assert "  2 x unknown: 503 five times" in done.said


def test_a_failure_becomes_what_was_chosen_but_the_status_stays_three(tmp_path: Path, out: Path) -> None:
    source = write(tmp_path / "in.jsonl", "1", "!", "2", group="g")
    for choice, expected in (("-1", [1.0, -1.0, 2.0]), ("group-mean", [1.0, 1.5, 2.0])):
        done = run(Job(source, str(out), settings(on_failure=choice)))
        assert done.status == 3
        assert [line["score"] for line in read(out)] == expected
        assert [line["status"] for line in read(out)] == ["ok", "failed", "ok"]


def test_raise_names_the_first_failure_after_saving(tmp_path: Path, out: Path) -> None:
    source = write(tmp_path / "in.jsonl", "1", "!", "!")
    done = run(Job(source, str(out), settings(on_failure="raise"), quiet=True))
    assert done.status == 3
    assert done.said == "plaudit: line 2 has no verdict (failed): 503 five times\n"
    assert len(read(out)) == 3


def test_a_text_that_the_judge_does_not_read_whole_is_reported(tmp_path: Path, out: Path) -> None:
    source = write(tmp_path / "in.jsonl", "1", "0" * 200_001, "2")
    summary = tmp_path / "summary.json"
    done = run(Job(source, str(out), settings(), summary=str(summary)))
    assert done.status == 0
    assert json.loads(summary.read_bytes())["cut"] == 1
    assert "more than 200,000 characters" in done.said


def test_the_summary_shows_the_spread_the_worst_and_the_best(tmp_path: Path, out: Path) -> None:
    source = write(tmp_path / "in.jsonl", *(str(number) for number in range(11)))
    said = run(Job(source, str(out), settings())).said
    assert "worst     0, line 1: 0" in said
    assert "best      10, line 11: 10" in said
    assert said.count("#") > 20


def test_a_few_lines_need_no_histogram(tmp_path: Path, out: Path) -> None:
    said = run(Job(write(tmp_path / "in.jsonl", "1", "2"), str(out), settings())).said
    assert "#" not in said and "worst" not in said


def test_the_summary_says_what_the_cache_saved(tmp_path: Path, out: Path) -> None:
    def cached(sample: Sample) -> Verdict:
        return Verdict(1.0, Status.OK, source=Source.CACHE, usage=Usage(1000, 100, 0.0))

    summary = tmp_path / "summary.json"
    job = Job(
        write(tmp_path / "in.jsonl", "1", "2"), str(out), settings(price=(1.0, 10.0)), summary=str(summary)
    )
    said = run(job, FakeEngine(cached)).said
    assert "saved 2 calls, 2,000 tokens in, 200 out, $0.0040" in said
    assert json.loads(summary.read_bytes())["saved"]["cost"] == pytest.approx(0.004)


def test_quiet_hides_warnings_too(tmp_path: Path, out: Path) -> None:
    engine = FakeEngine(on_submit=lambda: logging.getLogger("plaudit").warning("slow"))
    job = Job(write(tmp_path / "in.jsonl", "1"), str(out), settings())
    assert "slow" in run(job, engine).said
    assert run(replace(job, quiet=True), engine).said == ""


def test_quiet_says_nothing_when_all_is_well(tmp_path: Path, out: Path) -> None:
    assert run(Job(write(tmp_path / "in.jsonl", "1"), str(out), settings(), quiet=True)).said == ""


def test_the_summary_is_written_with_stable_keys(tmp_path: Path, out: Path) -> None:
    summary = tmp_path / "summary.json"
    run(Job(write(tmp_path / "in.jsonl", "1", "3", "!"), str(out), settings(), summary=str(summary)))
    numbers = json.loads(summary.read_text())
    assert " ".join(numbers) == (
        "lines scored failed skipped cut seconds rate by_status by_source errors calls retries hedges "
        "rate_limited rereads "
        "latency_p50_s latency_p95_s prompt_tokens completion_tokens cached_tokens "
        "reasoning_tokens cost score_mean score_std "
        "histogram saved model output exit_status endpoints"
    )
    assert numbers["lines"] == 3
    assert numbers["failed"] == 1
    assert numbers["by_status"] == {"ok": 2, "failed": 1}
    assert numbers["errors"] == [{"cause": "unknown", "message": "503 five times", "count": 1}]
    assert numbers["score_mean"] == 2.0
    assert numbers["model"] == "m"
    assert numbers["output"] == str(out)
    assert numbers["exit_status"] == 3


def test_bad_lines_are_named_before_a_call_is_made(tmp_path: Path, out: Path) -> None:
    source = tmp_path / "in.jsonl"
    write(source, *["1"] * 300)
    source.write_text(source.read_text() + "nonsense\n" * 12)
    out.write_text("old")
    engine = FakeEngine()
    with pytest.raises(ConfigError) as caught:
        run(Job(str(source), str(out), settings()), engine)
    message = str(caught.value)
    assert "bad lines: 12" in message
    assert "line 301: not JSON" in message
    assert "line 310: not JSON" in message
    assert "and 2 more" in message
    assert "--skip-bad" in message
    assert engine.submitted == 0
    assert out.read_text() == "old"


def test_a_json_array_is_scored_element_by_element(tmp_path: Path, out: Path) -> None:
    source = tmp_path / "in.json"
    source.write_text(json.dumps([{"prompt": "p", "response": "7"}], indent=2))
    run(Job(str(source), str(out), settings()))
    assert [line["score"] for line in read(out)] == [7.0]


def test_skipped_lines_are_counted_and_the_others_scored(tmp_path: Path, out: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("nonsense\n" + Path(write(source, "1", "2")).read_text())
    done = run(Job(str(source), str(out), settings(), skip_bad=True))
    assert done.status == 0
    assert len(read(out)) == 2
    assert "skipped   1 bad lines" in done.said


def test_a_file_where_every_line_is_bad_is_an_error_even_so(tmp_path: Path, out: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("nonsense\n")
    with pytest.raises(ConfigError, check=about("", "in.jsonl", "line 1")):
        run(Job(str(source), str(out), settings(), skip_bad=True))


def test_an_empty_file_gives_an_empty_file_and_a_note(tmp_path: Path, out: Path) -> None:
    done = run(Job(write(tmp_path / "in.jsonl"), str(out), settings()))
    assert done.status == 0
    assert out.read_bytes() == b""
    assert "has no lines: nothing to score" in done.said
    assert done.engine.submitted == 0


def test_a_file_may_be_scored_in_place(tmp_path: Path) -> None:
    path = tmp_path / "both.jsonl"
    write(path, "1", "2")
    for _ in range(2):
        assert run(Job(str(path), str(path), settings())).status == 0
        assert [line["score"] for line in read(path)] == [1.0, 2.0]


@pytest.mark.parametrize("output", ["both.jsonl", "~/both.jsonl"])  # as no shell expands it in --output=~/...
def test_in_place_bad_lines_are_never_deleted(
    output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigError, check=about("", "--skip-bad", "-o")):
        run(Job(str(tmp_path / "both.jsonl"), output, settings(), skip_bad=True))


def test_the_summary_needs_a_file_of_its_own(out: Path) -> None:
    with pytest.raises(ConfigError, check=about("", "--summary", "out.jsonl")):
        run(Job("in.jsonl", str(out), settings(), summary=str(out)))


def test_group_mean_cannot_go_to_a_stream(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, check=about("on_failure")):
        run(Job("in.jsonl", "-", settings(on_failure="group-mean")))


def test_the_deadline_is_that_of_the_whole_run(tmp_path: Path, out: Path) -> None:
    done = run(Job(write(tmp_path / "in.jsonl", *["1"] * 600), str(out), settings(deadline=60.0)))
    assert len(done.engine.deadlines) == 3
    assert all(left is not None and 0 < left <= 60.0 for left in done.engine.deadlines)


def test_a_signal_saves_what_is_done_and_says_how_to_go_on(tmp_path: Path, out: Path) -> None:
    out.write_text("old")
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        engine = FakeEngine(on_submit=lambda number=number: os.kill(os.getpid(), number))  # type: ignore[misc]
        done = run(Job(write(tmp_path / "in.jsonl", *["1"] * 1000), str(out), settings()), engine)
        assert done.status == status
        partial = tmp_path / "out.partial.jsonl"
        assert 0 < len(read(partial)) < 1000
        assert out.read_text() == "old"
        assert f"stopped; finished lines are in {partial}; run the same command again" in done.said


def test_a_signal_without_a_cache_says_that_the_next_run_starts_anew(tmp_path: Path, out: Path) -> None:
    engine = FakeEngine(on_submit=lambda: os.kill(os.getpid(), signal.SIGINT))
    done = run(Job(write(tmp_path / "in.jsonl", *["1"] * 1000), str(out), settings(cache="off")), engine)
    assert "the cache is off, so the next run starts from the beginning" in done.said


def test_a_warning_is_told_once_and_not_again_in_the_summary(tmp_path: Path, out: Path) -> None:
    def refuse(sample: Sample) -> Verdict:
        return Verdict.failed(Cause.REFUSED_KEY, LOST)

    engine = FakeEngine(judge_one=refuse)
    lost = EndpointLost(at=0.0, endpoint="m", error=LOST, cause=Cause.REFUSED_KEY)
    engine.on_submit = lambda: engine.observers[1](lost)
    done = run(Job(write(tmp_path / "in.jsonl", *["1"] * 600), str(out), settings()), engine)
    assert done.status == 3
    assert done.said.count(LOST) == 1


def test_a_missing_folder_for_the_summary_is_named_before_a_call(tmp_path: Path, out: Path) -> None:
    engine = FakeEngine()
    source = write(tmp_path / "in.jsonl", "1")
    job = Job(source, str(out), settings(), summary=str(tmp_path / "no" / "s.json"))
    with pytest.raises(ConfigError, check=about("summary")):
        run(job, engine)
    assert engine.submitted == 0
    assert list(tmp_path.iterdir()) == [tmp_path / "in.jsonl"]


def test_what_is_read_after_the_deadline_is_marked_without_asking(tmp_path: Path, out: Path) -> None:
    lines = write(tmp_path / "in.jsonl", *(str(i) for i in range(2000)))
    ended = run(Job(lines, str(out), settings(deadline=1e-9)))
    assert ended.engine.submitted == 0
    assert ended.status == 3
    written = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["response"] for row in written] == [str(i) for i in range(2000)]
    assert {(row["status"], row["score"]) for row in written} == {("deadline", None)}
    assert "2,000 deadline" in ended.said


def test_skipped_lines_of_a_large_file_are_counted_though_it_is_read_twice(tmp_path: Path, out: Path) -> None:
    source, summary = tmp_path / "in.jsonl", tmp_path / "summary.json"
    long = json.dumps({"prompt": "p", "response": "1", "carried": "x" * KEPT_BYTES})
    source.write_text(f"{long}\nnonsense\n{long}\n")
    assert run(Job(str(source), str(out), settings(), skip_bad=True, summary=str(summary))).status == 0
    numbers = json.loads(summary.read_text())
    assert (numbers["scored"], numbers["skipped"]) == (2, 1)


def test_the_rate_counts_verdicts_and_not_what_was_cancelled() -> None:
    numbers = Summary(samples=100, seconds=10.0, by_status={"failed": 90, "ok": 10})
    report = RunSummary(numbers, 0, ("m",), None, 130)
    assert report.as_json()["rate"] == 1.0


def test_what_was_cancelled_is_not_called_a_failure() -> None:
    causes = (CauseCount(Cause.CANCELLED, 85, "cancelled"), CauseCount(Cause.TIMED_OUT, 5, "too slow"))
    numbers = Summary(samples=100, seconds=10.0, by_status={"failed": 90, "ok": 10}, causes=causes)
    text = "\n".join(RunSummary(numbers, 0, ("m",), None, 130).as_text())
    assert "5 failed, 10 ok, 85 not judged" in text
    assert "5 x timed_out: too slow" in text
    assert "cancelled" not in text


def test_calls_that_were_repeated_for_want_of_a_verdict_are_explained() -> None:
    numbers = Summary(samples=10, seconds=1.0, by_status={"ok": 10}, calls=14, rereads=4)
    text = "\n".join(RunSummary(numbers, 0, ("m",)).as_text())
    assert "14, 4 repeated after a reply without a verdict" in text
