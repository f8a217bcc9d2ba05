"""What an engine works with, as plain data: its endpoints, its limits, its cache."""

from __future__ import annotations

import functools
import json
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import SplitResult, urlsplit, urlunsplit

import msgspec

from plaudit.errors import ConfigError
from plaudit.types import ChatRequest
from plaudit.value_check import check_fields

Kind = Literal["openai", "ollama"]
OLLAMA_PORT = 11434
_ROUTE = re.compile(
    r"/(chat/)?completions$|(?<=/v1)/(models|embeddings|responses)$|/api/(chat|generate|tags)$"
)
"""How no base URL ends. Some do end in /models."""
_PASSWORD = re.compile(r"(?<!\S)(\W*)(\w+://)?\S*@")
"""Greedy: a password may hold any character but a blank."""
_SECRET_IN_QUERY = re.compile(r"([?&][^=&\s]*(?:key|token|secret|sig|passw)[^=&\s]*=)[^&#\s]+", re.IGNORECASE)
_SECRET_HEADER = re.compile(r"key|token|secret|sig|passw|auth|cookie|credential", re.IGNORECASE)


class Unset(Enum):
    """The type of `UNSET`: an option that was not given, as opposed to None, which means none."""

    UNSET = "not said"

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "not said"


UNSET: Final = Unset.UNSET


@functools.cache
def warn_unneeded(setting: str, remedy: str) -> None:
    """Say once that a setting of the design notes is accepted and changes nothing, and what to use."""
    logging.getLogger("plaudit").warning(
        "%s is accepted but has no effect: one event loop handles all requests, and "
        "adaptive concurrency finds how many the endpoint answers; %s",
        setting,
        remedy,
    )


def expanded(path: str | os.PathLike[str]) -> Path:
    """A path in which ~ stands for a home, where there is one of that name."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser raises where there is none


def names_file(text: str) -> bool:
    """Whether a text is the name of a file; most are rubrics or patterns, too long for any name."""
    return os.path.isfile(expanded(text))  # noqa: PTH113 - Path.is_file raises for these


def home() -> Path:
    """Where plaudit keeps what outlives a run: `$PLAUDIT_HOME`, else `plaudit` in the user's cache folder."""
    if chosen := os.environ.get("PLAUDIT_HOME"):
        return expanded(chosen)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "plaudit"


def default_cache() -> Path:
    """The verdict file that is used where no other is named."""
    return home() / "verdicts.sqlite"


def without_password(text: str) -> str:
    """A URL, or a text with URLs in it, as it may be shown: without users, passwords and keys."""
    text = _PASSWORD.sub(r"\1\2", text)
    return _SECRET_IN_QUERY.sub(r"\1***", text)


def shown_url(url: str) -> str:
    """One URL as it may be shown. Unlike in a longer text, a blank in it may belong to a password."""
    return without_password(re.sub(r"^(\w+://)?.*@", r"\1", url, flags=re.DOTALL))


class Secret:
    """A key that is only shown by `reveal`, never in a repr or a log. Pickles contain it.

    Args:
        value: The key.
        origin: The environment variable it came from, for messages; empty: it was passed in.
    """

    __slots__ = ("_value", "origin")

    def __init__(self, value: str, *, origin: str = "") -> None:
        self._value = value
        self.origin = origin

    def reveal(self) -> str:
        """The key itself. Call it only where it is put on the wire."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


@dataclass(frozen=True, slots=True)
class Price:
    """A price in US dollars per million tokens."""

    prompt: float
    completion: float
    cached_prompt: float | None = None
    """For prompt tokens that the endpoint had in its cache; None: the same as for others."""

    def __post_init__(self) -> None:
        check_fields(self)

    def cost(self, *, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> float:
        """US dollars for so many tokens; the cached ones are among those of the prompt."""
        cached = min(cached_tokens, prompt_tokens) if self.cached_prompt is not None else 0
        rest = prompt_tokens - cached
        return (
            rest * self.prompt + cached * (self.cached_prompt or 0.0) + completion_tokens * self.completion
        ) / 1e6


@dataclass(frozen=True, slots=True)
class Sampling:
    """How replies are generated, as far as it is not left to the judge and the endpoint (None).

    Raises:
        ConfigError: a value makes no sense, or `extra` has a field that is not free.
    """

    max_tokens: int | None = None
    """Tokens that a reply may have, reasoning included. Judges that want one word keep their own."""
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    reasoning_effort: str | None = None
    """`none`, `low`, `medium`, `high`, or what else the model takes."""
    extra: Mapping[str, Any] | None = field(default=None, hash=False)
    """More fields of a request's body, like {"chat_template_kwargs": {"enable_thinking": False}}."""

    def __post_init__(self) -> None:
        check_fields(self)
        _check_extra(self.extra or {})

    def applied(self, request: ChatRequest) -> ChatRequest:
        """The request with what is said here in place of its own."""
        changes: dict[str, Any] = {
            name: value
            for name in ("max_tokens", "temperature", "top_p", "seed", "reasoning_effort")
            if (value := getattr(self, name)) is not None
        }
        if request.top_logprobs:
            changes.pop("max_tokens", None)
        if self.extra:
            changes["extra"] = {**request.extra, **self.extra}
        return replace(request, **changes) if changes else request


def _check_extra(extra: Mapping[str, Any]) -> None:
    for name in extra:
        if not isinstance(name, str):
            raise ConfigError(f"has {name!r} for a name, which is no text", setting="extra")
        if name in _OWN_FIELDS:
            hint = "has an option of its own" if name in Sampling.__slots__ else "is for the engine to fill"
            raise ConfigError(f"has a field {name!r}, which {hint}; leave it out", setting="extra")
    try:
        json.dumps(dict(extra), allow_nan=False)
        msgspec.json.encode(extra)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"has no JSON form ({error})", setting="extra") from None


_OWN_FIELDS = {
    *("model", "messages", "prompt", "stream", "n", "max_tokens", "max_completion_tokens", "temperature"),
    *("top_p", "seed", "reasoning_effort", "response_format", "format", "logprobs", "top_logprobs"),
}
_OWN_HEADERS = {
    "content-type",
    "content-length",
    "transfer-encoding",
    "host",
    "connection",
    "accept-encoding",
}
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HALF_SCHEME = re.compile(r"(https?):/*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server that answers requests for one model."""

    url: str
    """`http://host/v1` (OpenAI-compatible) or `http://host:11434` (Ollama's native routes)."""
    model: str = ""
    api_key: Secret | str | None = None
    kind: Kind | None = None
    """`openai` or `ollama`; None tells them apart by the URL."""
    max_concurrent: int | None = None
    """A ceiling on calls at once to this endpoint; None leaves it to the engine."""
    rpm: int | None = None
    """Requests a minute this endpoint allows; None for no limit of ours."""
    tpm: int | None = None
    """Tokens a minute this endpoint allows; None for no limit of ours."""
    price: Price | None = None
    identity: str = ""
    """Which model this is, in cache keys; empty: its name, so that servers of one name share verdicts.

    Give servers different ones where the same name stands for different weights: another quantisation,
    another fine-tune, `default` on two machines.
    """
    is_direct: bool = False
    """Whether to pass by the proxies that the environment names, as for a server of our own."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    """More headers of every request, like {"X-Team": "rl"}. They are no part of cache keys: where one chooses
    another model, give the endpoint an `identity`."""
    query: str = field(default="", repr=False)
    """Goes with every request, like `api-version=2024-10-21`; taken from the URL, if it has one."""

    def __post_init__(self) -> None:
        check_fields(self)
        parts, port = _parsed(self.url)
        if parts.username or parts.password:
            raise ConfigError(
                "contains a user name or a password; leave them out, and give a key separately",
                setting="url",
                value=without_password(self.url.strip()),
            )
        route = parts.path.rstrip("/")
        if found := _ROUTE.search(route):
            base = urlunsplit((*parts[:2], route[: found.start()], "", ""))
            raise _bad_url(self.url, f"is a single route; give the base URL, {base}")
        if route.endswith("/v1/v1"):
            base = urlunsplit((*parts[:2], route.removesuffix("/v1"), "", ""))
            raise _bad_url(self.url, f"contains /v1 twice; write {base}")
        _check_headers(self.headers)
        is_ollama = route == "/api" or (not route and port == OLLAMA_PORT)
        kind = self.kind or ("ollama" if is_ollama else "openai")
        # No OpenAI-compatible server answers at the root.
        path = route.removesuffix("/api") if kind == "ollama" else route or "/v1"
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "url", urlunsplit((parts.scheme, parts.netloc, path, "", "")))
        object.__setattr__(self, "query", parts.query or self.query)
        if isinstance(self.api_key, str):
            object.__setattr__(self, "api_key", Secret(self.api_key) if self.api_key.strip() else None)
        if isinstance(self.api_key, Secret):
            _check_key(self.api_key)

    def route(self, path: str) -> str:
        """The whole URL of a route, like `/chat/completions`."""
        return f"{self.url}{path}?{self.query}" if self.query else self.url + path

    @property
    def key(self) -> str | None:
        """The API key as text, for the transport only."""
        return self.api_key.reveal() if isinstance(self.api_key, Secret) else None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no message shows though a server repeats it: the key, and values that are named like one."""
        found = [(self.key or "").strip()]
        found += [value for name, value in self.headers.items() if _SECRET_HEADER.search(name)]
        found += [secret[0].partition("=")[2] for secret in _SECRET_IN_QUERY.finditer(f"?{self.query}")]
        return tuple(secret for secret in found if len(secret) > 3)  # `x` stands for having none

    @property
    def name(self) -> str:
        """The name of this endpoint in logs, events and remembered limits."""
        return f"{self.url} {self.model}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig(Sampling):
    """The complete configuration of an engine. It can be pickled and compared; its repr contains no key.

    An engine that is opened with one reads no setting from the environment or from a file: None means that
    there is no such limit, in every process that it reaches.

    Raises:
        ConfigError: a value makes no sense.
    """

    endpoints: tuple[Endpoint, ...] = ()
    max_concurrent: int | None = None
    """Calls at once, over all endpoints; None: adaptive concurrency alone."""
    rpm: int | None = None
    """Requests a minute, over all endpoints."""
    tpm: int | None = None
    """Tokens a minute, over all endpoints."""
    budget: float | None = None
    """US dollars the engine may spend; every endpoint needs a price then."""
    timeout: float = 120.0
    """Seconds for one attempt of one call."""
    hedge: bool = True
    """Whether a call that takes far too long is sent a second time."""
    cache: str | None = None
    """A file, `memory`, or None for no cache."""
    client: str = "httptools"
    """HTTP client: `httptools`, `aiohttp` or `pyreqwest`."""
    observers: tuple[str, ...] = ()
    """Import paths of observers, like `package.module:name`; they are loaded where the engine runs."""
    journal: str | None = None
    """A file that gets every verdict with the evidence behind it; None for none."""
    journal_max_mb: float = 2048.0
    """Megabytes that the journal may take; its oldest part goes for new verdicts."""
    journal_text: bool = True
    """Whether the journal keeps texts; without, it has numbers and hashes only."""
    run: str = ""
    """What the journal calls this run; empty: a name made of the time."""

    def __post_init__(self) -> None:
        Sampling.__post_init__(self)
        for name, kind, example in (
            ("endpoints", Endpoint, "Endpoint(url, model=...)"),
            ("observers", str, "'package.module:name'"),
        ):
            values: Any = getattr(self, name)
            found = tuple(values) if isinstance(values, Iterable) and not isinstance(values, str) else (None,)
            if not all(isinstance(one, kind) for one in found):
                raise ConfigError(f"should be a list, like [{example}]", setting=name)
            object.__setattr__(self, name, found)
        for endpoint in self.endpoints:
            if self.budget is not None and endpoint.price is None:
                raise ConfigError(
                    f"needs prices, and {endpoint.url} has none; set price, or give its Endpoint one, like "
                    "Price(prompt=0.15, completion=0.60): dollars for a million tokens",
                    setting="budget",
                    value=self.budget,
                )

    @property
    def model(self) -> str:
        """The models of all endpoints, as cache keys name them: by identity, where one is given."""
        return "+".join(sorted({endpoint.identity or endpoint.model for endpoint in self.endpoints}))

    @property
    def sampling(self) -> Sampling:
        """What it says of how replies are generated."""
        return Sampling(*(getattr(self, item.name) for item in fields(Sampling)))

    @property
    def has_rates(self) -> bool:
        """Whether requests or tokens a minute are limited, for the engine or for an endpoint."""
        return bool(self.rpm or self.tpm or any(one.rpm or one.tpm for one in self.endpoints))

    def differences(self, other: EngineConfig) -> list[str]:
        """What another configuration has otherwise: `rpm is 60 there and 30 here`. Never a key's value."""
        return list(_differences("", self, other))


def _differences(prefix: str, there: Any, here: Any) -> Iterator[str]:
    for item in fields(there):
        name, one, other = prefix + item.name, getattr(there, item.name), getattr(here, item.name)
        if one == other:
            continue
        if item.name == "endpoints" and len(one) == len(other):
            for number, pair in enumerate(zip(one, other, strict=True)):
                yield from _differences(f"endpoints[{number}].", *pair)
        elif item.name == "endpoints":
            yield f"endpoints are {len(one)} there and {len(other)} here"
        elif item.name in ("api_key", "headers"):
            yield f"{name} differs" if one and other else f"{name} is set only {'there' if one else 'here'}"
        else:
            yield f"{name} is {one!r} there and {other!r} here"


def _check_headers(headers: Mapping[str, str]) -> None:
    """Raise ConfigError for what no header can be. It never shows a value: that may be a key."""
    for name, value in headers.items():
        if not isinstance(name, str) or not _HEADER.fullmatch(name):
            raise ConfigError(f"has {name!r}, which is not a valid header name", setting="headers")
        if name.lower() in _OWN_HEADERS:
            raise ConfigError(f"has {name}, which plaudit sets itself; leave it out", setting="headers")
        if name.lower() == "authorization":
            raise ConfigError(
                "has Authorization; export the key as OPENAI_API_KEY instead, or give api_key= in Python",
                setting="headers",
            )
        if not isinstance(value, str) or not value.isascii() or not value.isprintable():
            raise ConfigError(f"has a value for {name} that a header cannot contain", setting="headers")


def _check_key(key: Secret) -> None:
    """Raise ConfigError for a key that no header can carry. It never shows the key."""
    text = key.reveal().strip()
    if not text.isascii() or not text.isprintable():
        wrong = "contains a line break or another character that a key cannot contain"
    elif text[:1] in "\"'" and text[-1:] == text[:1]:
        wrong = "is in quotation marks, which would be sent with it"
    elif text.lower().startswith("bearer "):
        wrong = "begins with 'Bearer', which plaudit adds itself"
    else:
        return
    where = {"setting": "api_key_env", "spelled": key.origin} if key.origin else {"setting": "api_key"}
    raise ConfigError(f"{wrong}; copy the key again, and nothing else with it", **where)


def _parsed(url: str) -> tuple[SplitResult, int | None]:
    """A URL in its parts, and its port. Raises ConfigError, which says what is wrong with it."""
    url = url.strip()
    if not url:
        raise ConfigError("is empty; write it like http://localhost:8000/v1", setting="url")
    if url[0] in "'\"" or url[-1] in "'\"":
        raise _bad_url(url, "contains quotation marks; leave them out")
    if "://" not in url:
        half = _HALF_SCHEME.match(url)
        scheme, rest = (half[1].lower(), url[half.end() :]) if half else ("http", url)
        raise _bad_url(url, f"has no scheme; write {scheme}://{without_password(rest)}")
    if re.search(r"[,;\s]\w+://", url):
        raise _bad_url(url, "contains several URLs; give each one separately")
    if any(character.isspace() or not character.isprintable() for character in url):
        raise _bad_url(url, "contains a space or another character that is not allowed in a URL; remove it")
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise _bad_url(url, f"is not a URL ({error}); write it like http://localhost:8000/v1") from None
    if parts.scheme not in ("http", "https"):
        raise _bad_url(url, "is not an HTTP address; use http:// or https://")
    if not parts.hostname:
        raise _bad_url(url, "names no host; write it like http://localhost:8000/v1")
    try:
        parts.hostname.encode("idna")  # as the lookup does
    except ValueError:
        raise _bad_url(url, "names a host that cannot be one; check its spelling") from None
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise _bad_url(url, "has no valid port; give a number from 1 to 65535")
    return parts, port


def _bad_url(url: str, complaint: str) -> ConfigError:
    return ConfigError(complaint, setting="url", value=shown_url(url))
