"""`plaudit journal`, on journals of known records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from journals import engine, judged, read, write
from msgspec import structs
from simulated_judge import Simulator

from plaudit.cli import app
from plaudit.judges.group import Group
from plaudit.policy.fingerprint import sample_id
from plaudit.types import Reply, Sample, Status, Usage


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["journal", *map(str, words)])


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "run.journal"
    first = [judged(n, score=n % 10, extra={"training_step": n // 10}) for n in range(50)]
    write(path, [*first, judged(50, score=None)], run="monday")
    write(path, [judged(n, score=(n + 1) % 10) for n in range(20)], run="tuesday")
    return path


def test_show_lists_the_best_first_if_asked_to(journal: Path) -> None:
    lines = run(
        "show", journal, "--sort", "unit", "--descending", "-n", "3", "--run", "monday"
    ).stdout.splitlines()
    assert [line.split()[1] for line in lines[:3]] == ["0.90"] * 3


def test_show_gives_one_record_in_full(journal: Path) -> None:
    (first, *_) = run("show", journal, "-n", "1").stdout.split()
    text = run("show", journal, "--id", first).stdout
    assert "answer 0" in text and '{"reason": "because", "score": 7}' in text and "judge answer 0" in text
    assert "from      call http://host/v1 m\n" in text


def test_show_finds_the_last_verdict_on_a_sample_by_its_name_in_a_trainers_table(journal: Path) -> None:
    text = run("show", journal, "--id", sample_id(judged(0).sample)).stdout
    assert "answer 0" in text and "tuesday" in text
    assert run("show", journal, "--id", "0" * 16).exit_code == 2


def test_a_record_that_is_not_there_is_said_so(journal: Path) -> None:
    assert run("show", journal, "--id", "nothing.7").exit_code == 2


def test_grep_finds_what_replies_say_and_ends_with_1_where_there_is_nothing(journal: Path) -> None:
    found = run("grep", journal, "WOULD say")
    assert found.exit_code == 0 and "unreadable" in found.stdout
    assert run("grep", journal, "nowhere at all").exit_code == 1
    assert run("grep", journal, "(").exit_code == 2


def test_who_names_the_pattern_first_is_told_the_order(journal: Path) -> None:
    told = run("grep", "WOULD say", journal)
    assert told.exit_code == 2
    assert f"plaudit journal grep {journal} 'WOULD say'" in " ".join(told.stderr.split())


def test_stats_count_by_status_and_step(journal: Path) -> None:
    found = json.loads(run("stats", journal, "--run", "monday", "--json").stdout)
    assert found["by_status"] == {"ok": 50, "unreadable": 1}
    assert [column["records"] for column in found["trend"]["columns"]] == [10] * 5
    assert found["missing"][0]["cause"] == "unreadable"
    assert "monday" in run("stats", journal).stdout


def test_diff_pairs_the_samples_of_two_runs(journal: Path) -> None:
    found = json.loads(run("diff", journal, "monday", "tuesday", "--json").stdout)
    assert (found["samples"], found["only_first"], found["changed"]) == (20, 31, 20)
    assert "0.90 -> 0.00" in run("diff", journal, "monday", "tuesday").stdout
    assert run("diff", journal, "monday", "friday").exit_code == 2


def test_export_writes_json_lines_that_hold_everything(journal: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert run("export", journal, "-o", out, "--run", "monday").exit_code == 0
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(records) == 51
    assert records[50]["score"] is None and records[50]["exchanges"][0]["reply"] == "I would say seven"


def odd(path: Path) -> None:
    """Records that differ in everything a column may hold: the first ones have neither step nor cost."""
    turns = ({"role": "assistant", "content": "look"}, {"role": "tool", "content": "42"})
    plain = judged(0, extra={})
    free = replace(plain.verdict, usage=Usage(), score=None, status=Status.EMPTY)
    several = [structs.replace(plain, verdict=free, exchanges=(), request=None)] * 20
    several += [
        judged(1, prompt=turns[:1], response=turns, reference="r", extra={"training_step": 3, "o": object()})
    ]
    several += [judged(2, response="\ud800 \x00", group="g", extra={"gold": 0.5}), judged(3, score=None)]
    write(path, several)


def test_parquet_holds_every_record_whatever_the_first_ones_lack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("plaudit.cli.journal.PARQUET_ROWS", 8)  # so that there are several parts
    odd(tmp_path / "j")
    out = tmp_path / "out.parquet"
    assert run("export", tmp_path / "j", "-o", out).exit_code == 0
    rows = table.read_table(out).to_pylist()
    assert len(rows) == 23
    assert [row["step"] for row in rows[19:]] == [None, 3, None, None]
    assert [row["score"] for row in rows[19:]] == [None, 7.0, 7.0, None]
    assert rows[20]["reference"] == "r" and json.loads(rows[20]["turns"])[1]["content"] == "42"
    assert rows[22]["error"] == "no score in the reply" and rows[21]["gold"] == 0.5


def test_an_empty_choice_is_an_empty_table(journal: Path, tmp_path: Path) -> None:
    table = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "out.parquet"
    assert run("export", journal, "-o", out, "--step", "999").exit_code == 0
    found = table.read_table(out)
    assert found.num_rows == 0 and {"id", "unit", "response"} <= set(found.column_names)


def test_pandas_reads_the_exports(journal: Path, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    lines, parquet = tmp_path / "out.jsonl", tmp_path / "out.parquet"
    for out in (lines, parquet):
        assert run("export", journal, "-o", out).exit_code == 0
    means = [
        frame.groupby("run")["unit"].mean().round(6).to_dict()
        for frame in (pandas.read_json(lines, lines=True), pandas.read_parquet(parquet))
    ]
    assert means[0] == means[1] == {"monday": 0.45, "tuesday": 0.45}


def test_hostile_texts_cannot_command_the_terminal(tmp_path: Path) -> None:
    write(tmp_path / "j", [judged(response="\x1b[2Jgone\u202e")])
    assert "\x1b" not in run("show", tmp_path / "j").stdout


def test_what_is_no_journal_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "j").write_bytes(b"not a journal, but something longer than a title")
    assert run("show", tmp_path / "j").exit_code == 2
    assert run("show", tmp_path / "missing").exit_code == 2


def test_a_short_file_that_is_no_journal_is_no_torn_one(tmp_path: Path) -> None:
    (tmp_path / "j").write_text('{"a":1}')
    found = run("stats", tmp_path / "j")
    assert found.exit_code == 2 and "torn" not in found.stderr
    (tmp_path / "j").write_text("plaudit jou")  # cut off within its title
    found = run("stats", tmp_path / "j")
    assert found.exit_code == 0 and "torn" in found.stderr and found.stdout == "0 records\n"


def test_an_export_names_the_texts_that_it_could_not_read(tmp_path: Path) -> None:
    path = tmp_path / "j"
    write(path, [judged(n) for n in range(100)])
    data = bytearray(path.read_bytes())
    data[-40] ^= 0xFF  # within the texts of the last block: its numbers are whole
    path.write_bytes(data)
    found = run("export", path, "-o", tmp_path / "out.jsonl")
    assert found.exit_code == 0 and "damaged" in found.stderr
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 100
    assert "damaged" not in run("stats", path).stderr  # which needs none of it


def test_one_file_of_several_that_is_none_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "j"
    write(path, [judged(n) for n in range(5)])
    (tmp_path / "j.000001").write_text("half of something else, long enough for a title")
    found = run("stats", path)
    assert found.exit_code == 0 and "j.000001: damaged" in found.stderr and "5 records" in found.stdout


def test_a_folder_is_said_to_be_none(tmp_path: Path) -> None:
    found = run("show", tmp_path)
    assert found.exit_code == 2 and "name a journal" in found.stderr


@pytest.mark.parametrize(("words", "kept"), [((), "2"), (("--no-text",), "")])
def test_a_scored_file_leaves_its_texts_in_the_journal_unless_told_not_to(
    simulator: Simulator, tmp_path: Path, words: tuple[str, ...], kept: str
) -> None:
    (tmp_path / "in.jsonl").write_text('{"prompt": "1 + 1?", "response": "2"}')
    given = [str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "out"), "--journal", str(tmp_path / "j")]
    endpoint = ["--base-url", simulator.url, "--model", "m", "--quiet", "--cache", "off"]
    assert CliRunner().invoke(app, ["score", *given, *endpoint, *words]).exit_code == 0
    assert [record["response"] for record in read(tmp_path / "j")] == [kept]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", "--id", "abc.²"), "has no record"),
        (("show", "--run", "friday"), "--run friday is the run of no record; there are: monday, tuesday"),
        (("stats", "--judge", "Rubrik"), "--judge Rubrik is the judge of no record; there are: Rubric "),
        (("export", "--status", "fine"), "--status fine is the status of no record; there are: "),
        (("show", "--step", "60-40"), "--step 60-40 begins after its end; write 40-60"),
        (("show", "-n", "-5"), "-5 is not in the range"),
        (("export", "-o", "out.csv"), "name a file that ends with .jsonl or .parquet"),
        (("grep", "(a"), "PATTERN='(a' is not a regular expression: missing )"),
    ],
)
def test_a_question_that_makes_no_sense_is_answered_with_what_there_is(
    journal: Path, words: tuple[str, ...], said: str
) -> None:
    done = run(words[0], journal, *words[1:])
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


def test_a_status_that_any_record_might_have_is_no_mistake(journal: Path) -> None:
    assert run("show", journal, "--status", "canary").exit_code == 0
    assert run("show", journal, "--judge", "Rub").exit_code == 0


def test_what_a_panel_asked_is_listed_with_its_verdict_and_not_counted_as_one(tmp_path: Path) -> None:
    path = tmp_path / "j"
    samples = [Sample("q", f"answer {n}", group="g") for n in range(3)]
    reply = Reply('{"reason": "so", "A": 1, "B": 2, "C": 3}')
    with engine(path, [reply]) as one:
        one.score(samples, Group("Which is best?", scale=(0, 10)))
    listed = run("show", path).stdout
    assert "3 of 3 records" in listed
    shown = run("show", path, "--id", listed.split()[0]).stdout
    assert shown.count("\nasked ") == 1 and "_GroupCall" not in shown


def test_turns_without_words_are_shown_with_what_they_call(tmp_path: Path) -> None:
    call = {"id": "1", "function": {"name": "look_up", "arguments": "{}"}}
    turns = ({"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "content": "42"})
    write(tmp_path / "j", [judged(prompt=({"role": "user"},), response=turns)])
    shown = run("show", tmp_path / "j", "--id", run("show", tmp_path / "j").stdout.split()[0]).stdout
    assert '"look_up"' in shown and "[tool] 42" in shown


def test_numbers_are_exported_as_short_as_they_were_given(tmp_path: Path) -> None:
    write(tmp_path / "j", [judged(score=1.0)])
    (record,) = map(json.loads, run("export", tmp_path / "j").stdout.splitlines())
    assert (record["unit"], record["cost"], record["queued_s"]) == (0.1, 0.001, 0.5)
