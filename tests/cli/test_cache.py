"""`plaudit cache`: what it prints, what it refuses, what it leaves behind."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import click
import pytest
from cache_contract import digest
from click.testing import CliRunner, Result

from plaudit.caches import SqliteCache
from plaudit.cli import app
from plaudit.cli.cache import seconds, size
from plaudit.scheduling.record import encode
from plaudit.types import Status, Usage, Verdict

DAY = 86400.0


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test may touch the user's own cache, or be moved by their settings."""
    monkeypatch.setenv("PLAUDIT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PLAUDIT_CACHE", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def file(home: Path) -> Path:
    """Three verdicts, at days 0, 10 and 20 of 1970; the last is no JSON."""
    path = home / "verdicts.sqlite"

    async def fill() -> None:
        for number, value in enumerate([b'{"score":7}', b"[1, 2]", b"\xff"]):
            cache = SqliteCache(path, clock=[10 * DAY * number].pop)
            await cache.put_many([(digest(number), value)])
            await cache.close()

    asyncio.run(fill())
    return path


def plaudit_cache(*arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(app, ["cache", *arguments], input=answer, catch_exceptions=False)


def entries(path: Path) -> int:
    connection = sqlite3.connect(path)
    count: int = connection.execute("SELECT count(*) FROM verdicts").fetchone()[0]
    connection.close()
    return count


def test_stats_shows_the_default_file(file: Path) -> None:
    result = plaudit_cache("stats")
    assert result.exit_code == 0
    assert str(file) in result.stdout
    assert "verdicts" in result.stdout
    assert "1970-01-21" in result.stdout


def test_stats_knows_what_was_paid(home: Path) -> None:
    async def fill() -> None:
        cache = SqliteCache(home / "verdicts.sqlite")
        paid = Verdict(7.0, Status.OK, usage=Usage(prompt_tokens=100, completion_tokens=20, cost=0.25))
        free = Verdict(7.0, Status.OK, usage=Usage(prompt_tokens=1, completion_tokens=2))
        await cache.put_many([(digest(n), encode(one)) for n, one in enumerate([paid, paid, free])])
        await cache.close()

    asyncio.run(fill())
    found = json.loads(plaudit_cache("stats", "--json").stdout)
    assert (found["prompt_tokens"], found["completion_tokens"], found["paid"]) == (201, 42, 0.5)
    assert "$0.5000" in plaudit_cache("stats").stdout


def test_stats_for_scripts_has_stable_keys(file: Path) -> None:
    found = json.loads(plaudit_cache("stats", "--json", "--cache", str(file)).stdout)
    on_disk = found.pop("file_bytes")
    assert found == {
        "path": str(file),
        "entries": 3,
        "bytes": 3 * 64 + 11 + 6 + 1,
        "oldest": "1970-01-01T00:00:00+00:00",
        "newest": "1970-01-21T00:00:00+00:00",
        "schema_version": 1,
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "paid": 0.0,
    }
    assert on_disk >= 4096


def test_stats_of_an_empty_file_has_no_times(file: Path) -> None:
    plaudit_cache("clear", "--yes")
    found = json.loads(plaudit_cache("stats", "--json").stdout)
    assert (found["entries"], found["oldest"], found["newest"]) == (0, None, None)
    assert plaudit_cache("stats").exit_code == 0


@pytest.mark.parametrize(
    "command", [["stats"], ["prune", "--max-entries", "1"], ["export"], ["clear", "--yes"]]
)
def test_a_missing_file_is_named_and_not_made(command: list[str], home: Path) -> None:
    result = plaudit_cache(*command)
    assert result.exit_code == 2
    assert f"no cache at {home / 'verdicts.sqlite'}" in result.stderr
    assert not home.exists()


def test_the_file_of_the_settings_is_the_one_looked_after(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAUDIT_CACHE", str(tmp_path / "elsewhere.sqlite"))
    assert "elsewhere.sqlite" in plaudit_cache("stats").stderr
    monkeypatch.setenv("PLAUDIT_CACHE", "off")
    result = plaudit_cache("stats")
    assert result.exit_code == 2
    assert "the cache is off" in result.stderr


def test_prune_drops_what_is_old(file: Path) -> None:
    result = plaudit_cache("prune", "--older-than", "30d")
    assert "dropped 3 verdicts" in result.stdout
    assert entries(file) == 0


def test_prune_keeps_the_newest(file: Path) -> None:
    assert "dropped 1 verdicts" in plaudit_cache("prune", "--max-entries", "2").stdout
    assert "dropped 1 verdicts" in plaudit_cache("prune", "--max-size", "0.1kB").stdout
    assert [line["key"] for line in exported()] == [digest(2).hex()]


def test_prune_by_nothing_is_refused(file: Path) -> None:
    result = plaudit_cache("prune")
    assert result.exit_code == 2
    assert "--older-than" in result.stderr
    assert entries(file) == 3


def test_prune_explains_a_bad_size(file: Path) -> None:
    result = plaudit_cache("prune", "--max-size", "plenty")
    assert result.exit_code == 2
    assert "'plenty' is not a size" in result.stderr


def exported() -> list[dict[str, object]]:
    return [json.loads(line) for line in plaudit_cache("export").stdout.splitlines()]


def test_export_writes_json_where_it_is_json(file: Path) -> None:
    lines = {str(line["key"]): line for line in exported()}
    assert lines[digest(0).hex()] == {
        "key": digest(0).hex(),
        "created": "1970-01-01T00:00:00.000+00:00",
        "value": {"score": 7},
    }
    assert lines[digest(1).hex()]["value"] == [1, 2]
    assert lines[digest(2).hex()]["value_base64"] == "/w=="


def test_export_to_a_file_leaves_nothing_else(file: Path, tmp_path: Path) -> None:
    result = plaudit_cache("export", "-o", str(tmp_path / "out.jsonl"))
    assert "wrote 3 verdicts" in result.stdout
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 3
    assert {path.name for path in tmp_path.iterdir()} == {"home", "out.jsonl"}


def test_export_to_an_impossible_file_is_refused(file: Path, tmp_path: Path) -> None:
    result = plaudit_cache("export", "-o", str(tmp_path / "missing" / "out.jsonl"))
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr


def test_clear_empties_the_file_and_shrinks_it(file: Path) -> None:
    assert "dropped 3 verdicts" in plaudit_cache("clear", "--yes").stdout
    assert entries(file) == 0


def test_clear_without_a_terminal_wants_yes(file: Path) -> None:
    result = plaudit_cache("clear", answer="y\n")
    assert result.exit_code == 2
    assert "add --yes" in result.stderr
    assert entries(file) == 3


@pytest.mark.parametrize(("answer", "count"), [(b"n\n", 3), (b"y\n", 0)])
def test_clear_on_a_terminal_asks(file: Path, answer: bytes, count: int) -> None:
    pty = pytest.importorskip("pty")
    mine, theirs = pty.openpty()
    os.write(mine, answer)
    command = [sys.executable, "-c", "from plaudit.cli import app; app()", "cache", "clear"]
    done = subprocess.run(command, stdin=theirs, capture_output=True)
    os.close(mine)
    os.close(theirs)
    assert b"Drop all verdicts" in done.stderr
    assert done.returncode == (1 if count else 0)
    assert entries(file) == count


def test_a_damaged_file_is_set_aside_with_a_warning(file: Path) -> None:
    file.write_bytes(b"rubbish" * 1000)
    result = plaudit_cache("stats")
    assert result.exit_code == 0
    assert "set aside as verdicts.sqlite.damaged-1" in result.stderr


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "theirs.db")
    connection.execute("CREATE TABLE precious (x)")
    connection.close()
    result = plaudit_cache("clear", "--yes", "--cache", str(tmp_path / "theirs.db"))
    assert result.exit_code == 2
    assert "another program's database" in result.stderr


@pytest.mark.parametrize("command", ["stats", "prune", "export", "clear"])
def test_each_has_help_with_an_example(command: str) -> None:
    result = plaudit_cache(command, "--help")
    assert result.exit_code == 0
    assert f"plaudit cache {command}" in result.stdout


@pytest.mark.parametrize(
    ("text", "value"), [("90s", 90), ("45m", 2700), ("12H", 43200), ("30d", 30 * DAY), ("1.5 w", 10.5 * DAY)]
)
def test_durations_are_read(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("500", 500), ("500MB", 5 * 10**8), ("1.5g", 15 * 10**8), ("2 GiB", 2**31)]
)
def test_sizes_are_read(text: str, value: int) -> None:
    assert size(text) == value


@pytest.mark.parametrize("text", ["", "d", "30", "-3d", "30 moons", "1e3d"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="write 90s"):
        seconds(text)


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "2iB", "1PB", "much"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="write 500MB"):
        size(text)
