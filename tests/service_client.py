"""A client of `plaudit serve` over real sockets, in front of a simulated judge or of one with a script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from loopback import INSTANT, Loopback, loopback
from wire_server import Step, WireServer

from plaudit import Engine, Rubric
from plaudit.config import Endpoint, Price
from plaudit.service.access import Access
from plaudit.service.app import Service, Shared
from plaudit.service.connections import serving
from plaudit.service.prometheus import Prometheus
from plaudit.simulator import Scenario

JUDGE = Rubric("Is it right?", scale=(0, 10))
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
QUESTION = {**CHAT, "temperature": 0}
KEY = "sk-upstream-0123456789"


@dataclass
class Client:
    """A client of the server, and the judge behind it."""

    url: str
    session: aiohttp.ClientSession
    judge: Loopback

    async def post(self, path: str, body: object, **headers: str) -> tuple[int, Mapping[str, str], bytes]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {"Content-Type": "application/json", **headers}
        async with self.session.post(self.url + path, data=data, headers=given) as response:
            return response.status, response.headers, await response.read()

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        async with self.session.get(self.url + path, headers=headers) as response:
            return response.status, await response.text()


@asynccontextmanager
async def client_of(scenario: Scenario = INSTANT, **options: Any) -> AsyncIterator[Client]:
    access = options.pop("access", Access())
    budget = options.pop("budget", None)
    numbers = Prometheus()
    observers = [numbers, *options.pop("observers", ())]
    with loopback(scenario) as judge:
        endpoint = Endpoint(judge.url, model="m", api_key=KEY, price=Price(1.0, 1.0))
        with Engine(endpoints=[endpoint], budget=budget, observers=observers, hedge=False) as engine:
            shared = Shared(engine, JUDGE, models=("m",), **options)
            async with (
                serving(Service(shared, access, numbers), host="127.0.0.1", port=0) as url,
                aiohttp.ClientSession() as session,
            ):
                yield Client(url, session, judge)


def served(test: Callable[[Client], Coroutine[Any, Any, None]], **options: Any) -> None:
    async def main() -> None:
        async with client_of(**options) as client:
            await test(client)

    asyncio.run(main())


@dataclass
class ScriptedClient:
    """A client of the server, and the endpoint with a script behind it."""

    url: str
    session: aiohttp.ClientSession
    endpoint: WireServer

    def asking(
        self, body: object, path: str = "/v1/chat/completions", **headers: str
    ) -> asyncio.Task[tuple[int, bytes]]:
        """A request under way; cancelling it closes the client's connection."""

        async def ask() -> tuple[int, bytes]:
            async with self.session.post(self.url + path, json=body, headers=headers) as response:
                return response.status, await response.read()

        return asyncio.create_task(ask())

    async def until_waiting(self, count: int) -> None:
        """Until the server has so many requests to answer."""
        while True:
            async with self.session.get(f"{self.url}/health") as response:
                if (await response.json())["waiting"] == count:
                    return


def scripted(
    test: Callable[[ScriptedClient], Coroutine[Any, Any, None]], *script: Step, **options: Any
) -> None:
    """Run a test against a server whose endpoint plays a script."""

    async def main() -> None:
        numbers = Prometheus()
        access = options.pop("access", Access())
        engine_options = {"hedge": False, **options.pop("engine", {})}
        async with WireServer(*script) as endpoint, aiohttp.ClientSession() as session:
            at = Endpoint(endpoint.url("openai"), model="m", api_key=KEY)
            with Engine(endpoints=[at], observers=[numbers], **engine_options) as engine:
                service = Service(Shared(engine, JUDGE, models=("m",), **options), access, numbers)
                async with serving(service, host="127.0.0.1", port=0) as url:
                    await test(ScriptedClient(url, session, endpoint))

    asyncio.run(main())
