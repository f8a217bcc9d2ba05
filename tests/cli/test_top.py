"""`plaudit top`, against a served page."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web
from click.testing import CliRunner
from journals import judged, write

from plaudit.cli import app
from plaudit.cli.view import page_app
from plaudit.journal.index import JournalIndex


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    scored = [judged(n, score=float(n % 11), extra={"gold": 0.0}) for n in range(30)]
    write(tmp_path / "j", [*scored, judged(30, score=None)])
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    with JournalIndex(tmp_path / "j") as index:
        runner = web.AppRunner(page_app(index), access_log=None, shutdown_timeout=0.1)

        async def start() -> str:
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            return f"http://127.0.0.1:{runner.addresses[0][1]}"

        yield asyncio.run_coroutine_threadsafe(start(), loop).result()
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_it_shows_the_panels_as_text(url: str) -> None:
    shown = CliRunner().invoke(app, ["top", url, "--once"])
    assert shown.exit_code == 0, shown.output
    assert "31 records" in shown.stdout and "unreadable" in shown.stdout and "0.4" in shown.stdout
    assert "31 verdicts, 1 unreadable, gold gap +0.46" in " ".join(shown.stdout.split())


def test_a_server_that_is_not_there_is_named() -> None:
    assert CliRunner().invoke(app, ["top", "http://127.0.0.1:9", "--once"]).exit_code == 2
