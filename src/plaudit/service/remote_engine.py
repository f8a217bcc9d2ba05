"""An engine behind a URL: `connect` gives what `plaudit serve` has at the other end, used like an Engine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Any, NoReturn, cast
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec

from plaudit._loop_thread import LoopOwner
from plaudit.config import Secret, shown_url
from plaudit.engine import BaseEngine
from plaudit.errors import ConfigError
from plaudit.judges.base import Judge, Panel, is_panel
from plaudit.judges.registry import describe
from plaudit.pending import Pending
from plaudit.scheduling.batch import Batch
from plaudit.scheduling.panel import panel_batch
from plaudit.service.access import TOKEN
from plaudit.types import Cause, Sample, Verdict

MOST_SAMPLES = 2_000
"""Samples in one request; those of a judge that compares responses stay together."""
ATTEMPTS = 6
"""How often a request is sent where the server cannot be reached, or breaks off."""
FIRST_WAIT = 0.5
"""Seconds before the second attempt; each one after that waits twice as long."""
LATE = 5.0
"""Seconds by which the server may be late with a deadline's verdicts."""
CLOSE_WITHIN = 5.0


def connect(url: str, *, token: str | None = None) -> RemoteEngine:
    """Use the engine of a `plaudit serve` as if it were here.

    Args:
        url: Where it listens, like `http://127.0.0.1:8400`.
        token: What the server asks for; left out: that of the variable PLAUDIT_TOKEN, if it is set.

    Returns:
        An engine with `submit`, `score` and `ascore`. Nothing is sent before the first batch.

    Raises:
        ConfigError: the URL or the token cannot be used.
    """
    return RemoteEngine(url, token=token)


class RemoteEngine(BaseEngine):
    """Judges samples at a server. A context manager; threads may share it.

    Judges are sent by their kind and options, so a class of the user's own cannot be.
    """

    def __init__(self, url: str, *, token: str | None = None) -> None:
        if not url.startswith(("http://", "https://")):
            raise ConfigError("should be like http://127.0.0.1:8400", setting="url", value=shown_url(url))
        if "@" in urlsplit(url).netloc:
            why = "contains a user name or a password; leave them out, and give the server's token as token"
            raise ConfigError(why, setting="url", value=shown_url(url))
        self.url = url.rstrip("/").removesuffix("/v1")
        found = (os.environ.get(TOKEN, "") if token is None else token).strip()
        if not found.isascii() or not found.isprintable():
            raise ConfigError("contains a character that a header cannot contain", setting="token")
        self._token = Secret(found) if found else None

    def __repr__(self) -> str:
        return f"RemoteEngine({self.url})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a RemoteEngine holds a thread and connections, and cannot be pickled; connect in each process"
        )

    def _submit(
        self, samples: list[Sample], judge: Judge | Panel, *, deadline: float | None, job: str
    ) -> Pending:
        described = describe(judge)
        if is_panel(judge):
            panel_batch(samples, judge, model="")  # raises here what it would raise at the server
        rows = [_row(sample, index) for index, sample in enumerate(samples)]
        batch = Batch(samples, cast(Judge, judge), model="", deadline=deadline, job=job)
        size = max(len(rows), 1) if is_panel(judge) else MOST_SAMPLES
        worker = self._at_work()
        if rows:
            worker.thread.post(worker.work.start, batch, described, rows, size)
        return Pending(batch, worker)

    def _open(self) -> LoopOwner[_RemoteWork]:
        work = _RemoteWork(self.url, self._token)
        return LoopOwner("the connection to the server", work, within=CLOSE_WITHIN)


class _RemoteWork:
    """Talks to the server, on a thread of its own."""

    def __init__(self, url: str, token: Secret | None) -> None:
        self._url = url
        self._token = token
        self._session: aiohttp.ClientSession | None = None
        self._tasks: dict[Batch, list[asyncio.Task[None]]] = {}
        self._running: set[asyncio.Task[None]] = set()
        """Kept here until they are done: those of a batch that has all its verdicts read to the end."""

    def start(self, batch: Batch, judge: dict[str, Any], rows: list[msgspec.Raw], size: int) -> None:
        """Send the rows of a batch, so many in a request."""
        loop = asyncio.get_running_loop()
        tasks = self._tasks[batch] = [
            loop.create_task(self._score(batch, judge, rows, range(len(rows))[start : start + size]))
            for start in range(0, len(rows), size)
        ]
        for task in tasks:
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        if batch.deadline is not None:
            batch.when_done(loop.call_later(batch.deadline + LATE, self.expire, batch).cancel)
        batch.when_done(lambda: self._forget(batch))

    def _forget(self, batch: Batch) -> None:
        self._tasks.pop(batch, None)

    def expire(self, batch: Batch) -> None:
        self._end(batch, Cause.DEADLINE, "deadline")

    def cancel(self, batch: Batch, *, abort: bool) -> None:  # noqa: ARG002 - the server decides
        self._end(batch, Cause.CANCELLED, "cancelled")

    def _end(self, batch: Batch, cause: Cause, why: str) -> None:
        """Give what has no verdict this one. The server notices that its client has gone."""
        for task in self._tasks.pop(batch, []):
            task.cancel()
        self._fail(batch, batch.missing(), cause, why)

    async def close(self) -> None:
        for batch in list(self._tasks):
            self._end(batch, Cause.CLOSED, "the connection was closed")
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _score(
        self, batch: Batch, judge: dict[str, Any], rows: list[msgspec.Raw], places: range
    ) -> None:
        """Send one request until each of its samples has a verdict, or the server says that it will not."""
        began = asyncio.get_running_loop().time()
        trouble = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(FIRST_WAIT * 2.0 ** (attempt - 1))
            if not (indices := _unscored(batch, places)):
                return
            asked = {"samples": [rows[index] for index in indices], "judge": judge, "stream": True}
            if batch.deadline is not None:
                asked["deadline"] = max(batch.deadline - (asyncio.get_running_loop().time() - began), 0.001)
            try:
                refusal = await self._post(batch, indices, msgspec.json.encode(asked))
            except (aiohttp.ClientError, OSError, msgspec.DecodeError, LookupError) as error:
                trouble = type(error).__name__
                continue
            if refusal is None:
                trouble = "the reply broke off"
                continue
            cause, why = refusal
            self._fail(batch, indices, cause, f"{self._url} {why}")
            return
        if indices := _unscored(batch, places):
            why = f"no connection to {self._url} ({trouble}); check that `plaudit serve` runs there"
            self._fail(batch, indices, Cause.UNREACHABLE, why)

    async def _post(self, batch: Batch, indices: list[int], body: bytes) -> tuple[Cause, str] | None:
        """Deliver the verdicts as they come; the answer is why the server will not give any, if so."""
        session = self._session = self._session or aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=15.0),
            connector=aiohttp.TCPConnector(limit=0),
        )
        headers = {"Content-Type": "application/json"}
        if batch.job:
            headers["x-plaudit-run"] = quote(batch.job)
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token.reveal()}"
        url = f"{self._url}/score"
        async with session.post(url, data=body, headers=headers, allow_redirects=False) as response:
            if response.status == 503:
                return None
            if response.status != 200:
                return _refusal(response.status, await response.content.read(4096))
            async for line in _lines(response.content):
                index, verdict = _verdict(line)
                batch.deliver([(indices[index], verdict)])
        return None

    def _fail(self, batch: Batch, indices: Sequence[int], cause: Cause, why: str) -> None:
        batch.deliver([(index, Verdict.failed(cause, why)) for index in indices])


def _unscored(batch: Batch, places: range) -> list[int]:
    """The samples to ask for: those without a verdict, or all where they are judged together."""
    missing = [index for index in places if batch.verdicts[index] is None]
    return list(places) if missing and is_panel(batch.judge) else missing


async def _lines(content: aiohttp.StreamReader) -> Any:
    """Lines of any length; one without its end is left out."""
    rest = b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line


def _verdict(line: bytes) -> tuple[int, Verdict]:
    """A verdict as /score gives it, and the place of its sample in the request."""
    fields = msgspec.json.decode(line, type=dict[str, Any])
    cause = fields.pop("cause", None)
    fields["failure"] = None if cause is None else {"cause": cause}
    return int(fields.pop("index")), msgspec.convert(fields, Verdict)


def _row(sample: Sample, index: int) -> msgspec.Raw:
    fields = {name: getattr(sample, name) for name in ("prompt", "response", "reference", "group")}
    fields["tools"] = sample.tools or None
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        return msgspec.Raw(msgspec.json.encode({**sample.extra, **given}))
    except (TypeError, UnicodeEncodeError, RecursionError) as error:
        raise ConfigError(
            f"sample {index} has no JSON form ({error}); use plain dicts, lists, texts and numbers"
        ) from None


def _refusal(status: int, body: bytes) -> tuple[Cause, str]:
    """Why the server will not judge, from its error body."""
    try:
        said = msgspec.json.decode(body)["error"]["message"]
    except (msgspec.DecodeError, KeyError, TypeError):
        said = "no reason given"
    cause = {401: Cause.REFUSED_KEY, 400: Cause.INPUT, 413: Cause.INPUT}.get(status, Cause.SERVER_ERROR)
    return cause, f"answered {status}: {said}"
