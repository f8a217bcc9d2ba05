"""Input lines: numbers, blank lines, compressed files, and pipes that keep us waiting."""

from __future__ import annotations

import gzip
import json
import os
import time
from pathlib import Path
from typing import BinaryIO, cast

import pytest
from complaints import about
from hypothesis import given
from hypothesis import strategies as st

from plaudit.cli.input import (
    BLOCK,
    KEPT_BYTES,
    LONGEST_LINE,
    LineSource,
    RowSource,
    can_be_read_twice,
    check_input,
    every_line,
    open_source,
    rows_in,
)
from plaudit.errors import ConfigError
from plaudit.judges.rubric import Rubric
from plaudit.setup.json_lines import BadLine, Line


class Blocks:
    """A file that gives its content in blocks of a chosen size."""

    def __init__(self, content: bytes, size: int) -> None:
        self._content = content
        self._size = size

    def read(self, _: int) -> bytes:
        block, self._content = self._content[: self._size], self._content[self._size :]
        return block


def lines_of(content: bytes, size: int = 1 << 18) -> list[tuple[int, bytes]]:
    return taken_from(LineSource(cast(BinaryIO, Blocks(content, size)), "x", can_stall=False))


def taken_from(source: LineSource | RowSource) -> list[tuple[int, bytes]]:
    return [line for line in every_line(source) if not isinstance(line, Line | BadLine)]


class Endless:
    """A file without a line break, as a crash or a device leaves it."""

    def __init__(self) -> None:
        self.read_so_far = 0

    def read(self, size: int) -> bytes:
        self.read_so_far += size
        return _ZEROS


_ZEROS = bytes(BLOCK)


def test_a_line_without_end_is_an_error_and_not_read_for_ever() -> None:
    file = Endless()
    source = LineSource(cast(BinaryIO, file), "x.jsonl", can_stall=False)
    with pytest.raises(ConfigError, match="line 1 is longer than 256 MiB"):
        source.take(lines=1, size=1, wait=0.0)
    assert file.read_so_far <= LONGEST_LINE + BLOCK


@given(
    st.lists(st.binary(max_size=12).map(lambda part: part.translate(None, b"\n\r\t \xef"))),
    st.integers(1, 40),
    st.booleans(),
)
def test_lines_are_the_same_however_the_blocks_fall(parts: list[bytes], size: int, ends: bool) -> None:
    content = b"\n".join(parts) + (b"\n" if ends else b"")
    assert lines_of(content, size) == [(number, part) for number, part in enumerate(parts, start=1) if part]


def test_blank_lines_and_line_ends_of_windows_and_a_byte_order_mark_are_no_content() -> None:
    assert lines_of(b"\xef\xbb\xbf{1}\r\n\r\n  \n{2}") == [(1, b"{1}"), (4, b"{2}")]


def test_a_batch_is_limited_by_lines_and_by_bytes() -> None:
    content = b"\n".join([b"x" * 10] * 10)
    source = LineSource(cast(BinaryIO, Blocks(content, 1 << 18)), "x", can_stall=False)
    assert len(source.take(lines=3, size=1000, wait=0.0)) == 3
    assert len(source.take(lines=100, size=25, wait=0.0)) == 3
    assert len(source.take(lines=100, size=1, wait=0.0)) == 1
    assert not source.exhausted
    assert len(source.take(lines=100, size=1000, wait=0.0)) == 3
    assert source.exhausted


def test_an_empty_input_is_exhausted_at_once() -> None:
    source = LineSource(cast(BinaryIO, Blocks(b"", 1)), "x", can_stall=False)
    assert source.take(lines=1, size=1, wait=0.0) == []
    assert source.exhausted


def test_a_pipe_gives_what_is_there_and_does_not_wait_for_more() -> None:
    read_end, write_end = os.pipe()
    source = LineSource(cast(BinaryIO, os.fdopen(read_end, "rb", buffering=0)), "pipe", can_stall=True)
    started = time.monotonic()
    assert source.take(lines=10, size=1000, wait=0.01) == []
    os.write(write_end, b"one\ntwo\nthr")
    assert source.take(lines=10, size=1000, wait=60.0) == [(1, b"one"), (2, b"two")]
    assert source.take(lines=10, size=1000, wait=0.0) == []
    assert not source.exhausted
    os.write(write_end, b"ee")
    os.close(write_end)
    assert source.take(lines=10, size=1000, wait=60.0) == [(3, b"three")]
    assert source.exhausted
    assert time.monotonic() - started < 60.0
    source.close()


@pytest.mark.parametrize("name", ["in.jsonl.gz", "in.jsonl"])
@pytest.mark.parametrize("is_packed", [True, False])
def test_a_compressed_file_is_read_whatever_its_name(tmp_path: Path, name: str, is_packed: bool) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"a\nb\n") if is_packed else b"a\nb\n")
    source = open_source(str(path))
    assert [line for _, line in taken_from(source)] == [b"a", b"b"]
    source.close()


def test_a_damaged_compressed_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl.gz"
    path.write_bytes(gzip.compress(b"a\nb\n" * 1000)[:-12])
    source = open_source(str(path))
    with pytest.raises(ConfigError, check=about("", "in.jsonl.gz")):
        list(every_line(source))
    source.close()


def test_a_missing_file_is_named_with_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").touch()
    with pytest.raises(ConfigError, check=about("", "trian.jsonl", "train.jsonl")):
        open_source(str(tmp_path / "trian.jsonl"))
    with pytest.raises(ConfigError, check=about("", "nowhere/x")):
        open_source(str(tmp_path / "nowhere" / "x"))


def test_a_folder_without_data_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, check=about("", str(tmp_path), "Parquet")):
        open_source(str(tmp_path))


def test_only_a_plain_file_can_be_checked_beforehand(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.touch()
    os.mkfifo(tmp_path / "pipe")
    assert can_be_read_twice(str(path))
    assert not can_be_read_twice("-")
    assert not can_be_read_twice(str(tmp_path / "pipe"))


def sample_line(number: int, *, size: int = 1) -> str:
    return json.dumps({"prompt": f"{number}?", "response": "r", "carried": "x" * size})


def test_a_small_file_is_parsed_once_and_its_lines_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text("\n".join([sample_line(1), "nonsense", sample_line(3)]))
    found = check_input(str(path), Rubric("Is it right?"))
    assert (found.total, found.bad.count) == (2, 1)
    assert found.kept is not None
    taken = [found.kept.take(lines=1, size=BLOCK, wait=0.0), found.kept.take(lines=9, size=1, wait=0.0)]
    assert [[line.number for line in some if isinstance(line, Line)] for some in taken] == [[1], [3]]
    assert found.kept.exhausted


def test_a_large_file_is_checked_and_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text("\n".join(sample_line(number, size=KEPT_BYTES // 4) for number in range(5)))
    found = check_input(str(path), Rubric("Is it right?"))
    assert (found.total, found.kept) == (5, None)


@pytest.mark.parametrize("name", ["deep.json", "deep.jsonl"])
def test_rows_that_are_nested_too_deeply_are_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("[" * 100_000)
    with pytest.raises(ConfigError, check=about("", "deep.json")):
        list(rows_in(str(path)))
