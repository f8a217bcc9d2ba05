"""Both dialects over every client keep the contract, on the engine's event loop and on the plain one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
import uvloop
from transport_contract import CONTRACT, Promise, Subject

from plaudit.config import Endpoint, Kind
from plaudit.transports import ClientName, Transport, open_transport


def subject_of(kind: Kind, client: ClientName) -> Subject:
    def opened(endpoint: Endpoint, *, environ: Mapping[str, str], timeout: float) -> Transport:
        return open_transport(endpoint, client, environ=environ, timeout=timeout)

    return Subject(kind, opened)


@pytest.mark.parametrize("promise", CONTRACT, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("client", ["httptools", "aiohttp", "pyreqwest"])
@pytest.mark.parametrize("kind", ["openai", "ollama"])
def test_the_contract(promise: Promise, kind: Kind, client: ClientName) -> None:
    uvloop.run(promise(subject_of(kind, client)))


@pytest.mark.parametrize("promise", CONTRACT, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("client", ["httptools", "aiohttp"])
def test_the_contract_without_uvloop(promise: Promise, client: ClientName) -> None:
    asyncio.run(promise(subject_of("openai", client)))
