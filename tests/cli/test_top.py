"""`plaudit top`, against a served page."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from aiohttp import web
from click.testing import CliRunner
from journals import judged, write

from plaudit.cli import app
from plaudit.cli.top import lines
from plaudit.cli.view import page_app
from plaudit.journal.index import JournalIndex

IDLE: dict[str, object] = {
    "is_live": False,
    "waiting": 0,
    "oldest_s": 0.0,
    "per_s": 0.0,
    "eta_s": None,
    "series": {"waiting": []},
}


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
    assert "31 verdicts, 1 unreadable, gold gap +0.46" in shown.stdout
    assert shown.stdout.endswith("\n")


def test_an_address_without_a_scheme_will_do(url: str) -> None:
    shown = CliRunner().invoke(app, ["top", url.removeprefix("http://"), "--once"])
    assert "31 records" in shown.stdout


def test_a_server_that_is_not_there_is_named() -> None:
    shown = CliRunner().invoke(app, ["top", "http://127.0.0.1:9", "--once"])
    assert shown.exit_code == 2
    assert "http://127.0.0.1:9 does not answer (Connection refused); give the URL" in " ".join(
        shown.stderr.split()
    )


@pytest.mark.parametrize("scheme", ["http", "ftp"])
def test_a_password_in_the_url_is_not_shown(scheme: str) -> None:
    result = CliRunner().invoke(app, ["top", f"{scheme}://me:my-secret@127.0.0.1:9"])
    assert result.exit_code == 2
    assert "127.0.0.1:9 does not answer" in result.output
    assert "my-secret" not in result.output


def test_the_budget_says_what_is_set_aside_for_calls_without_a_reply(url: str) -> None:
    with urlopen(f"{url}/page/api/overview") as answer:
        found = json.load(answer)
    budget = {"limit": 5.0, "left": 1.0, "assumed": 3.5}
    news = {"records": 1, "endpoints": [], "live": IDLE, "budget": budget, "damage": []}
    shown = "\n".join(lines(news, found))
    assert "$3.5000 set aside for calls without a reply, $1.0000 of the budget left" in shown
