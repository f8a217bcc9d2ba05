"""The page's routes: static files from a fixed table, questions to a journal as JSON, news once a second.

GET /page/                    the page
GET /page/api/overview        what the chosen records say together
GET /page/api/records         some of them, in order
GET /page/api/record/ID       one in full, with its group and its other verdicts
GET /page/api/events          what is new, as server-sent events

A server with a token gives the files to everybody, and the rest to who has it (`service/access.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Callable
from importlib import resources
from itertools import islice
from typing import Any

import msgspec
import numpy as np
from aiohttp import web

from plaudit.errors import ConfigError
from plaudit.journal.index import Array, JournalIndex
from plaudit.journal.query import Query, overview
from plaudit.page.live_numbers import news

ROOT = "/page/"
FILES = {
    "": ("index.html", "text/html"),
    "app.js": ("app.js", "text/javascript"),
    "charts.js": ("charts.js", "text/javascript"),
    "style.css": ("style.css", "text/css"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
PUBLIC = frozenset({ROOT[:-1], *(ROOT + name for name in FILES)})
"""What holds nothing of a journal."""
EVERY = 1.0
"""Seconds between two looks at the journal."""
MOST_ROWS = 500
MOST_BESIDE = 64
"""Records that are shown beside one: of its group, of its sample."""
SNIPPET = 200
KEPT_ANSWERS = 16


class Page:
    """A journal in a browser.

    Args:
        index: What is shown; it is read again every second while somebody looks.
        takes_patterns: Whether a text that is searched for is a pattern. One that never stops matching would
            stop the whole process, so where others wait for it, a text is looked for as it stands.
    """

    def __init__(self, index: JournalIndex, *, takes_patterns: bool = True) -> None:
        self._index = index
        self._takes_patterns = takes_patterns
        self._kept: dict[tuple[Any, Query, int], Any] = {}
        """Answers, as long as nothing is new: scrolling asks for the same rows again and again."""
        self._files = {
            name: (resources.files("plaudit.page").joinpath("static", file).read_bytes(), kind)
            for name, (file, kind) in FILES.items()
        }
        self._looking: asyncio.Future[bool] | None = None
        self._stopping = asyncio.Event()

    def add_routes(self, app: web.Application) -> None:
        """Mount the page at /page/."""
        for name in FILES:
            app.router.add_get(ROOT + name, self._file)
        app.router.add_get(ROOT[:-1], self._moved)
        app.router.add_get(ROOT + "api/overview", self._overview)
        app.router.add_get(ROOT + "api/records", self._records)
        app.router.add_get(ROOT + "api/record/{id}", self._record)
        app.router.add_get(ROOT + "api/events", self._events)
        app.on_shutdown.append(self._stop)

    def _query_of(self, request: web.Request) -> Query:
        asked = request.query
        words: dict[str, Any] = {
            name: asked.get(name, "")
            for name in ("run", "judge", "status", "cause", "steps", "text", "group", "sample")
        }
        if not self._takes_patterns:
            words["text"] = re.escape(words["text"])
        return Query(**words, order=asked.get("order", "time"), is_descending="descending" in asked)

    async def _moved(self, _: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": ROOT, **HEADERS})

    async def _file(self, request: web.Request) -> web.Response:
        data, kind = self._files[request.path.removeprefix(ROOT)]
        return web.Response(body=data, headers={**HEADERS, "Content-Type": f"{kind}; charset=utf-8"})

    async def _overview(self, request: web.Request) -> web.Response:
        query = self._query_of(request)
        await self._refresh()  # the first who looks should see what was written before
        return _json(await self._answer(self._together, query))

    async def _answer(self, find: Callable[[Query], Any], query: Query) -> Any:
        key = find, query, self._index.version
        if key not in self._kept:
            self._kept[key] = await asyncio.to_thread(find, query)
            while len(self._kept) > KEPT_ANSWERS:
                del self._kept[next(iter(self._kept))]
        return self._kept[key]

    def _together(self, query: Query) -> bytes:
        found = overview(self._index, query.rows(self._index))
        sessions = self._index.sessions.values()
        judges = {self._index.words[number] for number in np.unique(self._index.facts["judge"])}
        found["choices"] = {"runs": {one.run: one.started for one in sessions}, "judges": sorted(judges)}
        return msgspec.json.encode(found)

    async def _records(self, request: web.Request) -> web.Response:
        query, offset = self._query_of(request), _number(request, "offset", 0)
        if offset == 0:
            await self._refresh()
        rows: Array = await self._answer(self._found, query)
        limit = min(_number(request, "limit", 100), MOST_ROWS)
        shown = await asyncio.to_thread(self._summaries, rows[offset : offset + limit])
        found = {"total": len(rows), "all": self._index.verdicts, "rows": shown}
        return _json(msgspec.json.encode(found))

    def _found(self, query: Query) -> Array:
        return query.rows(self._index)

    async def _record(self, request: web.Request) -> web.Response:
        await self._refresh()
        row = self._index.row_of(request.match_info["id"])
        if row is None:
            return _json(msgspec.json.encode({"error": "there is no such record"}), status=404)
        return _json(await asyncio.to_thread(self._in_full, row))

    def _in_full(self, row: int) -> bytes:
        facts = self._index.facts
        own = facts[row]
        is_verdict = facts["panel"] == 0
        group = is_verdict & (facts["group"] == own["group"]) & (facts["step"] == own["step"])
        group &= (facts["run"] == own["run"]) & (facts["judge"] == own["judge"])
        same = is_verdict & (facts["sample"] == own["sample"])
        found = {
            "record": self._index.record(row).as_json(),
            "group": self._summaries(np.flatnonzero(group)[:MOST_BESIDE]),
            "same_sample": self._summaries(np.flatnonzero(same)[-MOST_BESIDE:]),
            "questions": self._summaries(islice(self._index.questions(row), MOST_BESIDE)),
        }
        return msgspec.json.encode(found, enc_hook=repr)

    def _summaries(self, rows: Any) -> list[dict[str, Any]]:
        return [self._summary(int(row)) for row in rows if row < len(self._index)]  # files may go meanwhile

    def _summary(self, row: int) -> dict[str, Any]:
        facts, text = self._index.facts_of(row), self._index.text(row)
        names = ("unit", "status", "cause", "step", "judge", "run", "response_chars", "latency_s")
        return {
            "id": self._index.id_of(row),
            **{name: facts[name] for name in names},
            "response": text.response[:SNIPPET],
            "reason": (text.reason or text.error or facts["cause"])[:SNIPPET],
        }

    # -- news ---------------------------------------------------------------------------------------------

    async def _events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            last = b""
            while not self._stopping.is_set():
                await self._refresh()
                data = msgspec.json.encode(news(self._index, now=time.time()))
                await response.write(b"data: " + data + b"\n\n" if data != last else b":\n\n")
                last = data
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), EVERY)
        return response

    async def _stop(self, _: web.Application) -> None:
        self._stopping.set()

    async def _refresh(self) -> None:
        """Read what is new, once for all who look."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.ensure_future(asyncio.to_thread(self._index.refresh))
        await asyncio.shield(self._looking)


def _number(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, str(default))
    if not text.isdigit() or len(text) > 12:
        raise ConfigError("should be a whole number", setting=name, value=text)
    return int(text)


def _json(data: bytes, status: int = 200) -> web.Response:
    return web.Response(body=data, status=status, headers={**HEADERS, "Content-Type": "application/json"})
