"""How the page of a journal feels, in Debian's chromium: the first picture, and frames while scrolling.

    python benchmarks/page.py [--records 1000000] [--scrolled 100000]

First picture: from the navigation until text is painted, until the panels are drawn, and until the list has
rows; the journal is open by then (`benchmarks/journal.py` measures that). Frames: the list is scrolled on by
300 pixels in every frame, then by a fiftieth of its height, as one who drags the scroll bar does. A frame has
17 ms at 60 a second; a task of the page over 50 ms is a stutter that people notice.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "browser"))

import table
from aiohttp import web
from chromium import Tab, browser
from journal import write

from plaudit.cli.view import page_app
from plaudit.journal import JournalIndex

WATCH = """
window.seen = {};
new MutationObserver(() => {
  for (const [name, is] of [['panels', '#alive svg path'], ['rows', 'tr.row[data-id]']])
    if (!(name in seen) && document.querySelector(is)) seen[name] = performance.now();
}).observe(document, {childList: true, subtree: true});
window.long = [];
new PerformanceObserver((list) => long.push(...list.getEntries().map((one) => one.duration)))
  .observe({type: 'longtask', buffered: true});
"""
SCROLL = """
new Promise((done) => {
  const box = document.getElementById('scroller'), times = [], by = %s;
  long.length = 0; box.scrollTop = 0;
  const on = (now) => {
    times.push(now); box.scrollTop = (box.scrollTop + by) %% (box.scrollHeight - box.clientHeight);
    if (times.length < 200) requestAnimationFrame(on);
    else done({frames: times.slice(1).map((t, i) => t - times[i]).sort((a, b) => a - b), long: [...long]});
  };
  requestAnimationFrame(on);
})
"""


@contextlib.asynccontextmanager
async def shown(path: Path) -> AsyncIterator[Tab]:
    """The page of a journal in a fresh browser, loaded and watched."""
    with JournalIndex(path) as index:
        runner = web.AppRunner(page_app(index), access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with browser() as tab:
            await tab.size(1400, 900)
            await tab.call("Page.enable")
            await tab.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
            await tab.open(f"http://127.0.0.1:{runner.addresses[0][1]}/page/")
            await tab.until("'panels' in seen && 'rows' in seen")
            yield tab
        await runner.cleanup()


async def first_picture(path: Path) -> dict[str, float]:
    """Milliseconds from the navigation on."""
    async with shown(path) as tab:
        paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
        return {"text": await tab.js(paint), **await tab.js("seen")}


async def frames(path: Path, by: str) -> dict[str, Any]:
    """What scrolling was like."""
    async with shown(path) as tab:
        await asyncio.sleep(2.0)  # the panels are drawn by then
        await tab.call("Performance.enable", timeDomain="threadTicks")
        before = await busy(tab)
        found: dict[str, Any] = await tab.js(SCROLL % by)
        found["cpu"] = 1000 * (await busy(tab) - before) / len(found["frames"])
        return found


async def busy(tab: Tab) -> float:
    """Seconds of CPU time that the page's thread has spent so far: it does not depend on what else runs."""
    metrics = (await tab.call("Performance.getMetrics"))["metrics"]
    return next(float(one["value"]) for one in metrics if one["name"] == "TaskDuration")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--scrolled", type=int, default=100_000)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="plaudit-bench-") as folder:
        large, small = Path(folder, "large"), Path(folder, "small")
        write(large, options.records)
        write(small, options.scrolled)
        picture = asyncio.run(first_picture(large))
        for name in ("text", "rows", "panels"):
            rows.append((f"{options.records:,} records: until {name}, ms", f"{picture[name]:,.0f}"))
        for what, by in (("300 px a frame", "300"), ("the scroll bar", "box.scrollHeight / 50")):
            found = asyncio.run(frames(small, by))
            times, long = found["frames"], found["long"]
            p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
            rows.append((f"{options.scrolled:,} records, {what}: CPU a frame, ms", f"{found['cpu']:.1f}"))
            rows.append(("  frame p50, ms", f"{p50:.0f}"))
            rows.append(("  frame p99, ms", f"{p99:.0f}"))
            rows.append(("  slowest frame, ms", f"{times[-1]:.0f}"))
            rows.append(("  tasks over 50 ms", str(len(long))))
    print("$ python", *sys.argv)
    table.show("The page", ("what", "measured"), rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
