"""The page in a real browser: Debian's chromium, headless. Run by `make test-browser`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web
from chromium import Tab, browser
from journals import GOOD, JUDGE, engine, judged, write
from loopback import reserved_port
from msgspec import structs

from plaudit import Endpoint, Engine, Reply, Rubric, Sample
from plaudit.cli.view import page_app
from plaudit.config import Secret
from plaudit.journal.activity import Activity, EndpointActivity
from plaudit.journal.index import JournalIndex
from plaudit.page.page_routes import Page
from plaudit.service.access import Access
from plaudit.service.app import Service, Shared
from plaudit.service.connections import serving
from plaudit.service.prometheus import Prometheus

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
async def served(path: Path, *, port: int = 0) -> AsyncIterator[str]:
    """The URL of a server of the page of a journal."""
    with JournalIndex(path) as index:
        runner = web.AppRunner(
            page_app(index), access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port, reuse_address=True).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


@contextlib.asynccontextmanager
async def opened(path: Path, *, hash_: str = "") -> AsyncIterator[tuple[Tab, str]]:
    """The page of a journal in a fresh browser, loaded."""
    async with served(path) as url, browser() as tab:
        await tab.size(1280, 900)
        await tab.open(f"{url}/page/{hash_}")
        await tab.until(LOADED)
        yield tab, url


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
        said = "document.getElementById('chosen').textContent"
        assert await tab.js(said) == "3 of 401: score 0.20, ok, answer 2"  # for a screen reader
        await tab.press("Enter")
        await tab.until("document.querySelector('#record h2')?.textContent.startsWith('Score 0.20')")
        assert await tab.js("document.querySelectorAll('#record .side button').length") == 8
        text = await tab.js("document.getElementById('record').innerText")
        assert "judge answer 2" in text and '{"reason": "because", "score": 7}' in text
        scores = "[...document.querySelectorAll('#record .side b')].map((b) => b.textContent).join()"
        assert await tab.js(scores) == "0.70,0.60,0.50,0.40,0.30,0.20,0.10,0.00"
        await tab.js("document.querySelectorAll('#record .side button')[2].click()")
        await tab.until("document.querySelector('#record h2').textContent.startsWith('Score 0.50')")
        await tab.press("k")
        await tab.until("document.querySelector('#record h2').textContent.startsWith('Score 0.10')")
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
        await tab.until("document.getElementById('record').getBoundingClientRect().top < innerHeight / 2")

    visit(path, look, hash_=f"#{id_}")


def test_a_link_to_a_record_that_is_not_there_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(training(tmp_path / "j"), hash_="#deadbeef00.7") as (tab, _):
            await tab.until(
                "document.getElementById('record').innerText.includes('no record deadbeef00.7 here')"
            )
            assert "dropped for newer" in await tab.js("document.getElementById('record').innerText")
            await tab.press("Escape")
            await tab.until("document.getElementById('record').hidden")
            assert await tab.js("location.hash") == ""

    asyncio.run(main())


def test_the_page_goes_on_when_its_server_comes_back(tmp_path: Path) -> None:
    path = training(tmp_path / "j", 50)
    state = "document.getElementById('state').textContent"

    async def main(port: int) -> None:
        async with browser() as tab:
            async with served(path, port=port) as url:
                await tab.open(f"{url}/page/")
                await tab.until(f"{state} === '51 records'")
            await tab.until(f"{state}.startsWith('the server is gone')")
            await asyncio.to_thread(write, path, [judged(n) for n in range(9)])
            async with served(path, port=port):
                await tab.until(f"{state} === '60 records'")
                await tab.until("document.getElementById('count').textContent === '60'")

    with reserved_port() as port:
        asyncio.run(main(port))


def test_a_hidden_tab_is_drawn_when_it_is_looked_at(tmp_path: Path) -> None:
    path = training(tmp_path / "j", 50)
    hide = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true});"
    state = "document.getElementById('state').textContent"

    async def look(tab: Tab) -> None:
        await tab.until(f"{state} === '51 records'")
        await tab.js(hide % "true")
        await tab.js("window.heard = 0; new EventSource('api/events').onmessage = () => heard++; 0")
        await tab.until("window.heard > 0")
        await asyncio.to_thread(write, path, [judged(n) for n in range(9)])
        await tab.until("window.heard > 1")
        assert await tab.js(state) == "51 records"
        await tab.js(hide % "false" + "document.dispatchEvent(new Event('visibilitychange'))")
        await tab.until(f"{state} === '60 records'")

    visit(path, look)


def test_many_judges_and_endpoints_leave_the_verdicts_within_reach(tmp_path: Path) -> None:
    path = tmp_path / "j"
    names = [f"http://host-{n}.example/v1 a-model-with-a-long-name-{n}" for n in range(50)]
    busy = Activity(
        endpoints={
            name: EndpointActivity(limit=8, ok=n, state="open" if n == 7 else "closed")
            for n, name in enumerate(names)
        }
    )
    verdicts = [structs.replace(judged(n), judge=Rubric(f"Is it {n}?")) for n in range(200)]
    write(path, verdicts, look=lambda: busy, settings={"endpoints": [{"url": name} for name in names]})

    async def look(tab: Tab) -> None:
        await tab.until("document.querySelectorAll('#endpoints tbody tr').length === 50")
        assert await tab.js("document.getElementById('browser').offsetTop < 3000")
        first = await tab.js("document.querySelector('#endpoints tbody tr').innerText")
        assert "host-7.example" in first and "it is away" in first
        assert await tab.js("document.querySelectorAll('#sound tbody tr').length") == 200

    visit(path, look)


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


@pytest.mark.parametrize("text", HOSTILE, ids=["markup", "bidi", "ansi", "long", "templates"])
def test_hostile_texts_are_text_in_a_notebook_too(tmp_path: Path, text: str) -> None:
    replies = [Reply(json.dumps({"reason": text, "score": 3})), Reply(text), Reply(text), Reply(text)]
    with engine(tmp_path / "j", [*replies, OSError(text)]) as one:
        pending = one.submit([Sample("q", "a"), Sample("q", "b")], JUDGE)
        verdicts = pending.result()
    file = tmp_path / "cell.html"
    shown = f"{pending._repr_html_()}{verdicts._repr_html_()}"  # type: ignore[attr-defined]
    file.write_text(f"<!doctype html><meta charset=utf-8><title>cell</title>{shown}", encoding="utf-8")

    async def main() -> None:
        async with browser() as tab:
            await tab.open(file.as_uri())
            assert await tab.js("document.title") == "cell"
            assert await tab.js("document.querySelectorAll('script, img, a, style').length") == 0
            assert await tab.js("document.querySelectorAll('table').length") == 2
            assert await tab.js("document.documentElement.outerHTML.length") < 10_000
            assert tab.complaints == []

    asyncio.run(main())


def test_numbers_move_while_a_run_is_under_way(tmp_path: Path) -> None:
    path = training(tmp_path / "j", 50)

    async def look(tab: Tab) -> None:
        await tab.until("document.getElementById('state').textContent.includes('51 records')")
        await asyncio.to_thread(write, path, [judged(n) for n in range(20)])
        await tab.until("document.getElementById('state').textContent.includes('71 records')")
        await tab.until("document.getElementById('count').textContent === '71'")

    visit(path, look)


class SlowTransport:
    """Answers when the test lets it."""

    def __init__(self) -> None:
        self._calls = asyncio.Semaphore(0)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def send(self, request: object) -> Reply:
        self._loop = asyncio.get_running_loop()
        await self._calls.acquire()
        return GOOD

    def let_go(self) -> None:
        """Answer one call, from another thread."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._calls.release)

    async def close(self) -> None:
        pass


def test_the_panels_follow_a_run_that_is_under_way(tmp_path: Path) -> None:
    path = tmp_path / "j"
    write(path, [judged()])
    transport = SlowTransport()
    figure = "document.querySelector('#waiting .figures b').textContent"
    endpoint = "document.querySelector('#endpoints').innerText"

    async def look(tab: Tab) -> None:
        with Engine(
            endpoints=[Endpoint("http://host/v1", "m")],
            cache=None,
            transport=lambda _: transport,
            journal=path,
        ) as engine:
            samples = [Sample(f"question {n}", f"answer {n}") for n in range(30)]
            pending = engine.submit(samples, JUDGE)
            await tab.until(
                f"document.getElementById('state').classList.contains('live') && {figure} === '30'"
            )
            for done in (10, 20, 30):
                for _ in range(10):
                    transport.let_go()
                await tab.until(f"{figure} === '{30 - done}' && {endpoint}.includes('{done} answered')")
            assert len(await asyncio.to_thread(pending.result)) == 30
        await tab.until("document.getElementById('count').textContent === '31'")

    visit(path, look)


def test_a_click_on_a_step_lists_its_verdicts_the_best_first(tmp_path: Path) -> None:
    async def look(tab: Tab) -> None:
        place = await tab.js(
            "(() => { const box = document.querySelector('#alive svg').getBoundingClientRect();"
            " return [box.right - 12, box.top + 50]; })()"
        )
        await tab.click(*place)
        await tab.until("document.getElementById('count').textContent === '81 of 401'")
        assert await tab.js("document.getElementById('clear').textContent") == "step 4 ✕"
        assert await first_cells(tab, 0) == ["1.00"] * 5
        assert await tab.js("location.search") == "?sort=unit%3Adesc&only-steps=4"
        await tab.js("document.getElementById('clear').click()")
        await tab.until("document.getElementById('count').textContent === '401'")

    visit(training(tmp_path / "j"), look)


def test_a_click_on_a_column_sorts_by_it_one_way_and_the_other(tmp_path: Path) -> None:
    score = "document.querySelector('th[data-sort=unit]')"

    async def look(tab: Tab) -> None:
        for way, first in (("descending", "1.00"), ("ascending", "0.00")):
            await tab.js(f"{score}.querySelector('button').click()")
            await tab.until(f"document.querySelector('tr.row[data-id] .score').textContent === '{first}'")
            assert await tab.js(f"{score}.getAttribute('aria-sort')") == way

    visit(training(tmp_path / "j"), look)


def test_the_address_keeps_what_was_chosen(tmp_path: Path) -> None:
    async def look(tab: Tab) -> None:
        await tab.until("document.getElementById('count').textContent === '1 of 401'")
        assert await first_cells(tab, 1) == ["unreadable"]

    visit(training(tmp_path / "j"), look, hash_="?status=missing&steps=4")


def test_a_million_rows_can_be_reached_with_the_scroll_bar(tmp_path: Path) -> None:
    """No browser scrolls over 30,000 kilopixels: a row takes less of the bar than it is tall."""

    async def look(tab: Tab) -> None:
        await tab.js(
            "window.fetch = ((real) => async (url, ...more) => { const answer = await real(url, ...more);"
            " if (!String(url).includes('api/records')) return answer; const body = await answer.json();"
            " const offset = +new URLSearchParams(String(url).split('?')[1]).get('offset');"
            " const rows = Array.from({length: 100}, (_, n) => ({...body.rows[0] ?? window.row,"
            " id: `a.${offset + n}`, response: `row ${offset + n}`}));"
            " window.row ??= rows[0]; return {ok: true, json: async () => ({total: 1e6, all: 1e6, rows})}; })"
            "(window.fetch)"
        )
        await choose(tab, "sort", "time:asc")
        await tab.until("document.getElementById('count').textContent === '1M'")
        await tab.js("document.getElementById('scroller').focus()")
        await tab.press("End")
        await tab.until(f"{ROWS}.pop()?.children[3].textContent === 'row 999999'")
        box = "document.getElementById('scroller')"
        assert await tab.js(f"{box}.scrollHeight < 16e6")
        await tab.js(f"{box}.scrollTop = {box}.scrollHeight / 2")
        await tab.until(f"{ROWS}.some((r) => /^row (499|500)/.test(r.children[3].textContent))")
        seen = await tab.js(
            f"{ROWS}.some((r) => {{ const top = r.getBoundingClientRect().top - "
            f"{box}.getBoundingClientRect().top; return top > 0 && top < {box}.clientHeight; }})"
        )
        assert seen

    visit(training(tmp_path / "j"), look)


TOKEN = "a-token-of-some-length"


@contextlib.asynccontextmanager
async def guarded(index: JournalIndex) -> AsyncIterator[str]:
    """The URL of a server that asks for a token."""
    with Engine(endpoints=[Endpoint("http://127.0.0.1:9/v1", "m")], cache=None) as engine:
        access = Access(token=Secret(TOKEN))
        service = Service(Shared(engine, JUDGE), access, Prometheus(), Page(index))
        async with serving(service, host="127.0.0.1", port=0) as url:
            yield url


@pytest.mark.parametrize("is_in_link", [False, True])
def test_a_server_with_a_token_asks_for_it_and_then_shows_the_page(tmp_path: Path, is_in_link: bool) -> None:
    token = TOKEN

    async def main() -> None:
        with JournalIndex(training(tmp_path / "j")) as index:
            async with guarded(index) as url, browser() as tab:
                await tab.open(f"{url}/page/{f'#token={token}' if is_in_link else ''}")
                if not is_in_link:
                    await tab.until("document.activeElement.id === 'token'")
                    assert "answer" not in await tab.js("document.body.innerText")
                    for character in token:
                        await tab.press(character)
                    await tab.press("Enter")
                await tab.until(LOADED)
                await tab.until("document.getElementById('state').textContent === '401 records'")
                assert token not in await tab.js("location.href + document.cookie")
                assert [one for one in tab.requested if token in one.partition("#")[0]] == []
                await tab.open(f"{url}/page/?status=missing")  # with the cookie alone
                await tab.until("document.getElementById('count').textContent === '1 of 401'")

    asyncio.run(main())


def odd(path: Path) -> Path:
    """A journal with something in every panel: two judges, gold, canaries, what is lost, turns, parts."""
    turns = ({"role": "assistant", "content": "look it up"}, {"role": "tool", "content": "42"})
    extra = {"training_step": 1, "gold": 0.0}
    several = [
        *(judged(n, score=n % 11, group="g", extra={**extra, "training_step": n % 5}) for n in range(40)),
        *(judged(n, score=9.0, extra={**extra, "canary": 5.0}) for n in range(50, 60)),
        *(judged(n, score=None, extra=extra) for n in range(60, 65)),
        structs.replace(judged(70, prompt=turns[:1], response=turns), judge=Rubric("Is it brief?")),
    ]
    several.append(structs.replace(several[0], judge=Rubric("Is it kind?"), verdict=several[3].verdict))
    parts = replace(several[0].verdict, parts={"clear": 1.0, "brief": 0.5})
    write(path, [*several, structs.replace(several[0], verdict=parts)])
    return path


def hacked(path: Path) -> Path:
    """A training whose scores leave the true ones behind from step 10 on."""
    write(
        path,
        [
            judged(
                n,
                score=5 + min(5, max(0, n // 20 - 10)),
                group=str(n // 4),
                extra={"training_step": n // 20, "gold": 0.5},
            )
            for n in range(400)
        ],
    )
    return path


def test_a_hacked_judge_is_named_at_the_top_with_its_verdicts(tmp_path: Path) -> None:
    async def look(tab: Tab) -> None:
        found = await tab.js("document.getElementById('findings').innerText")
        assert "From about step 10 on, the judge gives more and more than the samples deserve" in found
        assert await tab.js(
            "document.getElementById('findings').getBoundingClientRect().bottom < innerHeight"
        )
        await tab.js("document.querySelector('#findings button').click()")
        await tab.until("document.getElementById('clear').textContent === 'step 10-19 ✕'")
        assert await first_cells(tab, 0) == ["1.00"] * 5

    visit(hacked(tmp_path / "j"), look)


def test_nothing_is_said_to_stand_out_where_nothing_does(tmp_path: Path) -> None:
    async def look(tab: Tab) -> None:
        assert await tab.js("document.getElementById('findings').hidden")

    visit(training(tmp_path / "j"), look)


SERIOUS = (
    "axe.run().then((r) => r.violations.filter((v) => ['serious', 'critical'].includes(v.impact))"
    ".map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`))"
)


@pytest.mark.parametrize("made", [training, odd, hacked])
@pytest.mark.parametrize(("width", "is_dark"), [(1280, False), (1280, True), (390, False), (390, True)])
def test_axe_finds_nothing_serious(
    tmp_path: Path, width: int, is_dark: bool, made: Callable[[Path], Path]
) -> None:
    source = axe()

    async def look(tab: Tab) -> None:
        await tab.size(width, 900, is_dark=is_dark)
        await tab.js(source + "; 0")
        for _ in ("the list", "a record"):
            assert await tab.js(SERIOUS) == []
            assert await tab.js("document.documentElement.scrollWidth <= innerWidth")
            await tab.js("document.querySelector('tr.row[data-id]').click()")
            await tab.until("document.querySelector('#record pre')")

    visit(made(tmp_path / "j"), look)


def axe() -> str:
    """The source of axe-core."""
    if not AXE:
        pytest.skip("no axe-core; run: make test-browser")
    return Path(AXE).read_text(encoding="utf-8")


@pytest.mark.parametrize(("width", "is_dark"), [(1280, False), (390, True)])
def test_axe_finds_nothing_serious_on_the_form_for_the_token(
    tmp_path: Path, width: int, is_dark: bool
) -> None:
    source = axe()

    async def main() -> None:
        with JournalIndex(training(tmp_path / "j")) as index:
            async with guarded(index) as url, browser() as tab:
                await tab.size(width, 900, is_dark=is_dark)
                await tab.open(f"{url}/page/")
                await tab.until("document.activeElement.id === 'token'")
                await tab.js(source + "; 0")
                assert await tab.js(SERIOUS) == []
                for key in ("x", "Enter"):
                    await tab.press(key)
                await tab.until("document.getElementById('login-why').textContent.includes('is not the')")
                assert await tab.js(SERIOUS) == []
                assert await tab.js("document.documentElement.scrollWidth <= innerWidth")

    asyncio.run(main())
