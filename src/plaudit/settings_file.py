"""Which plaudit.toml counts: one of the user's own project, or the one that PLAUDIT_CONFIG names.

Such a file decides where samples and keys are sent. So one that another user could have written is not
obeyed, nor one above the project; either is said. Where a file sends samples is said the first time.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from plaudit.config import expanded, home
from plaudit.errors import ConfigError
from plaudit.files import PRIVATE_FILE, make_private_folder, write_whole

log = logging.getLogger("plaudit")

FILE_NAME = "plaudit.toml"
VARIABLE = "PLAUDIT_CONFIG"
DESTINATION = ("base_url", "api_key_env")
"""Settings that decide who gets the samples, and which key."""
LARGEST = 1 << 18
"""Bytes that a file may have: what is larger is no file of settings."""
ANNOUNCED = "announced.json"
ANNOUNCED_KEPT = 1000

_said: set[str] = set()


def find_file(folder: Path, environment: Mapping[str, str] = os.environ) -> Path | None:
    """The file that PLAUDIT_CONFIG names (ConfigError where it does not exist), else the nearest that counts.

    What does not count is said once.
    """
    if named := environment.get(VARIABLE, "").strip():
        path = expanded(named)
        if not path.is_file():
            raise ConfigError(
                f"{'is not a file' if path.exists() else 'does not exist'}; correct it, or unset it",
                setting="config",
                value=named,
                spelled=f"{VARIABLE}={named}",
            )
        return path.absolute()
    inside, above = _places(folder.resolve())
    for place in inside:
        if (found := place / FILE_NAME).is_file():
            if not (doubt := _doubt(found)):
                return found
            _say_ignored(found, doubt)
    for place in above:
        if (found := place / FILE_NAME).is_file():
            _say_ignored(found, f"it is outside the project in {inside[-1]}")
            break
    return None


def read_file(path: Path) -> dict[str, Any]:
    """The table in a plaudit.toml; ConfigError where it cannot be read."""
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise OSError(f"it is larger than {LARGEST >> 10} KiB")
        return tomllib.loads(text.decode("utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        why = f'is not TOML: {error}; text needs quotes, like model = "m"'
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        why = f"cannot be read ({error}); make it readable or move it away"
    raise ConfigError(why, setting="config", value=str(path), spelled=str(path))


def announce(path: Path, destination: Mapping[str, str]) -> None:
    """Say where a file sends samples and keys, the first time that it says so."""
    if not destination:
        return
    text = f"{path} sets " + " and ".join(f"{name} to {value}" for name, value in destination.items())
    mark = hashlib.sha256(text.encode(errors="replace")).hexdigest()
    if mark in _said:
        return
    _said.add(mark)
    known = _announced()
    if mark in known:
        return
    log.warning("%s: samples, and the key if there is one, are sent there (shown once per change)", text)
    try:
        make_private_folder(home())
        kept = [*known, mark][-ANNOUNCED_KEPT:]
        write_whole(home() / ANNOUNCED, msgspec.json.encode(kept), mode=PRIVATE_FILE)
    except OSError as error:
        log.debug("%s cannot be saved: %s", home() / ANNOUNCED, error)  # said again by the next process


def _announced() -> list[str]:
    """What earlier processes have said."""
    try:
        return msgspec.json.decode((home() / ANNOUNCED).read_bytes(), type=list[str])
    except (OSError, msgspec.DecodeError):
        return []


def _user_home() -> Path | None:
    try:
        return Path.home().resolve()
    except RuntimeError:
        return None  # a user without a name, as containers have them


def _places(folder: Path) -> tuple[list[Path], Iterator[Path]]:
    """Folders whose file counts, nearest first, and those above them.

    A project ends at its repository's root. Without a repository it ends at the user's home; outside of that
    it is the working directory alone.
    """
    chain = [folder, *folder.parents]
    own = _user_home()
    root = next((place for place in chain if (place / ".git").exists()), None)
    if root is None or (own is not None and root in own.parents):
        root = own if own in chain else folder
    end = chain.index(root) + 1
    return chain[:end], iter(chain[end:])


def _doubt(path: Path) -> str:
    """Why another user may have written this file; empty where only this one or root can have."""
    real = path.resolve()
    for place in dict.fromkeys((path.parent, real.parent, real)):
        found, name = place.stat(), "it" if place == real else f"the folder {place}"
        if found.st_mode & stat.S_IWOTH:
            return f"every user can {'change' if place == real else 'write to'} {name}"
        if hasattr(os, "getuid") and found.st_uid not in (0, os.getuid()):
            return f"{name} belongs to another user"
    return ""


def _say_ignored(path: Path, why: str) -> None:
    if str(path) not in _said:
        _said.add(str(path))
        log.warning("%s is ignored: %s; if it is yours, set %s=%s", path, why, VARIABLE, path)
