"""What a reply says of several names, responses or criteria: in objects, lists, tables, lines or sections."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from plaudit.errors import CutOff, UnreadableVerdict
from plaudit.judges.parse import VerdictSearch, around, check_declined, is_remark, nothing_found
from plaudit.judges.reply_author import Author, CopiedVerdict
from plaudit.judges.reply_objects import FoundAt, Reader, unique, whole_object
from plaudit.judges.reply_prose import (
    TRUTHS,
    Ends,
    Sentence,
    is_others,
    is_same,
    sentences,
    stated,
    value_of,
    with_rows_as_lines,
)
from plaudit.judges.reply_text import MAX_REPLY, own_words, said_by
from plaudit.types import Reply


def named_rows(
    reply: Reply,
    names: Iterable[str],
    *,
    find: Callable[[object], str | None],
    key: str,
    judged: str = "",
    scale: Ends = None,
) -> dict[str, Any]:
    """What the reply says of each name: a value, or an object with one; in objects, lists, tables or lines.

    Args:
        reply: What the judge said.
        names: The names that the judge was asked about.
        find: The name that a key or an id of the reply means.
        key: What the judge was asked for: the first name, or what it is to say of each.
        judged: The text under judgement.
        scale: The judge's, where it scores each.

    Raises:
        Declined: the judge declined.
        UnreadableVerdict: there is no single answer; the message says what was found.
    """
    check_declined(reply)
    said, names = said_by(reply), tuple(names)
    whole = whole_object(said, key) if len(said) <= MAX_REPLY and key not in judged else None
    if whole and all(name in whole for name in names):
        return whole
    search = _RowSearch("" if whole else own_words(said), reply, key, Author(judged, key), scale)
    search.names, search.find = names, find
    return search.collected(whole) if whole else search.rows()


_ID_KEY = re.compile(
    r"(?=.)(?:response|answer|candidate|criterion|criteria|item|check)?[\s_-]?(?:id|name|key|title|label|index|number)?",
    re.IGNORECASE,
)
"""Keys of an object whose value may be the name that the object is about."""


class _RowSearch(VerdictSearch):
    """The search for what a text says of several names."""

    names: tuple[str, ...]
    find: Callable[[object], str | None]

    def rows(self) -> dict[str, Any]:
        """What is said of each name, and what else the objects hold."""
        rows: dict[str, Any] = {}
        places: list[FoundAt] = []
        for one in Reader(self.text).objects():
            here = self.collected(unique(one.value))
            if not here:
                continue
            if self.key in here and self.author.wrote(here, self.text[one.start : one.end]):
                raise CopiedVerdict
            is_cut = self.reply.finish_reason == "length" or not set(self.names) <= here.keys()
            if is_cut and not one.is_closed:
                raise CutOff("the reply was cut off before its verdict was complete")
            place = FoundAt(here, one.start, one.end)
            if not places or here != places[-1].found:
                self.check_own(place, places[-1].end if places else 0)
                self._merge(rows, here)
            places.append(place)
        if not places:
            places = self._row_lines(rows)
        else:
            self._check_lines(rows, "\n".join(around(self.text, places)))
        if not places:
            raise nothing_found(self.text, self.reply, self.key)
        self.check_surroundings([FoundAt({self.key: rows}, place.start, place.end) for place in places])
        for sentence in sentences(self.text[places[-1].end :]):
            if _SHOULD.search(sentence.text) and any(name in sentence.text for name in self.names):
                raise UnreadableVerdict(f"what follows the verdict may take it back: {sentence.text[:40]!r}")
        return rows

    def _merge(self, rows: dict[str, Any], here: Mapping[str, Any]) -> None:
        for name, row in here.items():
            known = rows.get(name)
            if isinstance(known, dict) and isinstance(row, dict) and known.keys().isdisjoint(row):
                row = known | row  # noqa: PLW2901 - a list of reasons, and one of scores
            elif name in rows and name in self.names:
                raise UnreadableVerdict(f"the reply speaks of {name[:20]} twice")
            rows[name] = row

    def collected(self, value: Any) -> dict[str, Any]:
        """The rows in an object: by name, or with their name under some key."""
        rows: dict[str, Any] = {}
        self._collect(value, rows)
        return rows

    def _collect(self, value: Any, rows: dict[str, Any]) -> None:
        if isinstance(value, list):
            for item in value:
                self._collect(item, rows)
        if not isinstance(value, dict):
            return
        keys = {key: self.find(key) for key in value}
        ids = [key for key in value if _ID_KEY.fullmatch(key) and isinstance(value[key], (str, int))]
        named = [(key, name) for key in ids if (name := self.find(value[key]))]
        if any(keys.values()):
            for key, inner in value.items():
                self._merge(rows, {keys[key] or key: inner})
        elif named:
            key, name = named[0]
            self._merge(rows, {name: {other: inner for other, inner in value.items() if other != key}})
        elif ids and not any(isinstance(inner, (dict, list)) for inner in value.values()):
            raise UnreadableVerdict(
                f"the reply speaks of {str(value[ids[0]])[:20]!r}, which was not asked for"
            )
        else:
            for key, inner in value.items():
                if not is_others(key):
                    self._collect(inner, rows)

    def _row_lines(self, rows: dict[str, Any]) -> list[FoundAt]:
        """Lines that begin with a name and state its value."""
        places = []
        self.text, self.is_line = with_rows_as_lines(self.text, self.key), True
        for sentence, name, rest in self._named_lines(self.text):
            if (value := value_of(rest)) is not None:
                self._merge(rows, {name: value})
                places.append(FoundAt({}, sentence.start, sentence.end))
        return places or self._sections(rows)

    def _sections(self, rows: dict[str, Any]) -> list[FoundAt]:
        """Scores below headings that are names."""
        places, name, start = [], None, 0
        for sentence in sentences(self.text) if self.scale else ():
            if heading := self.find(sentence.text.strip(" :")):
                name, start = heading, sentence.start
            if name and (one := stated(sentence, "score", self.scale)):
                self._merge(rows, {name: one.value})
                places.append(FoundAt({}, start, sentence.end))
        return places

    def _check_lines(self, rows: Mapping[str, Any], beside: str) -> None:
        """Raises UnreadableVerdict where a line beside the objects says something else."""
        for _, name, rest in self._named_lines(beside):
            value = value_of(rest, is_sure=False)
            if value and name in rows and not _is_same_row(rows[name], value):
                raise UnreadableVerdict(f"the prose says {value[:12]} of {name[:20]}, the verdict another")
        if self.scale and any(stated(sentence, "score", self.scale) for sentence in sentences(beside)):
            raise UnreadableVerdict("the prose around the verdicts states a score, too")

    def _named_lines(self, text: str) -> Iterator[tuple[Sentence, str, str]]:
        for sentence in sentences(text):
            box = _BOX.match(sentence.text)
            label, *rest = _NAMED.split(_BULLET.sub("", sentence.text[box.end() if box else 0 :]), maxsplit=1)
            name = self.find(label) if (rest or box) and len(label.split()) <= MAX_LABEL else None
            if name:
                yield sentence, name, ("no" if box[1].isspace() else "yes") if box else rest[0]


def _is_same_row(row: Any, value: str) -> bool:
    """Whether what an object and what a line say of a name is the same."""
    inner = [row] if not isinstance(row, dict) else [one for one in row.values() if not is_remark(one)]
    return any(is_same(_meant(value), _meant(one)) for one in inner)


def _meant(value: object) -> str:
    """A value as text, and the same text for all that stands for true, or for false."""
    folded = str(value).strip().casefold()
    return str(TRUTHS.get(folded, folded))


_SHOULD = re.compile(r"\b(?:should|must|ought)\b", re.IGNORECASE)
_BOX = re.compile(r"\W*?\[([ xX✓✔])\]\s")
_BULLET = re.compile(r"^(?:[-•·|\"'\s]|\d{1,2}[.)]\s)++")
_NAMED = re.compile(r"[\"'\s]*(?::|=|—|–|->|→|\||\s-\s)")
MAX_LABEL = 4
"""Words of a name at the start of a line."""
