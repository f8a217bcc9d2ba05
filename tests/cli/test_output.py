"""Output: whole or not at all, never two writers, and nothing that is no file replaced by one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from complaints import about

from plaudit.cli.output import FileSink, StreamSink, open_sink, partial_path
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
    with pytest.raises(ConfigError, check=about("output")):
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


def test_what_is_done_so_far_can_be_read_while_it_runs(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "out.csv", lambda lines, out: out.writelines(lines), shows_partial=True)
    partial = tmp_path / "out.csv.partial.jsonl"
    assert not partial.exists()
    sink.write(b"one\n")
    assert partial.read_bytes() == b"one\n"
    sink.write(b"two\n")
    assert partial.read_bytes() == b"one\ntwo\n"
    sink.commit()
    assert names(tmp_path) == ["out.csv"]


def test_an_interrupted_run_leaves_what_could_be_read_meanwhile_and_nothing_else(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "out.jsonl", shows_partial=True)
    sink.write(b"one\n")
    assert sink.save_partial() == tmp_path / "out.partial.jsonl"
    assert names(tmp_path) == ["out.partial.jsonl"]


def test_a_run_that_breaks_down_leaves_no_partial_output(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "out.jsonl", shows_partial=True)
    sink.write(b"one\n")
    sink.discard()
    assert names(tmp_path) == []


def test_a_planted_link_under_the_partial_name_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"mine")
    (tmp_path / "out.partial.jsonl").symlink_to(tmp_path / "mine")
    sink = FileSink(tmp_path / "out.jsonl", shows_partial=True)
    sink.write(b"one\n")
    assert (tmp_path / "mine").read_bytes() == b"mine"
    assert not (tmp_path / "out.partial.jsonl").is_symlink()
    sink.discard()


def test_what_cannot_be_removed_under_the_partial_name_stays_and_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "out.partial.jsonl").mkdir()  # as another user's file in a folder for all
    sink = FileSink(tmp_path / "out.jsonl", shows_partial=True)
    sink.write(b"one\n")
    sink.commit()
    assert (tmp_path / "out.jsonl").read_bytes() == b"one\n"
    assert names(tmp_path) == ["out.jsonl", "out.partial.jsonl"]


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
    with pytest.raises(ConfigError, check=about("output")):
        open_sink(str(tmp_path / "results" / "out.jsonl"))


def test_a_folder_is_no_file_to_write(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, check=about("output")):
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


def test_the_temporary_file_cannot_be_a_planted_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    for name in (".out.jsonl.plaudit", ".out.jsonl.plaudit-2", f".out.jsonl.{'0' * 16}.plaudit"):
        (tmp_path / name).symlink_to(victim)
    (tmp_path / "out.partial.jsonl").symlink_to(victim)
    sink = FileSink(tmp_path / "out.jsonl")
    sink.write(b"1\n")
    sink.rewrite(bytes.upper)
    sink.save_partial()
    assert victim.read_bytes() == b"precious"
    assert (tmp_path / "out.partial.jsonl").read_bytes() == b"1\n"


def test_a_pipe_under_a_temporary_name_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".out.jsonl.plaudit")
    FileSink(tmp_path / "out.jsonl").commit()
    assert (tmp_path / "out.jsonl").is_file()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make files of other users")
def test_an_output_that_is_another_users_link_is_refused(tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "out.jsonl"
    victim.write_bytes(b"precious")
    link.symlink_to(victim)
    os.lchown(link, 65534, 65534)
    with pytest.raises(ConfigError, check=about("output")):
        FileSink(link)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make files of other users")
def test_a_temporary_file_that_another_user_planted_is_left_alone(tmp_path: Path) -> None:
    planted = tmp_path / ".out.jsonl.plaudit"
    planted.write_bytes(b"theirs")
    os.chown(planted, 65534, 65534)
    FileSink(tmp_path / "out.jsonl").commit()
    assert planted.read_bytes() == b"theirs"


def test_a_name_as_long_as_names_may_be_can_be_written(tmp_path: Path) -> None:
    out = tmp_path / ("\N{LATIN SMALL LETTER E WITH ACUTE}" * 120)
    FileSink(out).commit()
    assert out.is_file()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is none on macOS")
def test_a_full_disk_is_an_error_with_its_remedy_and_leaves_nothing(tmp_path: Path) -> None:
    sink = open_sink("/dev/full")
    with pytest.raises(ConfigError, check=about("", "No space left on device")):
        sink.write(b"1\n")
