"""Tables are read as JSON lines, and come back as tables with the verdicts beside their columns."""

from __future__ import annotations

import datetime
import gzip
import io
import json
import re
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from complaints import about

from plaudit.errors import ConfigError
from plaudit.setup.json_lines import BadLine
from plaudit.setup.tables import FOREIGN, UNWRITTEN, format_of, read_table, writer

VERDICT = {"score": 7.0, "status": "ok", "reason": "Right.", "judge": {"model": "m"}}
ROWS = [{"question": "2+2?", "answer": "4"}, {"question": 'a, "b"\nc?', "answer": "d"}]


def rows_of(path: Path) -> list[Any]:
    found = read_table(str(path), format_of(str(path)))
    return [one if isinstance(one, BadLine) else json.loads(one[1]) for one in found]


def scored(path: Path, source: Path, rows: list[dict[str, Any]], skipped: set[int] | None = None) -> None:
    convert = writer(str(path), str(source), format_of(str(source)), skipped or set())
    assert convert is not None
    lines = io.BytesIO(b"".join(json.dumps(row | VERDICT).encode() + b"\n" for row in rows))
    with path.open("wb") as out:
        convert(lines, out)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["in.json", "in.jsonl", "in.json.gz"])
def test_an_array_is_known_by_its_bracket(tmp_path: Path, name: str, indent: int | None) -> None:
    content = json.dumps(ROWS, indent=indent).encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert format_of(str(tmp_path / name)) == "json"
    assert rows_of(tmp_path / name) == ROWS


def test_lines_named_json_are_lines(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('{"a": 1}\n{"a": 2}\n')
    assert format_of(str(tmp_path / "in.json")) == "jsonl"


def test_an_array_cut_short_is_named(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('[{"a": 1}, {"a"')
    with pytest.raises(ConfigError, check=about("", "in.json")):
        rows_of(tmp_path / "in.json")


def test_one_object_over_several_lines_is_one_row(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text(json.dumps(ROWS[0], indent=2))
    assert rows_of(tmp_path / "in.json") == ROWS[:1]


@pytest.mark.parametrize(
    ("content", "remedy"),
    [
        (json.dumps({"data": ROWS}, indent=2), "jq -c '.data[]'"),
        (json.dumps(ROWS[0], indent=2) * 2, "jq -c ."),
    ],
)
def test_rows_that_lie_deeper_are_said_to_with_how_to_get_them_out(
    tmp_path: Path, content: str, remedy: str
) -> None:
    (tmp_path / "in.json").write_text(content)
    with pytest.raises(ConfigError, check=about("", remedy)):
        rows_of(tmp_path / "in.json")


@pytest.mark.parametrize("start", FOREIGN)
def test_a_file_of_another_kind_is_named_by_what_it_is(tmp_path: Path, start: bytes) -> None:
    (tmp_path / "in.jsonl").write_bytes(start + bytes(100))
    with pytest.raises(ConfigError, check=about("", FOREIGN[start])):
        format_of(str(tmp_path / "in.jsonl"))


def test_parquet_is_known_by_its_content(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "in.bin")
    assert rows_of(tmp_path / "in.bin") == ROWS


@pytest.mark.parametrize("ending", [*UNWRITTEN, ".parquet.gz"])
def test_a_format_that_is_not_written_is_refused(ending: str) -> None:
    with pytest.raises(ConfigError) as refused:
        writer(f"out{ending}", "in.jsonl", "jsonl", set())
    assert refused.value.setting == "output"


@pytest.mark.parametrize("name", ["out.jsonl.gz", "out.csv.gz", "out.json.gz"])
def test_a_name_with_gz_is_compressed_and_can_be_read_again(tmp_path: Path, name: str) -> None:
    (tmp_path / "in.jsonl").write_text("")
    scored(tmp_path / name, tmp_path / "in.jsonl", ROWS)
    assert (tmp_path / name).read_bytes()[:2] == b"\x1f\x8b"
    if name != "out.jsonl.gz":
        assert [row["question"] for row in rows_of(tmp_path / name)] == [row["question"] for row in ROWS]


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("prompt,prompt,response\na,b,c\n")
    with pytest.raises(ConfigError, check=about("", "'prompt'")):
        rows_of(tmp_path / "in.csv")


@pytest.mark.parametrize("content", ["sep=;\nprompt;response\na;b\n", "prompt, response\na, b\n"])
def test_csv_as_spreadsheets_and_people_write_it(tmp_path: Path, content: str) -> None:
    (tmp_path / "in.csv").write_text(content)
    assert rows_of(tmp_path / "in.csv") == [{"prompt": "a", "response": "b"}]


@pytest.mark.parametrize(("name", "delimiter"), [("in.csv", ","), ("in.csv", ";"), ("in.tsv", "\t")])
def test_csv_is_read_and_comes_back_with_its_delimiter(tmp_path: Path, name: str, delimiter: str) -> None:
    source, out = tmp_path / name, tmp_path / f"out.{name}"
    source.write_text(f'question{delimiter}answer\n2+2?{delimiter}4\n"a, ""b""\nc?"{delimiter}d\n')
    assert rows_of(source) == ROWS
    scored(out, source, ROWS)
    back = rows_of(out)
    assert [{name: row[name] for name in ("question", "answer")} for row in back] == ROWS
    assert [row["score"] for row in back] == ["7.0", "7.0"]
    assert json.loads(back[0]["judge"]) == {"model": "m"}


def test_a_row_with_too_many_cells_is_a_bad_line(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("question,answer\n2+2?,4\nwhy, then?,so\n\n3+3?,6\n")
    good, bad, other = rows_of(tmp_path / "in.csv")
    assert (good["answer"], other["answer"]) == ("4", "6")
    assert isinstance(bad, BadLine)
    assert (bad.number, "3 cells where the header has 2" in bad.reason) == (3, True)


def test_csv_in_another_encoding_is_named(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes("question,answer\nWo?,Köln\n".encode("latin-1"))
    with pytest.raises(ConfigError, check=about("", "in.csv", "UTF-8")):
        rows_of(tmp_path / "in.csv")


def test_parquet_keeps_its_types_and_gains_columns(tmp_path: Path) -> None:
    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    day = datetime.datetime(2025, 1, 2)
    rows = [{"question": str(n), "answer": "a", "day": day, "image": b"\xff", "score": 1} for n in range(600)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), source)
    read = rows_of(source)
    assert len(read) == 600
    assert "image" not in read[0]
    scored(out, source, [row for row in read if row["question"] != "1"], skipped={2})
    back = pyarrow.parquet.read_table(out).to_pylist()
    assert len(back) == 599
    assert [row["question"] for row in back[:2]] == ["0", "2"]
    assert (back[0]["day"], back[0]["image"], back[0]["score"]) == (day, b"\xff", 7.0)


def test_lines_become_parquet_even_where_a_field_has_two_types(tmp_path: Path) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.parquet"
    source.touch()
    scored(out, source, [{"id": 1}, {"id": "two"}])
    assert pyarrow.parquet.read_table(out)["id"].to_pylist() == ["1", '"two"']


def save_to_disk(folder: Path, rows: list[dict[str, str]]) -> None:
    """A folder as `Dataset.save_to_disk` writes it."""
    folder.mkdir(parents=True)
    table = pyarrow.Table.from_pylist(rows)
    with pyarrow.ipc.new_stream(str(folder / "data-00000-of-00001.arrow"), table.schema) as stream:
        stream.write_table(table)
    state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}
    (folder / "state.json").write_text(json.dumps(state))


def test_a_saved_data_set_is_read_by_its_folder(tmp_path: Path) -> None:
    save_to_disk(tmp_path / "set", ROWS)
    assert rows_of(tmp_path / "set") == ROWS


def test_of_several_splits_one_has_to_be_named(tmp_path: Path) -> None:
    save_to_disk(tmp_path / "set" / "train", ROWS)
    (tmp_path / "set" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(ConfigError, check=about("", "train, test", "set/train")):
        rows_of(tmp_path / "set")
    assert rows_of(tmp_path / "set" / "train") == ROWS


def test_a_shard_that_is_gone_is_named_and_not_the_folder(tmp_path: Path) -> None:
    save_to_disk(tmp_path / "set", ROWS)
    shard = tmp_path / "set" / "data-00000-of-00001.arrow"
    shard.unlink()
    with pytest.raises(ConfigError, match=re.escape(f"{shard} cannot be read: ")):
        rows_of(tmp_path / "set")


@pytest.mark.parametrize("name", ["state.json", "dataset_dict.json"])
@pytest.mark.parametrize("content", ['{"_data_fi', "[]", "{}", "3", '{"_data_files": [], "splits": []}'])
def test_a_data_sets_description_that_is_damaged_is_named(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ConfigError, match=re.escape(f"{tmp_path / name} is damaged")):
        rows_of(tmp_path)


def test_a_folder_of_parquet_files_is_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for number, row in enumerate(ROWS):
        table = pyarrow.Table.from_pylist([row])
        pyarrow.parquet.write_table(table, tmp_path / "data" / f"train-{number:05}-of-00002.parquet")
    assert rows_of(tmp_path) == ROWS
    pyarrow.parquet.write_table(table, tmp_path / "data" / "test-00000-of-00001.parquet")
    with pytest.raises(ConfigError, check=about("", "test, train")):
        rows_of(tmp_path)


def test_what_is_no_parquet_is_named(tmp_path: Path) -> None:
    (tmp_path / "in.parquet").write_text("question,answer")
    with pytest.raises(ConfigError, check=about("", "in.parquet")):
        rows_of(tmp_path / "in.parquet")
