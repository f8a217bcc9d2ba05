"""Which proxy the environment names for a URL, as curl and most programs read it.

Pure: the environment is an argument. `http_proxy` and `https_proxy` by scheme, else `all_proxy`; lower case
wins. `no_proxy` lists hosts, domains (and all below them), addresses, networks (10.0.0.0/8), `host:port`,
or `*`, with commas or spaces between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from plaudit.errors import ConfigError

_DEFAULT_PORTS = {"http": 80, "https": 443}


def proxy_for(url: str, environ: Mapping[str, str]) -> str | None:
    """The proxy's URL, or None to connect directly."""
    parts = urlsplit(url)
    found = _variable(f"{parts.scheme}_proxy", environ) or _variable("all_proxy", environ)
    if found is None:
        return None
    name, proxy = found
    host, port = parts.hostname or "", parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
    _, exceptions = _variable("no_proxy", environ) or ("", "")
    if any(_matches(entry, host, port) for entry in exceptions.replace(",", " ").split()):
        return None
    if "://" not in proxy:
        proxy = "http://" + proxy
    try:
        parts = urlsplit(proxy)
        is_usable = bool((parts.hostname or "").encode("idna")) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise ConfigError("is not the URL of a proxy; write it like http://proxy:3128", setting=name)
    if parts.scheme not in ("http", "https"):
        raise ConfigError(
            f"names a {parts.scheme} proxy, which is not supported; use an http:// proxy", setting=name
        )
    return proxy


def _variable(name: str, environ: Mapping[str, str]) -> tuple[str, str] | None:
    for spelling in (name, name.upper()):
        if spelling == "HTTP_PROXY" and "REQUEST_METHOD" in environ:
            continue  # inside a CGI script a client's Proxy header would land there
        if value := environ.get(spelling, "").strip():
            return spelling, value
    return None


def _matches(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        return _is_in_network(host, entry)
    name, colon, wanted_port = entry.rpartition(":")
    if colon and wanted_port.isdigit() and (":" not in name or name.endswith("]")):
        if int(wanted_port) != port:
            return False
        entry = name
    entry = entry.strip("[]").removeprefix("*").lstrip(".").lower()
    return host == entry or host.endswith("." + entry)


def _is_in_network(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False
