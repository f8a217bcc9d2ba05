"""Which plaudit.toml counts, and what is said of the others and of where one sends samples."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from complaints import about

from plaudit.errors import ConfigError
from plaudit.settings import load
from plaudit.settings_file import announce, find_file, read_file

NOBODY = 65534
only_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can make files of other users")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a plaudit.toml, in no home."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "repository"
    (folder / ".git").mkdir(parents=True)
    (folder / "plaudit.toml").write_text('model = "m"')
    return folder


def test_the_file_is_found_in_a_folder_above_but_not_beyond_the_repository(tmp_path: Path) -> None:
    inner = tmp_path / "repository" / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir()
    (tmp_path / "plaudit.toml").write_text('model = "outside"')
    assert find_file(inner) is None
    found = tmp_path / "repository" / "plaudit.toml"
    found.write_text('model = "inside"')
    assert find_file(inner) == found.resolve()


def test_a_file_above_the_project_is_said_once_with_the_remedy(
    tmp_path: Path, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (project / "plaudit.toml").rename(tmp_path / "plaudit.toml")
    assert find_file(project) is None
    assert find_file(project) is None
    [record] = caplog.records
    assert "is ignored: it is outside the project" in record.getMessage()
    assert f"set PLAUDIT_CONFIG={tmp_path / 'plaudit.toml'}" in record.getMessage()


def test_without_a_repository_the_home_is_the_project_and_elsewhere_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("home", "elsewhere"):
        (tmp_path / name / "work").mkdir(parents=True)
        (tmp_path / name / "plaudit.toml").write_text("")
    assert find_file(tmp_path / "home" / "work") == tmp_path / "home" / "plaudit.toml"
    assert find_file(tmp_path / "elsewhere" / "work") is None
    assert find_file(tmp_path / "elsewhere") == tmp_path / "elsewhere" / "plaudit.toml"


def test_a_repository_above_the_home_makes_no_project_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / ".git").mkdir()
    (tmp_path / "plaudit.toml").write_text("")
    (tmp_path / "home" / "work").mkdir(parents=True)
    assert find_file(tmp_path / "home" / "work") is None


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_file_where_every_user_can_write_is_ignored_and_said(
    project: Path, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    project.chmod(mode)
    assert find_file(project) is None
    assert "every user can write to the folder" in caplog.text


def test_a_file_that_every_user_can_change_is_ignored(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (project / "plaudit.toml").chmod(0o666)
    assert find_file(project) is None
    assert "every user can change it" in caplog.text


@only_root
@pytest.mark.parametrize("name", ["plaudit.toml", "."])
def test_a_file_or_a_folder_of_another_user_is_ignored(
    project: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    os.chown(project / name, NOBODY, NOBODY)
    assert find_file(project) is None
    assert "belongs to another user; if it is yours, set PLAUDIT_CONFIG=" in caplog.text


def test_a_link_is_only_as_good_as_where_it_leads(tmp_path: Path, project: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    (project / "plaudit.toml").rename(open_to_all / "plaudit.toml")
    (project / "plaudit.toml").symlink_to(open_to_all / "plaudit.toml")
    assert find_file(project) == project / "plaudit.toml"
    open_to_all.chmod(0o777)
    assert find_file(project) is None


def test_a_file_that_the_user_names_counts_wherever_it_lies(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.chmod(0o777)
    monkeypatch.setenv("PLAUDIT_CONFIG", str(project / "plaudit.toml"))
    assert load({}).model == "m"
    monkeypatch.setenv("PLAUDIT_CONFIG", str(project))
    with pytest.raises(ConfigError, match=re.escape(f"PLAUDIT_CONFIG={project} is not a file")):
        load({})
    monkeypatch.setenv("PLAUDIT_CONFIG", str(project / "none.toml"))
    with pytest.raises(ConfigError, check=about("config")):
        load({})


def test_a_new_destination_is_announced_once_for_each_change(project: Path) -> None:
    def said() -> str:
        """What a new process says."""
        code = "from plaudit.settings import load; load({}); load({})"
        return subprocess.run(
            [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True
        ).stderr

    assert said() == ""
    (project / "plaudit.toml").write_text('base_url = "http://evil.example/v1"\napi_key_env = "AWS_SECRET"')
    first = said()
    assert first.count("sets base_url to http://evil.example/v1 and api_key_env to AWS_SECRET") == 1
    assert said() == ""
    (project / "plaudit.toml").write_text('base_url = "http://worse.example/v1"')
    assert "sets base_url to http://worse.example/v1" in said()


def test_a_destination_that_an_argument_overrules_is_not_announced(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (project / "plaudit.toml").write_text('base_url = "http://a.example/v1"')
    load({"base_url": ["http://b.example/v1"]}, folder=project)
    assert not caplog.records


def test_what_cannot_be_remembered_is_announced_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PLAUDIT_HOME", str(tmp_path / "file" / "home"))
    announce(tmp_path / "plaudit.toml", {"base_url": "http://unkept.example/v1"})
    assert "http://unkept.example/v1" in caplog.text
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "plaudit.toml"
    path.write_text("model = gpt-4o")
    with pytest.raises(ConfigError, check=about("config")):
        read_file(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [("rpm = " + "[" * 100_000, "recursion"), ("# long\n" * 100_000, "256 KiB")],
)
def test_a_file_that_is_none_of_settings_is_named_and_not_read_to_its_end(
    text: str, why: str, tmp_path: Path
) -> None:
    path = tmp_path / "plaudit.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, check=about("config", why)) as caught:
        read_file(path)
    assert str(path) in str(caught.value)


def test_a_file_that_windows_saved_is_read(tmp_path: Path) -> None:
    path = tmp_path / "plaudit.toml"
    path.write_bytes(b'\xef\xbb\xbfmodel = "m"\r\nrpm = 60\r\n')
    assert read_file(path) == {"model": "m", "rpm": 60}
