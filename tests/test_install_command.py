"""What a message says to type is true for the way plaudit was installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from plaudit.install_command import install_command


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The interpreter of an environment that is not on the PATH."""
    (tmp_path / "bin").mkdir()
    for name in ("python", "pip"):
        (tmp_path / "bin" / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", "/usr/bin")
    return str(tmp_path / "bin" / "python")


def test_an_environment_on_the_path_has_its_own_pip(
    tmp_path: Path, python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert (
        install_command("plaudit[data]", prefix=str(tmp_path), python=python) == 'pip install "plaudit[data]"'
    )


def test_an_environment_off_the_path_is_named_in_full(tmp_path: Path, python: str) -> None:
    assert install_command("pandas", prefix=str(tmp_path), python=python) == f"{python} -m pip install pandas"


def test_pipx_installs_into_its_own_environment(tmp_path: Path, python: str) -> None:
    (tmp_path / "pipx_metadata.json").write_text("{}")
    said = install_command("plaudit[data]", prefix=str(tmp_path), python=python)
    assert said == 'pipx runpip plaudit install "plaudit[data]"'


def test_an_environment_of_uv_has_no_pip(tmp_path: Path, python: str) -> None:
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\nuv = 0.13.8\n")
    said = install_command("plaudit[data]", prefix=str(tmp_path), python=python)
    assert said == f'uv pip install --python {python} "plaudit[data]"'


def test_an_image_is_built_again_with_the_extra(tmp_path: Path, python: str) -> None:
    (tmp_path / "image").touch()
    said = install_command("plaudit[data]", prefix=str(tmp_path), python=python)
    assert said == "docker build --build-arg 'EXTRAS=[data]' -t plaudit ."
