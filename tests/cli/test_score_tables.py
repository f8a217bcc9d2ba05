"""`plaudit score` on data as it is: other formats, other field names."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result
from simulated_judge import Simulator

from plaudit.cli import app
from plaudit.cli.report import read_scored

ROWS = [{"question": f"{number} + 1?", "answer": f"{number + 1}"} for number in range(5)]


def score(simulator: Simulator, *arguments: object) -> Result:
    given = ["score", *map(str, arguments), "--base-url", simulator.url]
    return CliRunner().invoke(app, given)


@pytest.fixture
def csv_file(tmp_path: Path) -> Path:
    path = tmp_path / "in.csv"
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, ["question", "answer"])
        table.writeheader()
        table.writerows(ROWS)
    return path


def test_csv_in_csv_out_and_one_line_says_what_was_read(
    simulator: Simulator, csv_file: Path, tmp_path: Path
) -> None:
    result = score(simulator, csv_file, "-o", tmp_path / "out.csv")
    assert result.exit_code == 0, result.output
    assert result.stderr.count("prompt from 'question', response from 'answer'") == 1
    with (tmp_path / "out.csv").open(newline="") as file:
        scored = list(csv.DictReader(file))
    assert [row["question"] for row in scored] == [row["question"] for row in ROWS]
    assert all(float(row["score"]) >= 0 and row["status"] == "ok" for row in scored)


def test_the_name_of_the_output_may_ask_for_another_format(
    simulator: Simulator, csv_file: Path, tmp_path: Path
) -> None:
    for name in ("out.jsonl", "out.json", "out.parquet"):
        assert score(simulator, csv_file, "-o", tmp_path / name).exit_code == 0
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["question"] for line in json.loads((tmp_path / "out.json").read_bytes())] == [
        line["question"] for line in lines
    ]
    table = pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert [row["score"] for row in table] == [line["score"] for line in lines]


def test_a_folder_in_gives_a_folder_out(simulator: Simulator, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "set" / "part.parquet")
    result = score(simulator, tmp_path / "set", "-o", tmp_path / "scored")
    assert result.exit_code == 0, result.output
    table = pyarrow.parquet.read_table(tmp_path / "scored" / "data.parquet")
    assert table["question"].to_pylist() == [row["question"] for row in ROWS]
    assert None not in table["score"].to_pylist()


def test_the_files_of_a_folder_may_differ_in_their_columns(simulator: Simulator, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    shards = [
        [{"question": "1 + 1?", "answer": "2", "level": 1}],
        [{"level": 1.5, "answer": "4", "question": "2 + 2?", "source": "me"}],
    ]
    for number, rows in enumerate(shards):
        pyarrow.parquet.write_table(
            pyarrow.Table.from_pylist(rows), tmp_path / "set" / f"part-{number}.parquet"
        )
    result = score(simulator, tmp_path / "set", "-o", tmp_path / "scored")
    assert result.exit_code == 0, result.output
    table = pyarrow.parquet.read_table(tmp_path / "scored" / "data.parquet").to_pylist()
    assert [(row["question"], row["level"], row["source"]) for row in table] == [
        ("1 + 1?", 1.0, None),
        ("2 + 2?", 1.5, "me"),
    ]
    assert all(row["score"] is not None for row in table)


def test_columns_that_cannot_be_one_are_named_before_any_call(simulator: Simulator, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    for number, level in enumerate([1, "hard"]):
        rows = [{"question": "1 + 1?", "answer": "2", "level": level}]
        pyarrow.parquet.write_table(
            pyarrow.Table.from_pylist(rows), tmp_path / "set" / f"part-{number}.parquet"
        )
    result = score(simulator, tmp_path / "set", "-o", tmp_path / "scored")
    assert result.exit_code == 2
    assert "level" in result.stderr and "-o scored.jsonl" in result.stderr
    assert score(simulator, tmp_path / "set", "-o", tmp_path / "scored.jsonl").exit_code == 0


def test_a_parquet_file_without_rows_gives_one_without_rows(simulator: Simulator, tmp_path: Path) -> None:
    schema = pyarrow.schema([("question", pyarrow.string()), ("answer", pyarrow.string())])
    pyarrow.parquet.write_table(schema.empty_table(), tmp_path / "in.parquet")
    assert score(simulator, tmp_path / "in.parquet", "-o", tmp_path / "out.parquet").exit_code == 0
    table = pyarrow.parquet.read_table(tmp_path / "out.parquet")
    assert table.num_rows == 0 and table.column_names[:3] == ["question", "answer", "score"]


def test_half_a_character_is_written_as_its_escape(simulator: Simulator, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"prompt": "1 + 1?", "response": "2", "note": "\\ud83d"}\n')
    for name in ("out.parquet", "out.csv", "out.jsonl"):
        assert score(simulator, tmp_path / "in.jsonl", "-o", tmp_path / name).exit_code == 0
    table = pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert (table[0]["note"], table[0]["status"]) == ("\\ud83d", "ok")


def test_an_empty_name_of_a_field_is_refused(simulator: Simulator, csv_file: Path, tmp_path: Path) -> None:
    result = score(simulator, csv_file, "-o", tmp_path / "out.csv", "--response-field", "")
    assert result.exit_code == 2
    assert "--response-field is empty; give it a value, or leave it out" in result.stderr


def test_other_fields_are_named_by_options(simulator: Simulator, tmp_path: Path) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"task": "1+1?", "text": "2"}\n')
    refused = score(simulator, source, "-o", out)
    assert refused.exit_code == 2
    assert "--prompt-field" in refused.stderr
    assert "its fields are: task, text" in refused.stderr
    result = score(simulator, source, "-o", out, "--prompt-field", "task", "--response-field", "text")
    assert result.exit_code == 0, result.output


def test_bad_rows_of_parquet_are_left_out_of_the_table(simulator: Simulator, tmp_path: Path) -> None:
    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    rows = [{**row, "answer": None if number == 2 else row["answer"]} for number, row in enumerate(ROWS)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), source)
    assert score(simulator, source, "-o", out, "--skip-bad").exit_code == 0
    table = pyarrow.parquet.read_table(out)
    assert table["question"].to_pylist() == [row["question"] for row in rows if row["answer"]]


def test_fields_are_only_talked_about_where_one_is_missing(simulator: Simulator, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("{'prompt': 'a'}\n")
    refused = score(simulator, source, "-o", tmp_path / "out.jsonl")
    assert refused.exit_code == 2
    assert "--skip-bad" in refused.stderr
    assert "--prompt-field" not in refused.stderr


def test_csv_without_a_header_is_told_what_the_first_line_is_for(
    simulator: Simulator, tmp_path: Path
) -> None:
    source = tmp_path / "in.csv"
    source.write_text("What is 2+2?,4\nWhat is 2+3?,5\n")
    refused = score(simulator, source, "-o", tmp_path / "out.csv")
    assert refused.exit_code == 2
    assert "The first line of a CSV file names its columns." in refused.stderr


def test_the_summary_never_takes_the_place_of_the_input(simulator: Simulator, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(before := '{"prompt": "p", "response": "r"}\n')
    refused = score(simulator, source, "-o", tmp_path / "out.jsonl", "--summary", source)
    assert (refused.exit_code, source.read_text()) == (2, before)


def test_a_scored_data_set_can_be_read_and_reported_like_the_one_it_came_from(
    simulator: Simulator, tmp_path: Path
) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    table = pyarrow.Table.from_pylist(ROWS)
    with pyarrow.ipc.new_stream(str(folder / "data-00000-of-00001.arrow"), table.schema) as stream:
        stream.write_table(table)
    state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}
    (folder / "state.json").write_text(json.dumps(state))
    result = score(simulator, folder, "-o", tmp_path / "scored")
    assert result.exit_code == 0, result.output
    found = read_scored(str(tmp_path / "scored"))
    assert (found.lines, len(found.digest.scores)) == (5, 5)
