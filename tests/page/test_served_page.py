"""The same page at `plaudit serve`, while it serves."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
from journals import GOOD, JUDGE, engine, judged, write

from plaudit.config import Secret
from plaudit.journal.index import JournalIndex
from plaudit.journal.writer import JournalWriter
from plaudit.page.page_routes import Page
from plaudit.service.access import Access
from plaudit.service.app import Service, Shared
from plaudit.service.connections import serving
from plaudit.service.prometheus import Prometheus

TOKEN = Secret("correct-horse-battery")
LOGIN, RECORDS = "/page/api/login", "/page/api/records"


def test_the_page_of_a_server_shows_what_it_has_just_judged(tmp_path: Path) -> None:
    async def main() -> int:
        path = tmp_path / "j"
        JournalWriter(path).close()
        with engine(path, [GOOD]) as shared, JournalIndex(path) as index:
            service = Service(Shared(shared, JUDGE), Access(), Prometheus(), Page(index))
            async with (
                serving(service, host="127.0.0.1", port=0) as url,
                aiohttp.ClientSession(url) as session,
            ):
                sample = {"prompt": "1 + 1?", "response": "2"}
                async with session.post("/score", json={"samples": [sample]}) as answer:
                    assert answer.status == 200
                async with session.get("/page/") as answer:
                    assert (
                        answer.status == 200
                        and "default-src 'none'" in answer.headers["Content-Security-Policy"]
                    )
                async with session.get("/page/api/events") as answer:
                    while True:
                        line = await answer.content.readline()
                        if line.startswith(b"data:") and (found := json.loads(line[5:])["records"]):
                            return int(found)

    assert asyncio.run(main()) == 1


@contextlib.asynccontextmanager
async def closed(path: Path) -> AsyncIterator[str]:
    """A server with a token, and its page."""
    with engine(path, [GOOD]) as shared, JournalIndex(path) as index:
        service = Service(Shared(shared, JUDGE), Access(token=TOKEN), Prometheus(), Page(index))
        async with serving(service, host="127.0.0.1", port=0) as url:
            yield url


def test_a_browser_sends_the_token_once_and_reads_the_page_with_a_cookie(tmp_path: Path) -> None:
    async def main() -> None:
        write(tmp_path / "j", [judged()])
        async with closed(tmp_path / "j") as url, aiohttp.ClientSession(url, cookie_jar=jar()) as session:

            async def status(path: str, method: str = "GET", **head: str) -> int:
                kind = {"Content-Type": "application/json"} if method == "POST" else {}
                async with session.request(method, path, headers={**kind, **head}, data=b"") as answer:
                    cookies.extend(answer.headers.getall("Set-Cookie", []))
                    return answer.status

            cookies: list[str] = []
            assert [await status(path) for path in ("/page/", "/page/app.js")] == [200, 200]
            assert [await status(path) for path in (RECORDS, "/page/api/events", "/metrics")] == [401] * 3
            assert (
                await status(LOGIN, "POST") == await status(LOGIN, "POST", Authorization="Bearer no") == 401
            )
            assert not cookies
            assert await status(LOGIN, "POST", Authorization=f"Bearer {TOKEN.reveal()}") == 200
            (cookie,) = cookies
            assert {"HttpOnly", "SameSite=Strict", "Path=/page/"} <= set(cookie.split("; "))
            assert TOKEN.reveal() not in cookie
            assert await status(RECORDS) == 200
            assert [await status("/metrics"), await status("/score", "POST")] == [401, 401]

    asyncio.run(main())


def jar() -> aiohttp.CookieJar:
    return aiohttp.CookieJar(unsafe=True)  # of an address, too
