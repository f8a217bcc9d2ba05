"""The page in a real browser: Debian's chromium, headless. Run by `make test-browser`."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web
from chromium import Tab, browser
from journals import judged, write
from msgspec import structs

from plaudit.cli.view import page_app
from plaudit.journal.index import JournalIndex

pytestmark = pytest.mark.browser
LOADED = "document.querySelector('tr.row[data-id]') && document.querySelector('#alive svg')"
ROWS = "[...document.querySelectorAll('tr.row[data-id]')]"
AXE = os.environ.get("PLAUDIT_TEST_AXE", "")

HOSTILE = (
    "<script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">"
    "<a href=\"javascript:document.title='owned'\">click</a>",
    "\u202egnitirw sdrawkcab\u202c \u200b\ufeff",
    "\x1b[31mred\x1b[0m \x07 \x00",
    "w" * 1_000_000,
    "{{7*7}} ${7*7} </textarea></style></script>",
)


@contextlib.asynccontextmanager
async def opened(path: Path, *, hash_: str = "") -> AsyncIterator[tuple[Tab, str]]:
    """The page of a journal in a fresh browser, loaded."""
    with JournalIndex(path) as index:
        runner = web.AppRunner(
            page_app(index), access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            async with browser() as tab:
                await tab.size(1280, 900)
                await tab.open(f"{url}/page/{hash_}")
                await tab.until(LOADED)
                yield tab, url
        finally:
            await runner.cleanup()


def visit(path: Path, look: Callable[[Tab], Awaitable[None]], *, hash_: str = "") -> None:
    """Open the page and look; at the end nothing was fetched from elsewhere, and nothing complained."""

    async def main() -> None:
        async with opened(path, hash_=hash_) as (tab, url):
            await look(tab)
            assert tab.complaints == []
            assert [one for one in tab.requested if not one.startswith((url, "about:", "data:"))] == []

    asyncio.run(main())


def training(path: Path, count: int = 400) -> Path:
    verdicts = [
        judged(
            n, score=n % 11, prompt=f"question {n // 8}", group=str(n // 8), extra={"training_step": n // 80}
        )
        for n in range(count)
    ]
    write(path, [*verdicts, judged(count, score=None, extra={"training_step": 4})])
    return path


async def first_cells(tab: Tab, column: int) -> list[str]:
    found: list[str] = await tab.js(f"{ROWS}.slice(0, 5).map((r) => r.children[{column}].textContent)")
    return found


async def choose(tab: Tab, id_: str, value: str) -> None:
    await tab.js(
        f"(() => {{ const e = document.getElementById('{id_}'); e.value = '{value}'; "
        "e.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )


def test_filter_sort_and_search(tmp_path: Path) -> None:
    async def look(tab: Tab) -> None:
        await choose(tab, "sort", "unit:asc")
        await tab.until("document.querySelector('tr.row[data-id] .score').textContent === '0.00'")
        await choose(tab, "sort", "unit:desc")
        await tab.until("document.querySelector('tr.row[data-id] .score').textContent === '1.00'")
        await choose(tab, "status", "missing")
        await tab.until("document.getElementById('count').textContent.startsWith('1 of')")
        assert await first_cells(tab, 1) == ["unreadable"]
        await choose(tab, "status", "")
        await choose(tab, "text", "answer 377$")
        await tab.until("document.querySelector('tr.row[data-id]').children[3].textContent === 'answer 377'")
        assert await first_cells(tab, 3) == ["answer 377"]
        await choose(tab, "text", "")
        await choose(tab, "steps", "2-3")
        await tab.until("document.getElementById('count').textContent.startsWith('160 of')")

    visit(training(tmp_path / "j"), look)


def test_open_a_record_by_keys_compare_its_group_and_close_it(tmp_path: Path) -> None:
    async def look(tab: Tab) -> None:
        await choose(tab, "sort", "time:asc")
        await tab.until("document.querySelector('tr.row[data-id]').children[3].textContent === 'answer 0'")
        await tab.js("document.getElementById('scroller').focus()")
        for _ in range(2):
            await tab.press("ArrowDown")
        await tab.press("Enter")
        await tab.until("document.querySelector('#record h2')?.textContent.startsWith('Score 0.20')")
        assert await tab.js("document.querySelectorAll('#record .side button').length") == 8
        text = await tab.js("document.getElementById('record').innerText")
        assert "judge answer 2" in text and '{"reason": "because", "score": 7}' in text
        await tab.js("document.querySelectorAll('#record .side button')[5].click()")
        await tab.until("document.querySelector('#record h2').textContent.startsWith('Score 0.50')")
        await tab.press("Escape")
        await tab.until(
            "document.getElementById('record').hidden && document.activeElement.id === 'scroller'"
        )
        await tab.press("/")
        await tab.until("document.activeElement.id === 'text'")

    visit(training(tmp_path / "j"), look)


def test_a_link_opens_its_record(tmp_path: Path) -> None:
    path = training(tmp_path / "j")
    with JournalIndex(path) as index:
        id_ = index.id_of(123)

    async def look(tab: Tab) -> None:
        await tab.until("document.getElementById('record').innerText.includes('answer 123')")

    visit(path, look, hash_=f"#{id_}")


def test_a_hundred_thousand_records_scroll(tmp_path: Path) -> None:
    async def look(tab: Tab) -> None:
        await choose(tab, "sort", "time:asc")
        await tab.until("document.querySelector('tr.row[data-id]').children[3].textContent === 'answer 0'")
        await tab.js("document.getElementById('scroller').focus()")
        await tab.press("End")
        await tab.until(f"{ROWS}.pop()?.children[3].textContent === 'answer 99999'")
        assert await tab.js("document.querySelectorAll('#rows tr').length") < 120
        await tab.js("document.getElementById('scroller').scrollTop = 50000 * 31")
        await tab.until(f"{ROWS}.some((r) => r.children[3].textContent === 'answer 50000')")

    path = tmp_path / "j"
    for start in range(0, 100_000, 20_000):
        write(path, map(judged, range(start, start + 20_000)))
    visit(path, look)


@pytest.mark.parametrize("text", HOSTILE, ids=["markup", "bidi", "ansi", "long", "templates"])
def test_hostile_texts_are_shown_as_text(tmp_path: Path, text: str) -> None:
    one = judged(prompt=text, response=text, reference=text, group=text, extra={text[:50]: text[:50]})
    one = structs.replace(one, exchanges=(structs.replace(one.exchanges[0], reply=text, error=text),))
    write(tmp_path / "j", [one, one], run=text[:40])

    async def look(tab: Tab) -> None:
        await tab.js("document.querySelector('tr.row[data-id]').click()")
        await tab.until("document.querySelectorAll('#record pre').length > 4")
        assert await tab.js("document.title") == "plaudit"
        assert (
            await tab.js("document.querySelectorAll('main script, main img, a[href^=javascript]').length")
            == 0
        )
        assert not await tab.js("/[\\u0000-\\u0008\\u001b\\u202e]/.test(document.body.innerText)")
        assert await tab.js("document.documentElement.scrollWidth <= innerWidth")

    visit(tmp_path / "j", look)


def test_numbers_move_while_a_run_is_under_way(tmp_path: Path) -> None:
    path = training(tmp_path / "j", 50)

    async def look(tab: Tab) -> None:
        await tab.until("document.getElementById('state').textContent.includes('51 records')")
        await asyncio.to_thread(write, path, [judged(n) for n in range(20)])
        await tab.until("document.getElementById('state').textContent.includes('71 records')")
        await tab.until("document.getElementById('count').textContent === '71 of 71'")

    visit(path, look)


@pytest.mark.parametrize(("width", "is_dark"), [(1280, False), (1280, True), (390, False)])
def test_axe_finds_nothing_serious(tmp_path: Path, width: int, is_dark: bool) -> None:
    if not AXE:
        pytest.skip("no axe-core; run: make test-browser")
    source = Path(AXE).read_text(encoding="utf-8")

    async def look(tab: Tab) -> None:
        await tab.size(width, 900, is_dark=is_dark)
        await tab.js("document.querySelector('tr.row[data-id]').click()")
        await tab.until("document.querySelector('#record pre')")
        await tab.js(source + "; 0")
        found = await tab.js(
            "axe.run().then((r) => r.violations.filter((v) => ['serious', 'critical'].includes(v.impact))"
            ".map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`))"
        )
        assert found == []
        assert await tab.js("document.documentElement.scrollWidth <= innerWidth")

    visit(training(tmp_path / "j"), look)
