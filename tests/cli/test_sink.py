"""Output: whole or not at all, never two writers, and nothing that is no file replaced by one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plaudit.cli.sink import FileSink, StreamSink, open_sink, partial_path
from plaudit.errors import ConfigError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_nothing_is_seen_before_the_commit_and_everything_after(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_bytes(b"old\n")
    sink = FileSink(out)
    sink.write(b"new\n")
    assert out.read_bytes() == b"old\n"
    sink.commit()
    assert out.read_bytes() == b"new\n"
    assert names(tmp_path) == ["out.jsonl"]


def test_what_a_killed_run_left_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / ".out.jsonl.plaudit").write_bytes(b"half a li")
    sink = FileSink(tmp_path / "out.jsonl")
    sink.write(b"whole\n")
    sink.commit()
    assert (tmp_path / "out.jsonl").read_bytes() == b"whole\n"
    assert names(tmp_path) == ["out.jsonl"]


def test_two_runs_cannot_write_one_file(tmp_path: Path) -> None:
    first = FileSink(tmp_path / "out.jsonl")
    with pytest.raises(ConfigError, match="another run is writing"):
        FileSink(tmp_path / "out.jsonl")
    first.discard()
    FileSink(tmp_path / "out.jsonl").discard()
    assert names(tmp_path) == []


def test_a_partial_output_lies_beside_and_goes_when_the_whole_is_there(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    sink = FileSink(out)
    sink.write(b"1\n")
    assert sink.save_partial() == tmp_path / "out.partial.jsonl"
    assert names(tmp_path) == ["out.partial.jsonl"]
    FileSink(out).commit()
    assert names(tmp_path) == ["out.jsonl"]


def test_a_partial_output_without_lines_is_not_kept(tmp_path: Path) -> None:
    assert FileSink(tmp_path / "out.jsonl").save_partial() is None
    assert names(tmp_path) == []


def test_every_written_line_can_be_changed_before_the_commit(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "out.jsonl")
    sink.write(b"a\nb\n")
    sink.rewrite(bytes.upper)
    sink.commit()
    assert (tmp_path / "out.jsonl").read_bytes() == b"A\nB\n"
    assert names(tmp_path) == ["out.jsonl"]


def test_a_link_stays_a_link_and_a_private_file_private(tmp_path: Path) -> None:
    target = tmp_path / "target.jsonl"
    target.write_bytes(b"")
    target.chmod(0o600)
    link = tmp_path / "link.jsonl"
    link.symlink_to(target)
    sink = FileSink(link)
    sink.write(b"1\n")
    sink.rewrite(bytes.upper)
    sink.commit()
    assert link.is_symlink()
    assert target.read_bytes() == b"1\n"
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no folder .*results; make it first"):
        FileSink(tmp_path / "results" / "out.jsonl")


def test_a_folder_is_no_file_to_write(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is a folder; name the file to write, like .*scored\.jsonl"):
        open_sink(str(tmp_path))


def test_a_device_or_a_pipe_is_written_and_never_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    sink = open_sink(str(pipe))
    assert isinstance(sink, StreamSink)
    sink.write(b"1\n")
    sink.commit()
    assert os.read(reader, 100) == b"1\n"
    os.close(reader)
    assert pipe.is_fifo()


def test_partial_names_follow_the_output() -> None:
    assert partial_path(Path("/x/out.jsonl")) == Path("/x/out.partial.jsonl")
    assert partial_path(Path("/x/out.txt")) == Path("/x/out.txt.partial.jsonl")
