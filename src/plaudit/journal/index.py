"""Journals opened for reading: the numbers of every verdict in memory, texts fetched when asked for.

A journal that is being written can be open meanwhile: `refresh` reads what is new.
"""

from __future__ import annotations

import math
import re
import threading
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from plaudit.errors import JournalError
from plaudit.journal.activity import Activity
from plaudit.journal.blocks import (
    ACTIVITY,
    FACTS,
    HASHES,
    SESSION,
    VERDICTS,
    WORDS,
    Numbers,
    StoredText,
    decoded,
    read_facts,
    read_texts,
    unpacked,
)
from plaudit.journal.segments import Damage, Located, Segment, segments_of

Array = np.ndarray[Any, Any]
_SAMPLE = re.compile("[0-9a-f]{16}")
MOMENTS = 3600
"""Moments of activity that are kept; of more, every second one is dropped."""
TEXT_BLOCKS = 32
"""Blocks whose texts are kept in memory."""


class SessionFacts(msgspec.Struct):
    """One engine that wrote into the journal."""

    session: str
    run: str
    started: float
    settings: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Record:
    """One verdict of a journal, in full."""

    id: str
    facts: dict[str, Any]
    """Numbers and words by name, as in `plaudit journal export`."""
    text: StoredText

    def as_json(self) -> dict[str, Any]:
        """The record as plain data: what `plaudit journal export` writes."""
        text = {name: getattr(self.text, name) for name in self.text.__struct_fields__}
        text["exchanges"] = [msgspec.structs.asdict(exchange) for exchange in self.text.exchanges]
        return {"id": self.id, **self.facts, **text, "serves": list(self.text.serves)}


class _IndexedBlock(NamedTuple):
    inode: int
    """Of its file."""
    block: Located
    first: int
    """The row of its first record."""


_first = attrgetter("first")


class JournalIndex:
    """One or more journals. Threads may share it.

    Args:
        paths: The files.

    Raises:
        JournalError: one of them is missing, is no journal, or is of another version.
    """

    def __init__(self, *paths: str | Path) -> None:
        self.paths = [Path(path) for path in paths]
        self.sessions: dict[str, SessionFacts] = {}
        self.activity: list[Activity] = []
        self.words: list[str] = []
        """Every word that facts refer to, at the place of its number."""
        self._numbers = Numbers()
        self._rows = np.empty(0, FACTS_WIDE)
        self._count = 0
        self._segments: dict[int, Segment] = {}
        self._places: list[_IndexedBlock] = []
        self._files: dict[int, tuple[Path, Path]] = {}
        """Of each file, by its inode: the journal that it belongs to, and where it is now."""
        self._damage: dict[tuple[int, int], Damage] = {}
        """By inode and place."""
        self.version = 0
        """Changes whenever records come or go, and rows with them."""
        self._texts: dict[int, list[StoredText]] = {}
        self._gone: dict[Path, str] = {}
        """Files that were there before, and why they cannot be read now."""
        self._is_open = False
        self._heard = -math.inf
        self._lock = threading.Lock()
        self.refresh()

    def close(self) -> None:
        for segment in self._segments.values():
            segment.close()

    def __enter__(self) -> JournalIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self._count

    @property
    def facts(self) -> Array:
        """The numbers of all verdicts, one row each; words are places in `words`."""
        return self._rows[: self._count]

    @property
    def damage(self) -> list[str]:
        """What could not be read, in words."""
        return [
            f"{self._files[inode][1]}: {'the end is torn' if one.is_tail else 'damaged'}, "
            f"{one.size:,} bytes from byte {one.offset:,} on are left out"
            for (inode, _), one in self._damage.items()
        ] + list(self._gone.values())

    @property
    def quiet_s(self) -> float:
        """Seconds since an engine wrote what it is doing, by this process's clock; inf where none has yet."""
        return time.monotonic() - self._heard

    def refresh(self) -> bool:
        """Read what was written since; whether there was anything."""
        with self._lock:
            before = self.version, len(self.activity), len(self.sessions)
            for path in self.paths:
                try:
                    self._take_all(path, segments_of(path))
                    self._gone.pop(path, None)
                except JournalError as error:
                    if not self._is_open:
                        raise
                    self._gone[path] = f"{error}; what was read before is shown"
            self._is_open = True
            return before != (self.version, len(self.activity), len(self.sessions))

    # -- records ------------------------------------------------------------------------------------------

    def number_of(self, word: str) -> int:
        """The number by which facts refer to a word; -1 where none does."""
        return self._numbers.get(word, -1)

    def id_of(self, row: int) -> str:
        """The name of a record, which stays the same for good."""
        found = self.facts[row]
        return f"{self.words[found['session']]}.{found['seq']}"

    def row_of(self, id_: str) -> int | None:
        """Where the record of this name is; of a sample's name (`sample_id`), the last verdict on it."""
        facts, (session, _, seq) = self.facts, id_.rpartition(".")
        if _SAMPLE.fullmatch(id_):
            is_it = (facts["sample"] == int(id_, 16)) & (facts["panel"] == 0)
        elif seq.isascii() and seq.isdigit():
            is_it = (facts["session"] == self.number_of(session)) & (facts["seq"] == int(seq))
        else:
            return None
        found = np.flatnonzero(is_it)
        return int(found[-1]) if found.size else None

    def facts_of(self, row: int) -> dict[str, Any]:
        """The numbers of one verdict, by name; None where there is none."""
        found = self.facts[row]
        facts: dict[str, Any] = {}
        for name in FACTS:
            if name in WORDS:
                facts[name] = self.words[found[name]]
            else:  # a short float as it was given: 0.1, not 0.10000000149
                value = float(str(found[name])) if FACTS[name] == "f" else found[name].item()
                facts[name] = None if math.isnan(value) else value
        facts["late"] = bool(facts["late"])
        facts["step"] = facts["step"] if facts["step"] >= 0 else None
        for name in HASHES:
            facts[f"{name}_hash"] = f"{facts.pop(name):016x}"
        return facts

    @property
    def verdicts(self) -> int:
        """How many records are verdicts on samples, not questions of a panel."""
        return int((self.facts["panel"] == 0).sum())

    def questions(self, row: int) -> Iterator[int]:
        """The rows of what a panel asked for this verdict."""
        own, facts = self.facts[row], self.facts
        is_asked = (facts["panel"] > 0) & (facts["panel"] == own["batch"])
        asked = np.flatnonzero(is_asked & (facts["session"] == own["session"]))
        return (int(one) for one in asked if int(own["index"]) in self.text(int(one)).serves)

    def text(self, row: int) -> StoredText:
        """The texts of one verdict; empty ones where its block is damaged."""
        return self._text(row) or StoredText()

    def is_whole(self, row: int) -> bool:
        """Whether the texts of a verdict can be read."""
        return self._text(row) is not None

    def _text(self, row: int) -> StoredText | None:
        with self._lock:
            number = bisect_right(self._places, row, key=_first) - 1
            place = row - self._places[number].first
            texts = self._block_texts(number)
        return texts[place] if place < len(texts) else None

    def record(self, row: int) -> Record:
        return Record(self.id_of(row), self.facts_of(row), self.text(row))

    def records(self, rows: Iterable[int] | None = None) -> Iterator[Record]:
        """Verdicts in full, one after the other."""
        for row in range(len(self)) if rows is None else rows:
            yield self.record(int(row))

    # -- reading ------------------------------------------------------------------------------------------

    def _take_all(self, journal: Path, files: list[Path]) -> None:
        """Read the files of a journal. One of several that is none is named like other damage."""
        there = set()
        for file in files:
            try:
                inode = file.stat().st_ino
            except FileNotFoundError:  # dropped for a newer one, just now
                continue
            there.add(inode)
            self._files[inode] = journal, file
            try:
                self._take(inode, file)
            except JournalError:
                if len(files) == 1 or not file.is_file():
                    raise
                self._damage[inode, 0] = Damage(0, file.stat().st_size, False)
        for inode in [
            one for one, (owner, _) in self._files.items() if owner == journal and one not in there
        ]:
            self._forget(inode)

    def _take(self, inode: int, file: Path) -> None:
        """Read what is new in a file, known by its inode: it is moved when it is full."""
        segment = self._segments.get(inode)
        if segment is None:
            segment = self._segments[inode] = Segment(file)
        for key in [key for key, one in self._damage.items() if key[0] == inode and one.is_tail]:
            del self._damage[key]
        for found in segment.new_blocks():
            if isinstance(found, Damage):
                self._damage[inode, found.offset] = found
                continue
            try:
                self._take_block(inode, found)
            except JournalError:
                self._damage[inode, found.offset] = Damage(found.offset, found.head.size, False)

    def _forget(self, inode: int) -> None:
        """Leave out the records of a file that was dropped for newer ones, and let the disk have it back."""
        del self._files[inode]
        if (segment := self._segments.pop(inode, None)) is not None:
            segment.close()
        self._damage = {key: one for key, one in self._damage.items() if key[0] != inode}
        kept, rows, count = list[_IndexedBlock](), [self._rows[:0]], 0
        starts = [place.first for place in self._places]
        for place, own in zip(self._places, np.split(self.facts, starts[1:]), strict=False):
            if place.inode != inode:
                kept.append(place._replace(first=count))
                rows.append(own)
                count += own.size
        self._rows, self._places, self._count = np.concatenate(rows), kept, count
        self._texts.clear()
        self.version += 1

    def _take_block(self, inode: int, found: Located) -> None:
        facts = unpacked(self._segments[inode].facts(found), found.head.facts_crc)
        if found.head.kind == VERDICTS:
            names, packed = read_facts(facts)
            rows = np.frombuffer(packed, FACTS_STORED)
            if rows.size:
                self._places.append(_IndexedBlock(inode, found, self._count))
                self._add(names, rows)
        elif found.head.kind == SESSION:
            session = decoded(facts, SessionFacts)
            self.sessions[session.session] = session
        elif found.head.kind == ACTIVITY:
            self.activity.append(decoded(facts, Activity))
            if self._is_open:
                self._heard = time.monotonic()
            if len(self.activity) > 2 * MOMENTS:
                del self.activity[:MOMENTS:2]

    def _add(self, names: list[str], rows: Array) -> None:
        numbers = np.array([self._numbers[name] for name in names], np.uint32)
        self.words = list(self._numbers)
        if any(int(rows[name].max()) >= len(names) for name in WORDS):
            raise JournalError("a block is damaged: it refers to a word that it does not have")
        end = self._count + rows.size
        if end > self._rows.size:
            wider = np.empty(max(end, 2 * self._rows.size, 1024), FACTS_WIDE)
            wider[: self._count] = self._rows[: self._count]
            self._rows = wider
        target = self._rows[self._count : end]
        for name in FACTS:
            target[name] = numbers[rows[name]] if name in WORDS else rows[name]
        self._count = end
        self.version += 1

    def _block_texts(self, number: int) -> list[StoredText]:
        found = self._texts.pop(number, None)
        if found is None:
            place = self._places[number]
            try:
                packed = self._segments[place.inode].texts(place.block)
                found = read_texts(unpacked(packed, place.block.head.texts_crc))
            except JournalError:
                offset = place.block.offset
                self._damage[place.inode, offset] = Damage(offset, place.block.head.size, False)
                found = []
        self._texts[number] = found  # the last one used stands last
        while len(self._texts) > TEXT_BLOCKS:
            del self._texts[next(iter(self._texts))]
        return found


FACTS_STORED = np.dtype([(name, "<" + code) for name, code in FACTS.items()])
FACTS_WIDE = np.dtype([(name, "<u4" if name in WORDS else "<" + code) for name, code in FACTS.items()])
"""Facts in memory: words are numbered over all blocks, so there may be more of them."""
