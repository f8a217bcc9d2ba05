"""`plaudit rejudge`: the samples of a journal, judged again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from journals import judged, read, write
from simulated_judge import FAST, Simulator, simulated

from plaudit.cli import app
from plaudit.journal.index import JournalIndex
from plaudit.simulator import Fault, Scenario


def rejudge(simulator: Simulator, *words: str | Path) -> Result:
    endpoint = ("--base-url", simulator.url, "--model", "m", "--quiet", "--cache", "off")
    return CliRunner().invoke(app, ["rejudge", *map(str, words), *endpoint])


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "run.journal"
    write(path, [judged(n, score=3.0, extra={"training_step": n}) for n in range(12)], run="first")
    return path


def test_every_sample_is_judged_again_as_a_run_of_its_own(simulator: Simulator, journal: Path) -> None:
    done = rejudge(simulator, journal, "--rubric", "Is it brief?", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["samples"], found["scored_in_both"]) == (12, 12)
    assert found["only_first"] == found["only_second"] == 0
    again = [record for record in read(journal) if record["run"] == "rejudge-1"]
    assert sorted(record["step"] for record in again) == list(range(12))  # type: ignore[type-var]
    assert {record["response"] for record in again} == {f"answer {n}" for n in range(12)}


def test_quiet_says_on_stderr_only_what_went_wrong(simulator: Simulator, journal: Path) -> None:
    assert rejudge(simulator, journal).stderr == ""
    with simulated(Scenario(latency=FAST, faults=(Fault("babble"),))) as broken:
        assert "judged 12 samples, 12 of them without a score," in rejudge(broken, journal).stderr


def test_only_some_steps_and_into_another_file(simulator: Simulator, journal: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.journal"
    done = rejudge(simulator, journal, "--step", "3-5", "--journal", other, "--run", "strict")
    assert done.exit_code == 0, done.output
    assert "3 samples in both" in done.stdout
    assert [record["run"] for record in read(other)] == ["strict"] * 3
    assert len(read(journal)) == 12


def test_a_judge_that_compares_gets_the_groups_of_each_step_apart(
    simulator: Simulator, tmp_path: Path
) -> None:
    """Group names repeat: many loops number the prompts of each batch from 0."""
    path = tmp_path / "j"
    verdicts = [
        judged(n, prompt=f"question {n // 3 % 2}", group=str(n // 3 % 2), extra={"training_step": n // 6})
        for n in range(18)
    ]
    write(path, verdicts)
    done = rejudge(simulator, path, "--judge", "group", "--run", "compared")
    assert done.exit_code == 0, done.output
    records = [record for record in read(path) if record["run"] == "compared"]
    assert sum(record["panel"] == 0 for record in records) == 18
    asked = [record for record in records if record["panel"]]
    assert sorted(len(record["serves"]) for record in asked) == [3] * 6  # type: ignore[arg-type]


def test_what_a_stopped_command_had_judged_is_not_compared_with_itself(
    simulator: Simulator, journal: Path
) -> None:
    write(journal, [judged(n, score=9.0, extra={"training_step": n}) for n in range(4)], run="rejudge-1")
    write(journal, [judged(11, score=None)], run="second")
    done = rejudge(simulator, journal, "--json")
    found = json.loads(done.stdout)
    with JournalIndex(journal) as index:
        before = {index.facts_of(one["rows"][0])["run"] for one in found["most_changed"]}
    assert before == {"first"}
    done = rejudge(simulator, journal, "--of-run", "rejudge-1", "--json")
    assert json.loads(done.stdout)["samples"] == 4


def test_samples_that_get_no_score_again_are_counted_by_message_and_exit_status(journal: Path) -> None:
    with simulated(Scenario(latency=FAST, faults=(Fault("babble"),))) as simulator:
        done = rejudge(simulator, journal, "--step", "0-2")
    assert done.exit_code == 3, done.output
    assert "judged 3 samples, 3 of them without a score, as run rejudge-1" in done.output


def test_a_journal_without_texts_cannot_be_judged_again(simulator: Simulator, tmp_path: Path) -> None:
    write(tmp_path / "j", [judged()], has_text=False)
    assert rejudge(simulator, tmp_path / "j").exit_code == 2
    assert rejudge(simulator, tmp_path / "none").exit_code == 2


def test_samples_whose_texts_are_damaged_are_named_and_not_judged_as_empty(
    simulator: Simulator, journal: Path
) -> None:
    whole = journal.stat().st_size
    write(journal, [judged(n) for n in range(20, 25)], run="second")
    data = bytearray(journal.read_bytes())
    data[whole - 40] ^= 0xFF
    journal.write_bytes(data)
    done = rejudge(simulator, journal)
    assert done.exit_code == 0 and "damaged" in done.stderr
    again = [record for record in read(journal) if record["run"] == "rejudge-1"]
    assert sorted(str(record["response"]) for record in again) == [f"answer {n}" for n in range(20, 25)]
