"""`plaudit serve`: one engine for everything that speaks HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from plaudit.cli.console import Console, Stop, asker, cannot_listen
from plaudit.cli.options import JOURNAL, JUDGE, LIMITS, REQUESTS, Given, Running, WholeNumber, command
from plaudit.cli.stream import ON_FAILURE, OnFailure
from plaudit.config import Secret, expanded
from plaudit.engine import Engine
from plaudit.errors import ConfigError
from plaudit.install_command import install_command
from plaudit.journal.index import JournalIndex
from plaudit.journal.segments import Appender
from plaudit.observers.log import Log
from plaudit.page.page_routes import Page
from plaudit.service.access import LOOPBACK, TOKEN, Access
from plaudit.service.app import Service, Shared
from plaudit.service.connections import raise_file_limit, serving
from plaudit.service.prometheus import Prometheus
from plaudit.settings import Settings, engine_config, load, option
from plaudit.setup.engines import ReadyEndpoints, check_cache, engine_for, open_endpoints
from plaudit.setup.judges import judge_of

if TYPE_CHECKING:
    from plaudit.integrations.ray import SharedEngine

PAGE_MB = 64.0
"""Megabytes of what the page shows where no journal is kept."""

LAST_CALL = 0.25
"""Seconds in which a server that is to end still takes requests: some are on their way."""
SHARE = "serve"
"""The name under which servers find the engine they share."""


@dataclass(frozen=True, kw_only=True)
class ServeOptions(Running):
    host: str = option("127.0.0.1", "Address to listen on.", "Server")
    port: int = option(8400, "Port to listen on; 0 for any free one.", "Server", type_=WholeNumber(0, 65535))
    config: str | None = option(
        None,
        "File of settings to use, in place of the nearest plaudit.toml.",
        "Server",
        "FILE",
        type_=click.Path(exists=True, dir_okay=False),
    )
    trusted_host: tuple[str, ...] = option(
        (), "Host name by which other machines reach this one; may be repeated.", "Server", "NAME"
    )
    ray: bool = option(
        False, "Use one engine for all such servers of a Ray cluster: one limit, one cache.", "Server"
    )
    drop_abandoned: bool = option(
        False, "Also cancel requests at temperature 0 when their client disconnects.", "Server"
    )


@command(
    ServeOptions,
    settings=(*JUDGE, *REQUESTS, *LIMITS, "cache", *JOURNAL, "on_failure", "observers"),
    epilog="Example:  plaudit serve --base-url http://localhost:8000/v1 --model qwen3-32b --rpm 600\n\n"
    "Then:     OPENAI_BASE_URL=http://127.0.0.1:8400/v1 python your_script.py",
)
def serve(options: ServeOptions, given: Given) -> None:
    """Serve one engine over HTTP, for everything that takes a URL.

    Clients of the OpenAI API only need OPENAI_BASE_URL=http://HOST:PORT/v1. Their requests and replies are
    passed on unchanged, and share one adaptive limit, one budget, retries and a persistent cache. Trainers
    post samples to /score, /reward, /get_reward (OpenRLHF), /remote_rm (slime) or /verify (NeMo-Gym).

    The server only listens on this machine, unless you set --host, --trusted-host and the variable
    PLAUDIT_TOKEN. Metrics for Prometheus are at /metrics, and a page that shows the state of the server at
    /page/; with --journal, it also shows every verdict with its request and its reply.
    """
    settings = load(given, file=options.config or "")
    check_cache(settings)
    raise_file_limit()
    token = os.environ.get(TOKEN, "").strip()
    access = Access(options.host, options.trusted_host, Secret(token) if token else None)
    judge, on_failure = judge_of(settings, is_embedded=not settings.base_url), _forced(settings.on_failure)
    with (
        _journaled(settings) as shown,
        open_endpoints(settings, ask=asker(options.yes)) as ready,
        JournalIndex(shown.journal) as index,
    ):
        models = tuple(sorted({endpoint.model for endpoint in ready.endpoints if endpoint.model}))
        if len(models) > 1:
            raise ConfigError(
                f"names {len(models)} models ({', '.join(models)}), and a request may go to any endpoint of "
                "one server: start a server for each model",
                setting="model",
            )
        numbers = Prometheus()
        # The engine that servers share has one configuration, and so no journal of one of them.
        with _engine(options, settings if options.ray else shown, ready, numbers) as engine:
            shared = Shared(
                engine,
                judge,
                models=models,
                on_failure=on_failure,
                finishes_abandoned=not options.drop_abandoned,
                name=f"{socket.gethostname()}:{options.port or secrets.token_hex(8)}" if options.ray else "",
            )
            service = Service(shared, access, numbers, Page(index, takes_patterns=False))
            with Stop() as stop:
                engine.run(
                    lambda: _serve(options, service, stop.wake, lambda url: _told(url, shared, ready, access))
                )


@contextlib.contextmanager
def _journaled(settings: Settings) -> Iterator[Settings]:
    """Settings with a journal for the page to show: without one of the user's, numbers only, for now only."""
    with tempfile.TemporaryDirectory(prefix="plaudit-") as folder:
        if settings.journal in ("", "off"):
            journal = str(Path(folder, "journal"))
            settings = replace(settings, journal=journal, journal_text=False, journal_max_mb=PAGE_MB)
        Appender(expanded(settings.journal), b"", max_bytes=1 << 60).close()  # the page reads it now
        yield settings


async def _serve(
    options: ServeOptions, service: Service, stopped: threading.Event, told: Callable[[str], str]
) -> None:
    say = (lambda _: None) if options.quiet else Console().print
    try:
        async with serving(service, host=options.host, port=options.port) as url:
            print(f"listening on {url}", flush=True)
            say(told(url))
            await asyncio.to_thread(stopped.wait)
            say("stopping; finishing the requests in flight ...")
            await asyncio.sleep(LAST_CALL)
    except OSError as error:
        raise cannot_listen(options.host, options.port, error) from error


def _engine(
    options: ServeOptions, settings: Settings, ready: ReadyEndpoints, numbers: Prometheus
) -> Engine | SharedEngine:
    """The engine of this process, or the one that the servers of a cluster share."""
    if not options.ray:
        return engine_for(settings, ready.endpoints, [Log(), numbers])
    try:
        from plaudit.integrations.ray import SharedEngine
        from plaudit.integrations.ray.actor import join_cluster
    except ImportError as error:
        raise ConfigError(
            f"Ray cannot be imported ({error}); run: {install_command('plaudit[ray]')}", setting="ray"
        ) from error
    join_cluster()
    return SharedEngine.from_config(engine_config(settings, endpoints=ready.endpoints), share=SHARE)


def _forced(on_failure: str) -> str | float:
    """What a missing verdict becomes where a reply has no place for one: an error, unless said otherwise."""
    if on_failure == "null":
        return "raise"
    OnFailure(on_failure)  # raises where it is neither a word nor a number
    return on_failure if on_failure in ON_FAILURE else float(on_failure)


def _told(url: str, shared: Shared, ready: ReadyEndpoints, access: Access) -> str:
    servers = ", ".join(endpoint.url for endpoint in ready.endpoints)
    if access.host not in LOOPBACK:  # 0.0.0.0 is where it listens, and no name that a client may use
        url = f"http://{access.trusted_hosts[0]}:{url.rpartition(':')[2]}"
    bearer = f' -H "Authorization: Bearer ${TOKEN}"' if access.token is not None else ""
    lines = [
        f"shares {', '.join(shared.models) or 'every model'} at {servers}: one limit, one budget, one cache",
        f"for clients of the OpenAI API:  export OPENAI_BASE_URL={url}/v1",
        f"to score samples:               curl {url}/score{bearer} -H 'Content-Type: application/json' -d "
        """'{"samples": [{"prompt": "1 + 1?", "response": "2"}]}'""",
        f"to see what is happening:       {url}/page/{' (asks for the token)' if access.token else ''}",
    ]
    if access.token is not None:
        lines.insert(2, f"                                export OPENAI_API_KEY=${TOKEN}")
    elif access.host in LOOPBACK:
        lines.append("only reachable from this machine")
    if ready.notice:
        lines.append(ready.notice)
    return "\n".join(lines)
