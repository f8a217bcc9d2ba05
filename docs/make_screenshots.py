"""Draw the pictures of the documentation: pages of a simulated training, of a scored file and of a
notebook, and terminals.

make screenshots
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

from aiohttp import web

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent / "tests" / "browser")]

from chromium import Tab, browser  # noqa: E402
from hacked_training import train  # noqa: E402
from terminal_pictures import main as draw_terminals  # noqa: E402

from plaudit.cli.view import page_app  # noqa: E402
from plaudit.journal import JournalIndex  # noqa: E402

JUPYTER = DOCS.parent / ".venv-clients" / "bin" / "python"
READY = "document.querySelector('tr.row[data-id]') && document.querySelector('#alive svg')"


async def _draw(tab: Tab) -> None:
    await tab.until(READY)
    await tab.screenshot(DOCS / "page-panels.png")
    await tab.js(
        "(() => { const sort = document.getElementById('sort'); sort.value = 'unit:desc';"
        "document.getElementById('steps').value = '60-79';"
        "for (const id of ['sort', 'steps'])"
        " document.getElementById(id).dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    await tab.until("/^1,280 of/.test(document.getElementById('count').textContent)")
    await tab.js("document.querySelector('tr.row[data-id]').click()")
    await tab.until("document.querySelector('#record .side')")
    await tab.js("document.getElementById('browser').scrollIntoView()")
    await tab.js("scrollBy(0, -60)")
    await asyncio.sleep(0.5)
    await tab.screenshot(DOCS / "page-record.png")


async def main() -> None:
    """Train, serve the page, and take the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        await asyncio.to_thread(draw_terminals, report)
        notebook = Path(folder) / "notebook.html"
        await asyncio.to_thread(subprocess.run, [JUPYTER, DOCS / "notebook_picture.py", notebook], check=True)
        path = f"{folder}/hacked.journal"
        await asyncio.to_thread(train, path)
        with JournalIndex(path) as index:
            runner = web.AppRunner(page_app(index), access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            async with browser() as tab:
                await tab.size(1400, 920)
                await tab.open(f"http://127.0.0.1:{runner.addresses[0][1]}/page/")
                await _draw(tab)
                await tab.size(760, 900)
                await tab.open(report.as_uri())
                await tab.until("document.querySelector('svg')")
                await tab.js("document.documentElement.style.overflow = 'hidden'")
                await tab.screenshot(DOCS / "report-page.png")
                await tab.size(900, 720)
                await tab.open(notebook.as_uri())
                await tab.until("document.querySelectorAll('table').length === 2")
                await tab.js("document.body.style.overflow = 'hidden'")
                await tab.screenshot(DOCS / "notebook.png")
            await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
