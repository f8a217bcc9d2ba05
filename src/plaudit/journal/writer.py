"""Writes a journal: the engine packs verdicts into blocks, a thread of its own compresses and writes them.

Verdicts are packed many at a time. One by one, between two replies, each takes half as long again, because
the processor's caches are full of other work; and so it does on another thread. What was handed over is on
file within `EVERY` seconds, whatever ends the process then; `written` says how much is. A disk that cannot be
written costs the journal, never a verdict.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from plaudit.config import EngineConfig
from plaudit.errors import JournalError
from plaudit.journal.activity import Activity
from plaudit.journal.base import Judged
from plaudit.journal.blocks import ACTIVITY, SESSION, VerdictBlock, block
from plaudit.journal.segments import Appender

log = logging.getLogger("plaudit")

EVERY = 0.5
"""Seconds between two writes, at the most."""
LONG = 10_000
"""Characters of a response that is packed at once, and what came before it: many would take too long."""
GROUP = 64
"""Verdicts that are packed together: what they are made of is still in the processor's cache."""
BLOCK = 512
"""Verdicts in a block: larger ones compress hardly better, and take longer to open for one record."""
BLOCK_BYTES = 4 << 20
"""Bytes of a block, where its texts are long."""
MANY_BYTES = 1 << 20
"""Bytes that are worth waking the writer for before its time."""
MOST_WAITING = 256 << 20
"""Bytes that may wait for a slow disk; further verdicts are left out, and counted."""
CLOSE_WITHIN = 5.0


class JournalWriter:
    """An open journal, as the engine sees it.

    Args:
        path: The file.
        max_mb: How large it may become, all its files together.
        run: The name of the run; empty: one made of the time.
        has_text: Whether texts are kept; without, there are only numbers and hashes.
        look: Says what the engine is doing; called on the writer's thread.
        settings: What the session says of itself, like the settings in force; no key is in it.

    Raises:
        JournalError: the file cannot be written, or is something else.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        max_mb: float = 2048,
        run: str = "",
        has_text: bool = True,
        look: Callable[[], Activity] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.session = secrets.token_hex(5)
        self.run = run or datetime.now(UTC).strftime("%Y%m%d-%H%M%S-") + self.session[:4]
        self.written = 0
        """Verdicts on file."""
        self.lost = 0
        """Verdicts that were left out, for the disk was too slow or full."""
        self._has_text = has_text
        introduction = {
            "session": self.session,
            "run": self.run,
            "started": time.time(),
            "has_text": has_text,
            "settings": dict(settings or {}),
        }
        opening = block(SESSION, msgspec.json.encode(introduction))
        self._appender = Appender(Path(path), opening, max_bytes=int(max_mb * 1e6))
        self._taken: list[Judged] = []
        """Verdicts that are not packed yet."""
        self._lock = threading.Lock()
        """Held while verdicts are packed, and while a block changes hands."""
        self._filling = self._new_block(0)
        self._full: deque[VerdictBlock] = deque()
        self._waiting_bytes = 0
        self._look = look
        self._seen = b""
        self._has_news = threading.Event()
        self._is_closing = False
        self._is_broken = False
        self._thread = threading.Thread(target=self._work, name="plaudit-journal", daemon=True)
        self._thread.start()

    def add(self, *judged: Judged) -> None:
        """Take verdicts; they are on file within half a second."""
        now = time.time()
        for one in judged:
            one.at = now
        self._taken.extend(judged)
        if len(self._taken) >= GROUP or (judged and len(judged[-1].sample.response) > LONG):
            with self._lock:
                self._pack()

    def _pack(self) -> None:
        """Bring what was taken into the block that is being filled."""
        taken = self._taken[:]
        del self._taken[: len(taken)]  # what the engine adds meanwhile stays
        if self._waiting_bytes > MOST_WAITING:
            self._lose(len(taken), "the disk is too slow")
            return
        for start in range(0, len(taken), GROUP):
            for error in self._filling.add(taken[start : start + GROUP]):
                self._lose(1, f"a sample or its judge cannot be written ({error!r})")
            if len(self._filling) >= BLOCK or self._filling.size >= BLOCK_BYTES:
                self._set_aside()
        if self._waiting_bytes >= MANY_BYTES:
            self._has_news.set()

    def close(self) -> None:
        """Write what is left. Safe to call twice."""
        self._is_closing = True
        self._has_news.set()
        self._thread.join(CLOSE_WITHIN)
        if self._thread.is_alive():
            log.warning("the journal was not written within %g s; its end is missing", CLOSE_WITHIN)
            return
        self._appender.close()

    def _work(self) -> None:
        noted = float("-inf")
        while True:
            has_full_block = self._has_news.wait(EVERY)
            self._has_news.clear()
            is_last = self._is_closing
            if is_last or not has_full_block:
                with self._lock:
                    self._pack()
                    self._set_aside()
            while self._full:
                self._write(self._full.popleft())
            now = time.monotonic()
            if self._look is not None and (is_last or now - noted >= EVERY):
                noted = now
                self._note(self._look())
            if is_last:
                return

    def _new_block(self, first: int) -> VerdictBlock:
        return VerdictBlock(self.session, self.run, first=first, has_text=self._has_text)

    def _set_aside(self) -> None:
        """Begin a new block; the other one is to be written."""
        if self._filling:
            self._full.append(self._filling)
            self._waiting_bytes += self._filling.size
            self._filling = self._new_block(self._filling.end)

    def _write(self, full: VerdictBlock) -> None:
        size = full.size
        is_written = self._append(full.encode())
        with self._lock:
            self._waiting_bytes -= size
            if is_written:
                self.written += len(full)
            else:
                self._lose(len(full), "")

    def _note(self, moment: Activity) -> None:
        """Write what the engine is doing, if that has changed."""
        moment.session, moment.verdicts = self.session, self.written
        seen = msgspec.json.encode(moment)
        if seen != self._seen:
            self._seen = seen
            moment.at = time.time()
            self._append(block(ACTIVITY, msgspec.json.encode(moment)))

    def _append(self, data: bytes) -> bool:
        try:
            self._appender.append(data)
        except (OSError, JournalError) as error:
            if not self._is_broken:
                why = error.strerror if isinstance(error, OSError) else str(error)
                log.warning("the journal cannot be written: %s; going on without it until it can", why)
            self._is_broken = True
            return False
        if self._is_broken:
            self._is_broken = False
            log.warning("the journal is written again; %d verdicts are missing in it", self.lost)
        return True

    def _lose(self, count: int, why: str) -> None:
        if not self.lost and why:
            log.warning("verdicts are left out of the journal: %s", why)
        self.lost += count


def settings_shown(config: EngineConfig) -> dict[str, Any]:
    """An engine's settings for people: every key as `***`."""
    shown: dict[str, Any] = {
        name: getattr(config, name)
        for name in (
            *("max_concurrent", "rpm", "tpm", "budget", "timeout", "hedge", "cache", "client"),
            *("journal", "journal_max_mb", "journal_text"),
            *("max_tokens", "temperature", "top_p", "seed", "reasoning_effort"),
        )
    }
    shown["extra"] = sorted(config.extra or {})  # a value may be a secret
    shown["observers"] = list(config.observers)
    shown["endpoints"] = [
        {
            **{name: getattr(endpoint, name) for name in ("url", "model", "max_concurrent", "rpm", "tpm")},
            "api_key": "***" if endpoint.api_key else None,
            "headers": sorted(endpoint.headers or {}),
            "price": [endpoint.price.prompt, endpoint.price.completion] if endpoint.price else None,
        }
        for endpoint in config.endpoints
    ]
    return shown
