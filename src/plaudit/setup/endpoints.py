"""From settings to endpoints: is there a key where one is needed, and which model is meant."""

from __future__ import annotations

import ipaddress
from dataclasses import replace
from urllib.parse import urlsplit

from plaudit.config import Endpoint, Price, without_password
from plaudit.errors import NO_VALUE, ConfigError, spelling
from plaudit.settings import Settings

ROUTES = ("/chat/completions", "/completions", "/api/chat", "/api/generate")


def endpoints_of(settings: Settings) -> tuple[Endpoint, ...]:
    """An endpoint for every base URL, with its price and the key if there is one; the model may be open."""
    with spelling(settings.spelled):
        return tuple(_endpoint(url, settings) for url in settings.base_url)


def _endpoint(url: str, settings: Settings) -> Endpoint:
    route = url.partition("?")[0].rstrip("/")
    if route.endswith(ROUTES):
        base = without_password(route.removesuffix("/completions").removesuffix("/chat"))
        raise ConfigError(
            f"is a single route; give the base URL, {base}", setting="base_url", value=without_password(route)
        )
    price = Price(*settings.price) if settings.price else None
    try:
        return Endpoint(url, model=settings.model, api_key=settings.api_key, price=price)
    except ConfigError as error:
        error.setting = "base_url"  # the name that its URL has as a setting
        raise


def require_keys(endpoints: tuple[Endpoint, ...], settings: Settings) -> None:
    """Raise ConfigError where a key is needed and there is none."""
    for endpoint in endpoints:
        if endpoint.key is None and not is_local(endpoint.url):
            raise missing_key(endpoint, settings)


def with_models(endpoints: tuple[Endpoint, ...], settings: Settings) -> tuple[Endpoint, ...]:
    """Give each endpoint that names no model its only one. ConfigError where there are none, or several.

    An endpoint that refuses connections is waited for as long as the engine would, or until the deadline.
    """
    if all(endpoint.model for endpoint in endpoints):
        return endpoints
    from plaudit.setup.model_list import only_model  # loads an HTTP client, which most runs do without

    return tuple(
        endpoint if endpoint.model else replace(endpoint, model=only_model(endpoint, settings))
        for endpoint in endpoints
    )


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
        return ConfigError(
            f"is empty or not set, and {host} needs a key; run: export {named}=...",
            setting="api_key_env",
            value=named,
        )
    return ConfigError(
        f"is not given, and {host} needs a key; run: export OPENAI_API_KEY=..., "
        "or name the variable that holds the key",
        setting="api_key_env",
    )


def refused_key(endpoint: Endpoint, status: int, settings: Settings) -> ConfigError:
    """The error where the key is refused, or one turns out to be needed."""
    if endpoint.key is None:
        return missing_key(endpoint, settings)
    variable = settings.api_key.origin if settings.api_key else ""
    return ConfigError(
        f"holds a key that {endpoint.url} refuses ({status}); put the right one there",
        setting="api_key_env" if variable else "api_key",
        value=variable or NO_VALUE,
    )
