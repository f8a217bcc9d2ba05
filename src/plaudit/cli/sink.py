"""Where scored lines go: a file that appears complete or not at all, or a stream such as stdout.

A file is written beside its final name, under a name of its own and a lock, then put in place in one step.
The old content stays until then; a run that is killed leaves a temporary file that the next run takes over.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Protocol

from plaudit.errors import ConfigError

if sys.platform != "win32":
    import fcntl


class Sink(Protocol):
    """Takes lines in order. Exactly one of the last three methods ends it."""

    def write(self, lines: bytes) -> None:
        """Add lines, each with its newline."""
        ...

    def commit(self) -> None:
        """Everything is there: show it."""
        ...

    def save_partial(self) -> Path | None:
        """Something is missing: keep the lines elsewhere, and say where."""
        ...

    def discard(self) -> None:
        """Nothing is worth keeping."""
        ...


class FileSink:
    """A file that is put in place, whole, by `commit`."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().resolve()  # a link stays one: its target is replaced
        self._temporary = self.path.with_name(f".{self.path.name}.plaudit")
        self._is_empty = True
        _require_folder(self.path)
        self._file = _open_locked(self._temporary, self.path)
        if self.path.exists():
            self._temporary.chmod(stat.S_IMODE(self.path.stat().st_mode))  # a private file stays private

    def write(self, lines: bytes) -> None:
        self._is_empty = self._is_empty and not lines
        with self._saying_what_to_do():
            self._file.write(lines)

    def rewrite(self, change: Callable[[bytes], bytes]) -> None:
        """Pass every line written so far through `change`."""
        second = self._temporary.with_name(f"{self._temporary.name}-2")
        changed = _open_locked(second, self.path)
        second.chmod(stat.S_IMODE(self._temporary.stat().st_mode))
        with self._saying_what_to_do():
            self._file.seek(0)
            for line in self._file:
                changed.write(change(line))
        self._file.close()
        self._temporary.unlink()
        self._temporary, self._file = second, changed

    def commit(self) -> None:
        self._put_in_place(self.path)
        partial_path(self.path).unlink(missing_ok=True)

    def save_partial(self) -> Path | None:
        if self._is_empty:
            self.discard()
            return None
        target = partial_path(self.path)
        self._put_in_place(target)
        return target

    def discard(self) -> None:
        if self._file.closed:
            return  # it has ended: the temporary file, if there is one, belongs to another run
        self._temporary.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._file.close()  # what could not be written is thrown away anyway

    def _put_in_place(self, target: Path) -> None:
        with self._saying_what_to_do():
            self._file.flush()
            os.fsync(self._file.fileno())
            self._temporary.replace(target)
            self._file.close()
            _sync_folder(target.parent)

    @contextlib.contextmanager
    def _saying_what_to_do(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ConfigError(
                f"{self.path} cannot be written: {error.strerror}; what was scored is in the cache: "
                "make room, or name another place with -o, and run the same command again"
            ) from error


class StreamSink:
    """A stream that cannot be taken back: each line is final once it is written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, lines: bytes) -> None:
        self._file.write(lines)
        self._file.flush()

    def commit(self) -> None:
        if self._file is not sys.stdout.buffer:
            self._file.close()

    def save_partial(self) -> Path | None:
        self.commit()
        return None

    def discard(self) -> None:
        self.commit()


def open_sink(place: str) -> FileSink | StreamSink:
    """stdout for `-`, a stream for a device or a named pipe, else a file."""
    if place == "-":
        return StreamSink(sys.stdout.buffer)
    path = Path(place).expanduser()
    if path.is_dir():
        raise ConfigError(f"{place} is a folder; name the file to write, like {path / 'scored.jsonl'}")
    if path.exists() and not path.is_file():
        return StreamSink(path.open("wb", buffering=0))  # replacing /dev/null by a file helps nobody
    return FileSink(path)


def partial_path(path: Path) -> Path:
    """Where an interrupted run leaves what it has: `out.partial.jsonl` for `out.jsonl`."""
    return path.with_name(f"{path.name.removesuffix('.jsonl')}.partial.jsonl")


def _require_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise ConfigError(f"{path} cannot be written: there is no folder {path.parent}; make it first")


def _open_locked(temporary: Path, path: Path) -> BinaryIO:
    """Open the temporary file for us alone: two runs writing one file would tear it."""
    while True:
        try:
            file = temporary.open("a+b")
        except OSError as error:
            raise ConfigError(f"{path} cannot be written: {error.strerror}") from None
        if sys.platform == "win32":
            break
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise ConfigError(f"{temporary} cannot be locked: {error.strerror}") from None
            raise ConfigError(
                f"another run is writing {path}; wait for it, or choose another file with -o"
            ) from None
        if _is_still(temporary, file):
            break
        file.close()  # the run before us put it in place between our open and our lock
    file.truncate(0)
    return file


def _is_still(path: Path, file: BinaryIO) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut, where the file system can."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
