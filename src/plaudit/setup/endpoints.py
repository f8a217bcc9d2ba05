"""From settings to endpoints: is there a key where one is needed, and which model is meant."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from urllib.parse import urlsplit

from plaudit.config import Endpoint
from plaudit.errors import NO_VALUE, ConfigError
from plaudit.settings import Settings, endpoints_of

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_MODEL = "gpt-4o-mini"
"""Where the judge is when only a key is given."""
PROVIDERS = (
    "api.openai.com", "openai.azure.com", "api.anthropic.com", "openrouter.ai",
    "generativelanguage.googleapis.com",
    "api.groq.com", "api.mistral.ai", "api.deepseek.com", "api.together.xyz", "api.fireworks.ai", "api.x.ai",
    "api.deepinfra.com", "api.cerebras.ai", "api.perplexity.ai", "integrate.api.nvidia.com",
)  # fmt: skip
"""Hosts that are known to answer nothing without a key; any other server is asked, and may want none."""


def judge_endpoints(settings: Settings, given: tuple[Endpoint, ...] = ()) -> tuple[Endpoint, ...]:
    """The judge's endpoints, or those `given`, each with its key and its model. With only a key, OpenAI's.

    ConfigError where there is none, no key where one is needed, or no telling which model is meant.
    """
    if not (given or settings.base_url):
        if settings.api_key is None:
            variable = settings.api_key_env or "OPENAI_API_KEY"
            raise ConfigError(
                f"is not set, and neither is {variable}: there is no judge; run: export {variable}=... for "
                "OpenAI, or for your own server: export OPENAI_BASE_URL=http://host:8000/v1",
                setting="base_url",
            )
        settings = replace(settings, base_url=(OPENAI_URL,), model=settings.model or OPENAI_MODEL)
    endpoints = given or endpoints_of(settings)
    require_keys(endpoints, settings)
    return with_models(endpoints, settings)


def require_keys(endpoints: tuple[Endpoint, ...], settings: Settings) -> None:
    """Raise ConfigError where a key is needed and there is none, or its variable was named and is not set."""
    if settings.api_key is None and settings.is_argument("api_key_env"):
        named = settings.api_key_env
        raise ConfigError(f"is not set; run: export {named}=...", setting="api_key_env", value=named)
    for endpoint in endpoints:
        if endpoint.key is None and needs_key(endpoint.url):
            raise missing_key(endpoint, settings)


def with_models(endpoints: tuple[Endpoint, ...], settings: Settings) -> tuple[Endpoint, ...]:
    """Give each endpoint that names no model its only one. ConfigError where there are none, or several.

    An endpoint that refuses connections is waited for as long as the engine would, or until the deadline.
    """
    if all(endpoint.model for endpoint in endpoints):
        return endpoints
    from plaudit.setup.model_list import with_only_model  # loads an HTTP client, which most runs do without

    def with_model(endpoint: Endpoint) -> Endpoint:
        return endpoint if endpoint.model else with_only_model(endpoint, settings)

    is_on_event_loop = False
    with contextlib.suppress(RuntimeError):
        is_on_event_loop = bool(asyncio.get_running_loop())
    if not is_on_event_loop:
        return tuple(map(with_model, endpoints))
    with ThreadPoolExecutor(1) as aside:  # it runs an event loop, and this thread has one running
        return tuple(aside.map(with_model, endpoints))


def needs_key(url: str) -> bool:
    """Whether a host is a service that is known to answer nothing without a key."""
    host = urlsplit(url).hostname or ""
    return any(host == known or host.endswith(f".{known}") for known in PROVIDERS)


def is_local(url: str) -> bool:
    """Whether a host is this machine or in a private network, where servers commonly need no key."""
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".local", ".internal", ".lan"))
    return address.is_private or address.is_loopback or address.is_link_local


def missing_key(endpoint: Endpoint, settings: Settings) -> ConfigError:
    """The error where a key is needed and there is none."""
    host = urlsplit(endpoint.url).hostname
    if named := settings.api_key_env:
        why = f"is empty or not set, and {host} needs a key; run: export {named}=..."
        return ConfigError(why, setting="api_key_env", value=named)
    why = f"is not given, and {host} needs a key; run: export OPENAI_API_KEY=..., or name the variable that "
    return ConfigError(why + "contains the key", setting="api_key_env")


def refused_key(endpoint: Endpoint, status: int, settings: Settings) -> ConfigError:
    """The error where the key is refused, or one turns out to be needed."""
    if endpoint.key is None:
        return missing_key(endpoint, settings)
    variable = settings.api_key.origin if settings.api_key else ""
    return ConfigError(
        f"contains a key that {endpoint.url} refuses ({status}); correct it",
        setting="api_key_env" if variable else "api_key",
        value=variable or NO_VALUE,
    )
