"""Files: no planted link is followed, nothing is seen half written, and what is ours is nobody else's."""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from complaints import about

from plaudit.caches import SqliteCache, default_path
from plaudit.config import home
from plaudit.errors import ConfigError, JournalError, PlauditError
from plaudit.files import close_to_others, create_beside, decoded, make_private_folder, read_text, write_whole
from plaudit.judges import Jury, Rubric
from plaudit.judges.file import load_judge
from plaudit.settings import Settings, load
from plaudit.setup.engines import check_cache, check_journal


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def put(path: Path) -> list[Path]:
    """Store a verdict; the files there are while the cache is open."""

    async def main() -> list[Path]:
        cache = SqliteCache(path)
        await cache.put_many([(bytes(32), b"{}")])
        found = sorted(path.parent.glob(f"{path.name}*"))
        modes = {mode(file) for file in found}
        await cache.close()
        assert modes == {0o600}
        return found

    return asyncio.run(main())


def test_a_temporary_name_cannot_be_foretold_and_an_existing_one_is_never_opened(tmp_path: Path) -> None:
    first, one = create_beside(tmp_path / "out")
    second, other = create_beside(tmp_path / "out")
    first.close()
    second.close()
    assert one != other
    assert {one.parent, other.parent} == {tmp_path}


def test_a_planted_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim, target = tmp_path / "victim", tmp_path / "report.html"
    victim.write_text("precious")
    target.symlink_to(victim)
    write_whole(target, b"report")
    assert victim.read_text() == "precious"
    assert target.read_bytes() == b"report"
    assert not target.is_symlink()


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    with pytest.raises(OSError, match="folder"):
        write_whole(target, b"new")
    assert list(tmp_path.iterdir()) == [target]


def test_files_that_users_name_keep_their_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "report.html", b"x")
    finally:
        os.umask(before)
    assert mode(tmp_path / "report.html") == 0o640


def test_verdict_files_are_private_in_a_private_home() -> None:
    home().rmdir()
    found = put(default_path())
    assert {file.name for file in found} >= {"verdicts.sqlite", "verdicts.sqlite-wal", "verdicts.sqlite-shm"}
    assert mode(home()) == 0o700


def test_modes_that_an_older_run_has_left_are_corrected() -> None:
    put(default_path())
    for path in (default_path(), home()):
        path.chmod(0o755)
    put(default_path())
    assert mode(default_path()) == 0o600
    assert mode(home()) == 0o700


def test_a_home_that_holds_other_things_too_is_left_as_it_is() -> None:
    home().chmod(0o755)
    (home() / "thesis.tex").touch()
    make_private_folder(home())
    assert mode(home()) == 0o755


def test_a_verdict_file_elsewhere_is_private_unless_a_group_may_write_it(tmp_path: Path) -> None:
    put(tmp_path / "own.sqlite")
    shared = tmp_path / "shared.sqlite"
    shared.touch()
    shared.chmod(0o666)
    close_to_others(shared)
    assert mode(shared) == 0o660


@pytest.mark.parametrize(("setting", "check"), [("cache", check_cache), ("journal", check_journal)])
def test_a_file_or_a_device_that_is_not_ours_keeps_its_mode(
    tmp_path: Path, setting: str, check: Callable[[Settings], None]
) -> None:
    notes, device = tmp_path / "notes.txt", Path("/dev/null")
    notes.write_text("not ours\n")
    notes.chmod(0o644)
    for path in (notes, device):
        before = mode(path)
        with pytest.raises(PlauditError, match="not a"):
            check(load({setting: str(path)}))
        assert mode(path) == before
    assert notes.read_text() == "not ours\n"


def test_a_journal_that_could_be_written_is_not_made_before_there_is_something_to_write(
    tmp_path: Path,
) -> None:
    check_journal(load({"journal": str(tmp_path / "new" / "run.journal")}))
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_journal_in_a_folder_without_permission_is_refused_at_once(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(JournalError, match="cannot be written"):
        check_journal(load({"journal": str(tmp_path / "new" / "run.journal")}))


@pytest.mark.parametrize("name", ["notes.txt/run.journal", "x" * 300])
def test_a_journal_that_can_never_be_a_file_is_refused_at_once(tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(JournalError, match="cannot be written"):
        check_journal(load({"journal": str(tmp_path / name)}))


def test_a_journal_that_is_a_link_to_nothing_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "j").symlink_to(tmp_path / "gone")
    with pytest.raises(JournalError, match="is a link to a file that does not exist"):
        check_journal(Settings(journal=str(tmp_path / "j")))


def test_a_file_that_a_setting_names_is_read_or_the_setting_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rubric.txt"
    path.write_bytes(b"\xef\xbb\xbfIs it right?")
    assert read_text(path, setting="rubric") == "Is it right?"
    path.write_bytes(b"\xff\xfe")
    for wrong in (path, tmp_path, tmp_path / "gone.txt"):
        with pytest.raises(ConfigError, check=about("rubric", str(wrong))):
            read_text(wrong, setting="rubric")


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.toml", "rpm = 60"), ("a.json", '{"rpm": 60}'), ("a.YML", "rpm: 60"), ("a", "rpm = 60")],
)
def test_a_file_is_decoded_by_its_name(name: str, text: str) -> None:
    assert decoded(text, name, setting="judge") == {"rpm": 60}
    with pytest.raises(ConfigError, check=about("judge", name)):
        decoded("[", name, setting="judge")


def test_a_file_without_an_ending_is_what_the_caller_expects() -> None:
    assert decoded("rpm: 60", "config", setting="verl", default="YAML") == {"rpm": 60}


def test_a_name_that_this_locale_cannot_decode_has_temporary_files_all_the_same(tmp_path: Path) -> None:
    file, temporary = create_beside(tmp_path / "\udcc3\udcb6.jsonl")
    file.close()
    assert temporary.name.startswith("..jsonl.")


@pytest.mark.parametrize("part", ["anchors", "criteria"])
def test_a_short_file_that_stands_for_billions_of_values_is_refused(part: str, tmp_path: Path) -> None:
    lines = ["kind: rubric", f"{part}:", "  a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    path = tmp_path / "judge.yaml"
    path.write_text("\n".join(lines))
    with pytest.raises(ConfigError, check=about("judge", "more than 100,000 values")):
        load_judge(path)


def test_values_that_repeat_others_a_few_times_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "judge.yaml"
    members = "a: {criteria: Right?, scale: &s [0, 5]}\n  b: {criteria: Brief?, scale: *s}\n"
    path.write_text(f"kind: jury\nmembers:\n  {members}")
    assert load_judge(path) == Jury({"a": Rubric("Right?", (0, 5)), "b": Rubric("Brief?", (0, 5))})


@pytest.mark.parametrize("depth", [100, 300, 600, 1000, 5000])
def test_lists_in_lists_to_any_depth_are_an_error_that_names_the_file(depth: int, tmp_path: Path) -> None:
    path = tmp_path / "judge.yaml"
    path.write_text(f"kind: rubric\ncriteria: {'[' * depth}{']' * depth}")
    with pytest.raises(ConfigError, match=re.escape(str(path))):
        load_judge(path)


def test_a_file_of_gigabytes_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "rubric.md"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ConfigError, check=about("rubric", str(path), "more than 16 MiB")):
        read_text(path, setting="rubric")
