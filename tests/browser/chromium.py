"""Debian's chromium, driven over the DevTools protocol by aiohttp's WebSocket client."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

BINARY = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--remote-debugging-port=0",
)
PATIENCE_S = 600.0
"""After which something that should appear is missing, on a machine however slow."""


class Tab:
    """One page of a running browser, with everything it asked for and complained about."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._last = 0
        self.requested: list[str] = []
        self.complaints: list[str] = []
        """Errors on the console, exceptions, and what the content security policy refused."""
        self._reader = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        async for message in self._socket:
            found = json.loads(message.data)
            if "id" in found:
                self._answers.pop(found["id"]).set_result(found)
                continue
            facts = found.get("params", {})
            if found["method"] == "Network.requestWillBeSent":
                self.requested.append(facts["request"]["url"])
            elif found["method"] == "Runtime.exceptionThrown":
                self.complaints.append(str(facts["exceptionDetails"]))
            elif found["method"] == "Runtime.consoleAPICalled" and facts["type"] in ("error", "warning"):
                self.complaints.append(str(facts["args"]))
            elif found["method"] == "Log.entryAdded" and facts["entry"]["level"] == "error":
                self.complaints.append(str(facts["entry"]))

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the protocol."""
        self._last += 1
        answer = self._answers[self._last] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._last, "method": method, "params": parameters})
        async with asyncio.timeout(PATIENCE_S):
            found = await answer
        assert "error" not in found, found
        result: dict[str, Any] = found["result"]
        return result

    async def open(self, url: str) -> None:
        """Go to a page."""
        for domain in ("Page", "Runtime", "Network", "Log"):
            await self.call(f"{domain}.enable")
        await self.call("Page.navigate", url=url)
        await self.until("document.readyState === 'complete'")

    async def js(self, expression: str) -> Any:
        """The value of an expression in the page."""
        found = await self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait until an expression in the page is true."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                while not await self.js(f"!!({expression})"):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.05)
                return
        says = await self.js("document.body.innerText.slice(0, 800)")
        raise AssertionError(f"never true: {expression}; the page says {says!r}")

    async def press(self, key: str) -> None:
        """Press a key, as a user does."""
        text = "\r" if key == "Enter" else key if len(key) == 1 else ""
        codes = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "End": 35, "Home": 36}
        facts = {
            "key": key,
            "windowsVirtualKeyCode": codes.get(key, ord(key[0])),
            **({"text": text} if text else {}),
        }
        await self.call("Input.dispatchKeyEvent", type="keyDown", **facts)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def click(self, x: float, y: float) -> None:
        """Click with the mouse, as a user does."""
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def size(self, width: int, height: int, *, is_dark: bool = False) -> None:
        """Give the window a size and a colour scheme."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = "dark" if is_dark else "light"
        await self.call(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
        )

    async def screenshot(self, path: Path) -> None:
        """What the window shows, as a PNG."""
        found = await self.call("Page.captureScreenshot", format="png")
        await asyncio.to_thread(path.write_bytes, base64.b64decode(found["data"]))

    def close(self) -> None:
        self._reader.cancel()


@contextlib.asynccontextmanager
async def browser() -> AsyncIterator[Tab]:
    """A fresh browser with one empty page."""
    assert BINARY is not None, "no chromium; run: make test-browser"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            BINARY, *FLAGS, f"--user-data-dir={profile}", "about:blank",
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            port = await _port(Path(profile) / "DevToolsActivePort")
            async with aiohttp.ClientSession() as session:
                pages: list[dict[str, str]] = []
                while not pages:  # it listens before it has opened one
                    async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                        pages = [page for page in await answer.json() if page["type"] == "page"]
                url = pages[0]["webSocketDebuggerUrl"]
                async with session.ws_connect(url, max_msg_size=0) as socket:
                    tab = Tab(socket)
                    try:
                        yield tab
                    finally:
                        tab.close()
        finally:
            process.kill()
            await process.wait()


async def _port(file: Path) -> int:
    async with asyncio.timeout(PATIENCE_S):
        while not (file.exists() and (text := file.read_text())):  # noqa: ASYNC110, ASYNC240 - another process
            await asyncio.sleep(0.05)
        return int(text.split()[0])
