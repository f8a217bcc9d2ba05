"""Transports: how a request reaches an endpoint."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal

from plaudit.config import Endpoint
from plaudit.errors import ConfigError
from plaudit.install_command import install_command
from plaudit.transports.base import Transport
from plaudit.transports.client import HttpClient
from plaudit.transports.http import HttpTransport
from plaudit.transports.httptools_client import HttptoolsClient
from plaudit.transports.ollama import Ollama
from plaudit.transports.openai import OpenAI
from plaudit.transports.proxy import proxy_for

ClientName = Literal["httptools", "aiohttp", "pyreqwest"]

__all__ = ["ClientName", "HttpTransport", "Transport", "open_transport"]


def open_transport(
    endpoint: Endpoint,
    client: ClientName | str = "httptools",
    *,
    timeout: float = 600.0,
    environ: Mapping[str, str] | None = None,
) -> Transport:
    """A transport for the endpoint, by its kind. It connects on the first `send`, on that event loop.

    `timeout` is the longest, in seconds, that a call may live on after it was cancelled: pyreqwest cannot
    cancel, and ends every call at that age; give it no less than the calls' own timeout.
    `environ` names the proxies; None takes this process's environment, {} connects directly.
    """
    dialect = Ollama if endpoint.kind == "ollama" else OpenAI
    proxy = (
        None if endpoint.is_direct else proxy_for(endpoint.url, os.environ if environ is None else environ)
    )
    return HttpTransport(
        endpoint, dialect(endpoint.model, endpoint.price), _client(endpoint, client, proxy, timeout)
    )


def _client(endpoint: Endpoint, name: str, proxy: str | None, timeout: float) -> HttpClient:
    if name == "httptools":
        return HttptoolsClient(endpoint, proxy=proxy)
    if name == "aiohttp":
        from plaudit.transports.aiohttp_client import AiohttpClient

        return AiohttpClient(endpoint, proxy=proxy)
    if name != "pyreqwest":
        raise ConfigError(
            "is not an HTTP client; use 'httptools', 'aiohttp' or 'pyreqwest'", setting="client", value=name
        )
    try:
        from plaudit.transports.pyreqwest_client import PyreqwestClient
    except ImportError as error:
        raise ConfigError(
            f"is not installed; run: {install_command('plaudit[fast]')}, or use 'httptools'",
            setting="client",
            value="pyreqwest",
        ) from error
    return PyreqwestClient(endpoint, proxy=proxy, timeout=timeout)
