"""The same page at `plaudit serve`, while it serves."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import aiohttp
from journals import GOOD, JUDGE, engine

from plaudit.journal.index import JournalIndex
from plaudit.journal.writer import JournalWriter
from plaudit.page.page_routes import Page
from plaudit.service.access import Access
from plaudit.service.app import Service, Shared, serving
from plaudit.service.prometheus import Prometheus


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

    assert asyncio.run(asyncio.wait_for(main(), 30)) == 1
