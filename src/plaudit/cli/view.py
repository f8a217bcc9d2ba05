"""`plaudit view`: journals in a browser, on this machine."""

from __future__ import annotations

import asyncio
import webbrowser
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from plaudit.cli.console import Stop, cannot_listen
from plaudit.cli.journal import opened
from plaudit.cli.options import WholeNumber, argument, command
from plaudit.errors import ConfigError
from plaudit.journal.index import JournalIndex
from plaudit.page.page_routes import ROOT, Page
from plaudit.service.access import Access, Refusal
from plaudit.settings import option

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, kw_only=True)
class ViewOptions:
    journals: tuple[str, ...] = argument("JOURNAL...", "Journal files.")
    port: int = option(8401, "Port to listen on; 0 for any free one.", type_=WholeNumber(0, 65535))
    open_browser: bool = option(False, "Open the page in the browser.", flags=("--open",))


@command(ViewOptions, epilog="Example:  plaudit view run.journal --open")
def view(options: ViewOptions) -> None:
    """Show journals in a browser.

    Shows the reward step by step, failures, cost, and every verdict with its request and its reply. The page
    updates while a journal is being written. It is only served on this machine, and loads nothing from the
    network.
    """
    with opened(*options.journals) as index, Stop() as stop:
        asyncio.run(_serve(index, options, stop))


def page_app(index: JournalIndex) -> web.Application:
    """The page by itself, for this machine."""
    access = Access()

    @web.middleware
    async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = access.refusal(request.method, request.headers)
        if refusal is None and request.method not in ("GET", "HEAD"):
            refusal = Refusal(405, "use GET")
        if refusal is not None:
            return web.json_response({"error": refusal.message}, status=refusal.status)
        try:
            return await handler(request)
        except ConfigError as error:
            return web.json_response({"error": str(error)}, status=400)

    async def start(_: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": ROOT})

    app = web.Application(middlewares=[checked])
    app.router.add_get("/", start)
    Page(index).add_routes(app)
    return app


async def _serve(index: JournalIndex, options: ViewOptions, stop: Stop) -> None:
    runner = web.AppRunner(
        page_app(index),
        access_log=None,
        shutdown_timeout=1.0,
        handler_cancellation=True,
        auto_decompress=False,
    )
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, "127.0.0.1", options.port).start()
        except OSError as error:
            raise cannot_listen("127.0.0.1", options.port, error) from error
        url = f"http://127.0.0.1:{runner.addresses[0][1]}{ROOT}"
        print(f"listening on {url}", flush=True)
        if options.open_browser:
            await asyncio.to_thread(webbrowser.open, url)
        await asyncio.to_thread(stop.wake.wait)
    finally:
        await runner.cleanup()
