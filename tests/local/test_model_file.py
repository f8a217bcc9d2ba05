"""Model files: what is refused before llama.cpp sees it, and what a model is called."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from complaints import about
from tiny_model import write_tiny_model

from plaudit.errors import ConfigError
from plaudit.local.model import SMOLLM2, check_model, model_name, notice


def test_a_model_file_passes(tiny: Path) -> None:
    check_model(tiny)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, check=about("local_model")):
        check_model(tmp_path / "nowhere.gguf")


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, check=about("local_model")):
        check_model(tmp_path)


@pytest.mark.parametrize("content", [b"", b"GG", b"PK\x03\x04 a zip file", b"<html>not found</html>"])
def test_what_does_not_begin_like_a_gguf_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(ConfigError, check=about("local_model")):
        check_model(path)


def test_the_name_follows_the_content_not_the_place(tiny: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(tiny, tmp_path / tiny.name))
    assert model_name(copy) == model_name(tiny)
    assert model_name(tiny).startswith("tiny@")


def test_two_models_of_one_name_and_size_are_told_apart(tiny: Path, tmp_path: Path) -> None:
    other = write_tiny_model(tmp_path / tiny.name, seed=7)
    assert other.stat().st_size == tiny.stat().st_size
    assert model_name(other) != model_name(tiny)


def test_a_change_deep_inside_a_large_file_changes_the_name(tmp_path: Path) -> None:
    path = tmp_path / "large.gguf"
    path.write_bytes(b"GGUF" + bytes(10_000_000))
    before = model_name(path)
    with path.open("r+b") as file:
        file.seek(5_000_000)
        file.write(b"x" * 200_000)
    assert model_name(path) != before


def test_the_packaged_model_is_said_to_be_too_small_for_rubrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAUDIT_HOME", str(tmp_path))
    assert SMOLLM2.path.is_relative_to(tmp_path)
    said = notice(SMOLLM2.path)
    assert SMOLLM2.title in said
    assert "too small" in said
    assert "--local-model" in said


def test_the_users_own_model_is_named(tiny: Path) -> None:
    assert notice(tiny) == "Judged on this machine by tiny.gguf."
