"""An engine behind a URL: `connect` gives what `plaudit serve` has at the other end, used like an Engine."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Sequence
from typing import Any, NoReturn, cast
from urllib.parse import quote

import aiohttp
import msgspec

from plaudit._loop_thread import LoopOwner
from plaudit.config import Secret
from plaudit.engine import BaseEngine
from plaudit.errors import ConfigError, EngineClosed
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
            raise ConfigError("should be like http://127.0.0.1:8400", setting="url", value=url)
        self.url = url.rstrip("/").removesuffix("/v1")
        found = (os.environ.get(TOKEN, "") if token is None else token).strip()
        if not found.isascii() or not found.isprintable():
            raise ConfigError("contains a character that a header cannot contain", setting="token")
        self._token = Secret(found) if found else None
        self._connection: _Connection | None = None
        self._is_closed = False

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
        connection = self._connected()
        if rows:
            connection.start(
                batch, [_RowChunk(described, rows, start, size) for start in range(0, len(rows), size)]
            )
        return Pending(batch, connection)

    def close(self) -> None:
        """Stop: samples without a verdict fail. Safe to call twice."""
        self._is_closed = True
        if self._connection is not None:
            self._connection.close()

    def _connected(self) -> _Connection:
        if self._is_closed:
            raise EngineClosed("the connection is closed; call connect again")
        if self._connection is None or not self._connection.is_alive:
            self._connection = _Connection(self.url, self._token)
        return self._connection


class _RowChunk:
    """Samples of one batch that travel in one request."""

    def __init__(self, judge: dict[str, Any], rows: Sequence[msgspec.Raw], start: int, size: int) -> None:
        self._judge = judge
        self._rows = rows
        self._indices = range(start, min(start + size, len(rows)))

    def indices(self, batch: Batch) -> list[int]:
        """The samples to ask for: those without a verdict, or all where they are judged together."""
        missing = [index for index in self._indices if batch.verdicts[index] is None]
        return list(self._indices) if missing and is_panel(batch.judge) else missing

    def body(self, indices: Sequence[int], deadline: float | None) -> bytes:
        asked = {"samples": [self._rows[index] for index in indices], "judge": self._judge, "stream": True}
        return msgspec.json.encode(asked if deadline is None else {**asked, "deadline": deadline})


class _Connection(LoopOwner):
    """The thread that talks to the server, and the batches under way."""

    def __init__(self, url: str, token: Secret | None) -> None:
        self._work = _RemoteWork(url, token)
        super().__init__("the connection to the server", self._work.close, within=CLOSE_WITHIN)

    def start(self, batch: Batch, parts: list[_RowChunk]) -> None:
        self._post(self._work.start, batch, parts)

    def expire(self, batch: Batch) -> None:
        self._post(self._work.end, batch, Cause.DEADLINE, "deadline")

    def cancel(self, batch: Batch, *, abort: bool) -> None:  # noqa: ARG002 - the server decides
        self._post(self._work.end, batch, Cause.CANCELLED, "cancelled")


class _RemoteWork:
    """What runs on the thread."""

    def __init__(self, url: str, token: Secret | None) -> None:
        self._url = url
        self._token = token
        self._session: aiohttp.ClientSession | None = None
        self._tasks: dict[Batch, list[asyncio.Task[None]]] = {}
        self._running: set[asyncio.Task[None]] = set()
        """Kept here until they are done: those of a batch that has all its verdicts read to the end."""

    def start(self, batch: Batch, parts: list[_RowChunk]) -> None:
        loop = asyncio.get_running_loop()
        tasks = self._tasks[batch] = [loop.create_task(self._score(batch, part)) for part in parts]
        for task in tasks:
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        if batch.deadline is not None:
            late = loop.call_later(batch.deadline + LATE, self.end, batch, Cause.DEADLINE, "deadline")
            batch.when_done(late.cancel)
        batch.when_done(functools.partial(self._forget, batch))

    def _forget(self, batch: Batch) -> None:
        self._tasks.pop(batch, None)

    def end(self, batch: Batch, cause: Cause, why: str) -> None:
        """Give what has no verdict this one. The server notices that its client has gone."""
        for task in self._tasks.pop(batch, []):
            task.cancel()
        self._fail(batch, batch.missing(), cause, why)

    async def close(self) -> None:
        for batch in list(self._tasks):
            self.end(batch, Cause.CLOSED, "the connection was closed")
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _score(self, batch: Batch, part: _RowChunk) -> None:
        """Send one request until each of its samples has a verdict, or the server says that it will not."""
        began = asyncio.get_running_loop().time()
        trouble = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(FIRST_WAIT * 2.0 ** (attempt - 1))
            if not (indices := part.indices(batch)):
                return
            left = None
            if batch.deadline is not None:
                left = max(batch.deadline - (asyncio.get_running_loop().time() - began), 0.001)
            try:
                refusal = await self._post(batch, indices, part.body(indices, left))
            except (aiohttp.ClientError, OSError, msgspec.DecodeError, LookupError) as error:
                trouble = type(error).__name__
                continue
            if refusal is None:
                trouble = "the reply broke off"
                continue
            cause, why = refusal
            self._fail(batch, indices, cause, f"{self._url} {why}")
            return
        if indices := part.indices(batch):
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
    fields: dict[str, object] = {"prompt": sample.prompt, "response": sample.response}
    if sample.tools:
        fields["tools"] = sample.tools
    if sample.reference is not None:
        fields["reference"] = sample.reference
    if sample.group is not None:
        fields["group"] = sample.group
    try:
        return msgspec.Raw(msgspec.json.encode({**sample.extra, **fields}))
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
