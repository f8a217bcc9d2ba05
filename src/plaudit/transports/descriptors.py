"""How many connections this process may have at once: as many as it has file descriptors to spare."""

from __future__ import annotations

import errno
import os
from pathlib import Path

RESERVE = 16
"""Descriptors left for the rest of the process at the least: verdict files, logs, name look-ups, pipes."""
OUT_OF_FILES = (errno.EMFILE, errno.ENFILE)


def connections_left() -> int | None:
    """Connections that can still be opened; None where the system sets no limit, or has none to ask for."""
    try:
        from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
    except ImportError:  # Windows: sockets are no files there
        return None
    limit, _ = getrlimit(RLIMIT_NOFILE)
    return None if limit == RLIM_INFINITY else room_within(limit, in_use=_in_use())


def room_within(limit: int, *, in_use: int) -> int:
    """Of so many descriptors, those for connections: a sixteenth is kept for others."""
    return max(1, limit - in_use - max(RESERVE, limit // 16))


def is_out_of_files(error: OSError) -> bool:
    """Whether a connection failed because this process, or the whole system, can open no more files."""
    return error.errno in OUT_OF_FILES or any(os.strerror(code) in str(error) for code in OUT_OF_FILES)


def _in_use() -> int:
    try:
        return len(list(Path("/dev/fd").iterdir()))
    except OSError:
        return RESERVE
