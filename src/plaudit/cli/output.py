"""Where scored lines go: a file that appears complete or not at all, or a stream such as stdout.

A file is written beside its final name, under a random name and a lock, then put in place in
one step. The old content stays until then; what a killed run leaves, the next run removes. Meanwhile
`OUT.partial.jsonl` is a second name of the same file, for those who want to read what is done so far.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from plaudit.config import expanded
from plaudit.errors import ConfigError
from plaudit.files import SUFFIX, create_beside, is_anothers_link, temporary_prefix
from plaudit.setup.tables import Convert

if sys.platform != "win32":
    import fcntl


class Unwritable(ConfigError):
    """The disk or the stream failed in the middle of the output."""

    def __init__(self, place: Path | str, error: OSError) -> None:
        self.why = f"{place} cannot be written: {error.strerror or error}"
        super().__init__(f"{self.why}; make room, or name another place, and run the same command again")


class FileSink:
    """A file that is put in place, whole, by `commit`."""

    def __init__(self, path: Path, convert: Convert | None = None, *, shows_partial: bool = False) -> None:
        """
        Args:
            path: The file to write.
            convert: How the lines become a table when they are complete; None leaves them JSON lines.
            shows_partial: Whether the lines written so far can be read under another name.
        """
        self._convert = convert
        self.path = _checked(expanded(path))
        self._is_empty = True
        self._shows_partial = shows_partial
        self._is_shown = False
        _remove_leftovers(self.path)
        self._file, self._temporary = _create_locked(self.path)

    def write(self, lines: bytes) -> None:
        """Add lines, each with its newline."""
        with self._saying_what_to_do():
            self._file.write(lines)
            self._file.flush()
        if lines and self._is_empty:
            self._is_empty = False
            if self._shows_partial:
                self._show_partial()

    def _show_partial(self) -> None:
        """Give the lines written so far a name; what an earlier run left under it is replaced."""
        second = self._temporary.with_name(f"{self._temporary.name}-2")
        with contextlib.suppress(OSError):  # a file system without links: they are there when it ends
            second.hardlink_to(self._temporary)
            try:
                second.replace(partial_path(self.path))
                self._is_shown = True
            finally:
                second.unlink(missing_ok=True)

    def rewrite(self, change: Callable[[bytes], bytes]) -> None:
        """Pass every line written so far through `change`."""
        self._transform(lambda lines, out: out.writelines(map(change, lines)))

    def _transform(self, convert: Convert) -> None:
        changed, second = _create_locked(self.path)
        try:
            with self._saying_what_to_do():
                self._file.seek(0)
                convert(self._file, changed)
        except BaseException:
            _throw_away(changed, second)
            raise
        self._file.close()
        self._temporary.unlink()
        self._temporary, self._file = second, changed

    def commit(self) -> None:
        """Everything is there: show it."""
        if self._convert is not None:
            self._transform(self._convert)
        self._put_in_place(self.path)
        self._remove_partial()

    def save_partial(self) -> Path | None:
        """Something is missing: keep the lines elsewhere, and say where."""
        if self._is_empty:
            self.discard()
            return None
        target = partial_path(self.path)
        self._put_in_place(target)
        return target

    def discard(self) -> None:
        """Nothing is worth keeping."""
        if self._file.closed:
            return  # it has ended: the temporary file, if there is one, belongs to another run
        if self._is_shown:
            self._remove_partial()
        _throw_away(self._file, self._temporary)

    def _remove_partial(self) -> None:
        with contextlib.suppress(OSError):  # what another user, or a folder, has that name stays as it is
            partial_path(self.path).unlink()

    def _put_in_place(self, target: Path) -> None:
        with self._saying_what_to_do():
            self._file.flush()
            os.fsync(self._file.fileno())
            self._temporary.replace(target)
            self._temporary.unlink(missing_ok=True)  # two names of one file: then `replace` does nothing
            self._file.close()
            _sync_folder(target.parent)

    @contextlib.contextmanager
    def _saying_what_to_do(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise Unwritable(self.path, error) from error


class StreamSink:
    """A stream that cannot be taken back: each line is final once it is written."""

    def __init__(self, file: BinaryIO, name: str = "stdout") -> None:
        self._file = file
        self._name = name

    def write(self, lines: bytes) -> None:
        try:
            view = memoryview(lines)
            while view:
                view = view[self._file.write(view) or 0 :]  # unbuffered files may take less than all
            self._file.flush()
        except BrokenPipeError:
            raise  # the reader has had enough: no error of ours
        except OSError as error:
            raise Unwritable(self._name, error) from error

    def commit(self) -> None:
        if sys.stdout is None or self._file is not sys.stdout.buffer:
            self._file.close()

    discard = commit

    def save_partial(self) -> Path | None:
        self.commit()
        return None


Sink = FileSink | StreamSink
"""Takes lines in order. Exactly one of `commit`, `save_partial` and `discard` ends it."""


def open_sink(place: str, convert: Convert | None = None, *, shows_partial: bool = False) -> Sink:
    """stdout for `-`, a stream for a device or a named pipe, else a file, made a table by `convert`."""
    if place == "-":
        if sys.stdout is None:
            raise _bad_output(place, "cannot be stdout, which is closed; name a file")
        return StreamSink(sys.stdout.buffer)
    check_place(place)
    path = expanded(place)
    if path.exists() and not path.is_file():
        return StreamSink(path.open("wb", buffering=0), place)  # /dev/null is not to be replaced by a file
    return FileSink(path, convert, shows_partial=shows_partial)


def check_place(place: str, *inputs: str, setting: str = "output") -> None:
    """Raise ConfigError where no file can be written, as far as its name tells; never over an input."""
    path, why = expanded(place), ""
    if place == "-":
        return
    if not place:
        raise ConfigError("is empty; name the file to write", setting=setting)
    if "://" in place:
        why = "is a URL; name a file on this machine"
    elif path.is_dir() or place.endswith("/"):
        why = f"is a folder; name the file to write, like {path / 'scored.jsonl'}"
    elif real_path(place) in map(real_path, inputs):
        why = "would overwrite the input; name another file"
    elif not (folder := real_path(place).parent).is_dir():
        what = "is a file, not a folder" if folder.is_file() else "does not exist; make it first"
        why = f"cannot be written: the folder {folder} {what}"
    if why:
        raise ConfigError(why, setting=setting, value=place)


@contextlib.contextmanager
def written(place: str, *inputs: str) -> Iterator[Sink]:
    """An output that is complete when the block ends, and thrown away if the block fails; never an input."""
    check_place(place, *inputs)
    sink = open_sink(place)
    try:
        yield sink
        sink.commit()
    except BaseException:
        sink.discard()
        raise


def real_path(place: str | os.PathLike[str]) -> Path:
    """Where a file really is, whatever links lead to it."""
    return Path(os.path.realpath(expanded(place)))


def partial_path(path: Path) -> Path:
    """Where an interrupted run leaves what it has: `out.partial.jsonl` for `out.jsonl`."""
    return path.with_name(f"{path.name.removesuffix('.jsonl')}.partial.jsonl")


def _bad_output(place: Path | str, why: str) -> ConfigError:
    return ConfigError(why, setting="output", value=str(place))


def _checked(path: Path) -> Path:
    """The file to write. A link stays one: its target is replaced."""
    if is_anothers_link(path):
        raise _bad_output(path, "is a link that another user has made; name the file itself")
    return real_path(path)


def _throw_away(file: BinaryIO, path: Path) -> None:
    path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        file.close()  # what could not be written is not wanted any more


def _create_locked(path: Path) -> tuple[BinaryIO, Path]:
    """A temporary file for `path`. The lock tells other runs that this one is still at work."""
    try:
        file, temporary = create_beside(path)
        if sys.platform != "win32":
            with contextlib.suppress(OSError):  # a file system without locks: the name is ours all the same
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))  # a private file stays private
    except OSError as error:
        raise _bad_output(path, f"cannot be written: {error.strerror}; name another place") from None
    return file, temporary


def _remove_leftovers(path: Path) -> None:
    """Remove what killed runs have left. ConfigError while another run is writing the same file."""
    if sys.platform == "win32":
        return
    start = re.escape(temporary_prefix(path.name).removesuffix("."))
    is_temporary = re.compile(rf"{start}(\.[0-9a-f]{{16}})?{re.escape(SUFFIX)}(-2)?").fullmatch
    try:
        names = [found.name for found in path.parent.iterdir()]
    except PermissionError:
        return  # a folder that may be written and not read
    for found in (path.with_name(name) for name in names if is_temporary(name)):
        try:
            handle = os.open(found, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue  # a link, or gone by now
        try:
            facts = os.fstat(handle)
            if stat.S_ISREG(facts.st_mode) and facts.st_uid == os.getuid():
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                found.unlink(missing_ok=True)
        except BlockingIOError:
            why = "is being written by another run; wait for it, or choose another file"
            raise _bad_output(path, why) from None
        except OSError:
            continue  # it cannot be locked or removed: it only takes room
        finally:
            os.close(handle)


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
