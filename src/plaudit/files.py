"""How files are written: whole or not at all, ours private. And how files that settings name are read."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from plaudit.config import expanded, home
from plaudit.errors import ConfigError
from plaudit.install_command import install_command

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700
SUFFIX = ".plaudit"
LARGEST = 1 << 24
"""Characters of a file that a setting names."""
MOST_VALUES = 100_000
"""Values in a YAML file, those counted again that its aliases repeat: a short one may stand for billions."""
_GROUP = 0o060
_NAME_BYTES = 100
_OURS = ("verdicts.sqlite", "limits.json", "announced.json", "models", "journal", ".")
"""How the names begin that plaudit itself puts into its home."""


def read_text(path: str | os.PathLike[str], *, setting: str) -> str:
    """The text of a file that a setting names. Raises ConfigError where it cannot be read."""
    try:
        with expanded(path).open(encoding="utf-8-sig") as file:
            text = file.read(LARGEST + 1)
        if len(text) <= LARGEST:
            return text
        why = f"is too large: it has more than {LARGEST >> 20} MiB"
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}; check the path"
    except UnicodeDecodeError:
        why = "cannot be read: it is not UTF-8 text"
    raise ConfigError(why, setting=setting, value=str(path))


def decoded(text: str, path: str | os.PathLike[str], *, setting: str, default: str = "TOML") -> Any:
    """What a text says as JSON, YAML or TOML, by the file's name. Raises ConfigError where it is none."""
    forms = {".json": "JSON", ".yaml": "YAML", ".yml": "YAML", ".toml": "TOML"}
    form = forms.get(Path(path).suffix.lower(), default)
    try:
        if form == "TOML":
            return tomllib.loads(text)
        if form == "JSON":
            return msgspec.json.decode(text)
        found = msgspec.yaml.decode(text)
        if _count(found, {}) > MOST_VALUES:
            raise ValueError(f"it has more than {MOST_VALUES:,} values")
        return found
    except ImportError:
        why = f"is YAML, which needs PyYAML; run: {install_command('plaudit[yaml]')}"
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        hint = "; text must be in quotation marks" if form == "TOML" else ""
        why = f"cannot be read as {form}: {error}{hint}"
    raise ConfigError(why, setting=setting, value=str(path))


def _count(value: Any, known: dict[int, float]) -> float:
    """How many values it would be without aliases; one that contains itself is endless."""
    if isinstance(value, dict | list) and id(value) not in known:
        known[id(value)] = math.inf  # until its parts are counted
        parts = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_count(part, known) for part in parts)
    return known.get(id(value), 1)


def temporary_prefix(name: str) -> str:
    """How the names of all temporary files for a file of that name begin."""
    return f".{name.encode(errors='ignore')[:_NAME_BYTES].decode(errors='ignore')}."


def create_beside(path: Path, *, mode: int = 0o666) -> tuple[BinaryIO, Path]:
    """A new, empty file in the folder of `path`, and its name, which cannot be guessed. The umask applies."""
    while True:
        temporary = path.with_name(f"{temporary_prefix(path.name)}{secrets.token_hex(8)}{SUFFIX}")
        with contextlib.suppress(FileExistsError):
            return _create(temporary, mode), temporary


def _create(path: Path, mode: int) -> BinaryIO:
    """A new file, with these permissions from its first moment; FileExistsError where there is one."""
    return cast(BinaryIO, open(path, "x+b", opener=lambda name, flags: os.open(name, flags, mode)))


def write_whole(path: Path, data: bytes, *, mode: int = 0o666, is_synced: bool = True) -> None:
    """Put `data` under `path` in one step; a link of that name is replaced, not followed.

    Args:
        path: Where to.
        data: What the file is to hold.
        mode: Who may read it; the umask applies.
        is_synced: Whether it must outlive a power cut, for which the disk is waited for.

    Raises:
        OSError: nothing has changed.
    """
    file, temporary = create_beside(path, mode=mode)
    try:
        with file:
            file.write(data)
            file.flush()
            if is_synced:
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def make_private_folder(folder: Path) -> None:
    """Make a folder for us alone. One that is there, is ours and holds nothing else is closed to others."""
    folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
    found = folder.stat()
    is_open = bool(stat.S_IMODE(found.st_mode) & ~PRIVATE_FOLDER)
    if is_open and _is_mine(found) and all(entry.name.startswith(_OURS) for entry in folder.iterdir()):
        folder.chmod(PRIVATE_FOLDER)


def create_private_file(path: Path) -> None:
    """Make an empty file that no other user can read or write, unless there is one of that name."""
    with contextlib.suppress(FileExistsError):
        _create(path, PRIVATE_FILE).close()


def is_anothers_link(path: Path) -> bool:
    """Whether a link of another user has this name: in a shared folder, it may lead to any file of ours."""
    if sys.platform == "win32" or not path.is_symlink():
        return False
    return path.lstat().st_uid not in (0, os.getuid())


def close_to_others(path: Path, *companions: Path) -> None:
    """Make sure that no other user can read or write a file of ours, and those beside it that belong to it.

    Outside of plaudit's home a file that the user has opened to a group stays open to it.
    """
    for file in (path, *companions):
        with contextlib.suppress(FileNotFoundError):
            found = file.stat()
            mode = stat.S_IMODE(found.st_mode)
            is_shared = bool(mode & stat.S_IWGRP) and path.parent.absolute() != home().absolute()
            wanted = mode & (PRIVATE_FILE | _GROUP if is_shared else PRIVATE_FILE)
            if wanted != mode and _is_mine(found):
                file.chmod(wanted)


def _is_mine(found: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or found.st_uid == os.getuid()
