"""What an unsuccessful answer means: a status and a body in, the error that says who acts out.

Pure. Every message names the endpoint, what it said (shortened, without the key) and the remedy.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

from plaudit.config import Endpoint, Secret
from plaudit.errors import (
    EndpointRefused,
    KeyRefused,
    ModelNotFound,
    OutOfFiles,
    PlauditError,
    RateLimited,
    RequestRefused,
    TransportFailed,
    Unreachable,
)
from plaudit.policy.headers import rate_headers, retry_after
from plaudit.policy.status import HTTPS_WANTED, QUOTA, WRONG_ROUTE, error_for
from plaudit.transports.client import MAX_BODY
from plaudit.transports.complaint import Complaint, complaint_of, is_about_length

_MEANS = {
    "invalid_api_key": 401,
    "insufficient_quota": 402,
    "insufficient_balance": 402,
    "credit_balance_exhausted": 402,
    "billing_hard_limit_reached": 402,
    "exceeded_current_quota_error": 402,
    "budget_exceeded": 402,
    "model_not_found": 404,
}
"""Codes that tell more than the status they come with: 429 for an empty account, 400 for an unknown model."""
_MEANS_IN_REPLY = _MEANS | {
    "authentication_error": 401,
    "permission_denied": 403,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "overloaded_error": 503,
    "context_length_exceeded": 400,
    "invalid_request_error": 400,
}
"""Codes to go by where the status said 200."""
_NO_MODEL = ("not a valid model", "invalid model name", "invalid model:", "unknown model", "model not exist",
    "model not found")  # fmt: skip
_ONLY_TLS = ("plain http request was sent to https", "http request to an https", "plain http to an ssl")
_SAYS = {
    **dict.fromkeys(("api key not valid", "invalid api key"), 401),
    "credit balance is too low": 402,
    **dict.fromkeys(_NO_MODEL, 404),
    **dict.fromkeys(_ONLY_TLS, HTTPS_WANTED),
}
"""The same for services and gateways that give no telling code."""
_OVER_LIMIT = ("request too large", "tokens must be reduced")
"""How a 429 is worded that will always be one: the request alone is over the limit of a minute."""
_REMEDIES = {
    402: "the account has no credit left: add some, or use another endpoint",
    407: "the proxy wants credentials: write them into HTTP_PROXY",
    413: "the request is larger than the server takes: shorten it",
    503: "it is overloaded, or not ready yet",
    529: "it is overloaded",
}
_REMEDIES_BY_KIND = {
    RateLimited: "it is rate limiting",
    TransportFailed: "the server failed, and may do better later",
    RequestRefused: "the server will not take this request",
}
PLAIN_HTTP = ("wrong version number", "wrong_version_number", "record layer failure", "record_layer_failure",
    "invalidcontenttype")  # fmt: skip
"""What TLS libraries say of an answer that is not encrypted."""


class Dropped(TransportFailed):
    """The server hung up before the first byte of an answer: the request may never have been read.

    `is_kept_alive`: whether the connection had served another request before; None: the client cannot tell.
    """

    is_dropped = True

    def __init__(self, message: str, *, is_kept_alive: bool | None = None) -> None:
        super().__init__(message)
        self.is_kept_alive = is_kept_alive


def failure_of(
    endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes, *, now: float
) -> PlauditError:
    """The error for an answer whose status is not a success."""
    if 300 <= status < 400:
        return _redirected(endpoint, status, headers.get("location", "")).with_facts(
            endpoint=endpoint.name, http_status=status
        )
    return _error(endpoint, status, headers, complaint_of(body), now=now)


def failure_in_reply(
    endpoint: Endpoint, headers: Mapping[str, str], complaint: Complaint, *, now: float
) -> PlauditError:
    """The error for an answer that said 200 and held an error all the same."""
    by_code = (_MEANS_IN_REPLY.get(code) for code in complaint.code.lower().split())
    status = complaint.status or next((known for known in by_code if known), 500)
    return _error(endpoint, status, headers, complaint, now=now)


def unreachable(endpoint: Endpoint, cause: str, *, proxy: str | None = None) -> Unreachable:
    """No connection came about. `cause` is the client's own words."""
    where = f"no connection to {endpoint.url}"
    if proxy is not None:
        where += f" through the proxy {urlsplit(proxy).hostname}"
    lowered = cause.lower()
    if any(sign in lowered for sign in PLAIN_HTTP):
        remedy = f"the server speaks http, not https; write {endpoint.url.replace('https://', 'http://', 1)}"
    elif "not valid for" in lowered:
        remedy = "write the URL with the name that the certificate is for"
    elif "expired" in lowered:
        remedy = "renew the server's certificate, or set this machine's clock"
    elif "certificate" in lowered or "ssl" in lowered or "tls" in lowered:
        remedy = "if its certificate is signed by your own authority, name its file in SSL_CERT_FILE"
    elif any(sign in lowered for sign in ("name or service", "nodename", "dns", "getaddrinfo", "resolv")):
        remedy = "check the spelling of the host, and the network"
    elif proxy is not None:
        remedy = "check HTTP_PROXY and HTTPS_PROXY, or name the host in NO_PROXY"
    elif endpoint.kind == "ollama":
        remedy = "start Ollama with `ollama serve`, or correct the URL"
    else:
        remedy = "start a server there (`vllm serve MODEL`, `plaudit simulate`), or correct the URL"
    return Unreachable(f"{where}: {_short(cause)}; {remedy}").with_facts(endpoint=endpoint.name)


def system_words(error: OSError) -> str:
    """What the system or the TLS library said of a connection, without addresses."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"TLS certificate not accepted ({error})"
        case ssl.SSLError():
            return f"TLS failed ({error})"
        case _ if error.errno and error.errno > 0:  # the resolver's are negative
            return os.strerror(error.errno)
        case _:
            return str(error.strerror or error) or "the connection was closed while it was being made"


def broken(endpoint: Endpoint, cause: str) -> TransportFailed:
    """The call broke on the way, or the body is not a reply."""
    return TransportFailed(f"{endpoint.name}: {_short(cause)}").with_facts(endpoint=endpoint.name)


def too_large(endpoint: Endpoint) -> TransportFailed:
    """The reply, unpacked, is longer than is read."""
    return broken(endpoint, f"the reply is larger than {MAX_BODY >> 20} MiB")


def dropped(endpoint: Endpoint, *, is_kept_alive: bool | None = None) -> Dropped:
    """The server hung up without a word."""
    message = f"{endpoint.name}: the server closed the connection without an answer"
    if endpoint.url.startswith("http:") and not is_kept_alive:
        message += "; if it always does, check the URL's scheme and port"
    return Dropped(message, is_kept_alive=is_kept_alive).with_facts(endpoint=endpoint.name)


def out_of_files(endpoint: Endpoint) -> OutOfFiles:
    """There is no file descriptor left for another connection."""
    return OutOfFiles(
        f"{endpoint.name}: this process has too many open files for another connection; "
        "raise the limit with `ulimit -n`, or lower max_concurrent"
    )


def proxy_refused(endpoint: Endpoint, status: int, proxy: str) -> PlauditError:
    """The proxy would not let us through to the endpoint."""
    host = urlsplit(proxy).hostname
    if status == 407:
        return EndpointRefused(
            f"the proxy {host} wants credentials for {endpoint.url} (407); "
            "write them into HTTPS_PROXY, like http://user:password@host:port"
        )
    return unreachable(endpoint, f"the proxy answered {status}", proxy=proxy)


def blind(endpoint: Endpoint) -> RequestRefused:
    """The endpoint's model takes no pictures."""
    return RequestRefused(
        f"{endpoint.name} does not take pictures; use a model that can see, or leave them out of the rows"
    ).with_facts(endpoint=endpoint.name, pictures="refused")


def _error(
    endpoint: Endpoint, status: int, headers: Mapping[str, str], complaint: Complaint, *, now: float
) -> PlauditError:
    said = complaint.excerpt(*endpoint.secrets)
    what = f"{endpoint.name} answered {status}" + (f": {said}" if said else "")
    kind, remedy = _who_acts(endpoint, _meaning(status, complaint), complaint)
    message, wait = f"{what}; {remedy}", retry_after(headers, now=now)
    if kind is RateLimited:
        error: PlauditError = RateLimited(
            message, retry_after=wait, rate=rate_headers(headers, now=now), is_quota=status == QUOTA
        )
    else:
        error = TransportFailed(message, retry_after=wait) if kind is TransportFailed else kind(message)
    return error.with_facts(endpoint=endpoint.name, http_status=status, retry_after_s=wait)


def _who_acts(endpoint: Endpoint, status: int, complaint: Complaint) -> tuple[type[PlauditError], str]:
    """The kind of error, and what can be done about it."""
    if status == 429 and any(sign in complaint.message.lower() for sign in _OVER_LIMIT):
        return RequestRefused, (
            "the request alone is over the account's limit: shorten it, lower max_tokens, "
            "or have the limit raised"
        )
    if is_about_length(complaint) and status in (400, 413, 422, 500):
        return RequestRefused, (
            "the request is longer than the model's context: shorten it, lower max_tokens, "
            "or use a model with a longer context"
        )
    kind = error_for(status)
    if kind is KeyRefused:
        return kind, _about_key(endpoint)
    if kind is ModelNotFound:
        return kind, _about_model(endpoint, complaint)
    if status == HTTPS_WANTED:
        url = endpoint.url.replace("http://", "https://", 1)
        return kind, f"the server speaks https, not http: write {url}"
    if status in WRONG_ROUTE:
        return kind, f"check that {endpoint.url} is the base URL of an API"
    return kind, _REMEDIES.get(status) or _REMEDIES_BY_KIND[kind]


def _about_key(endpoint: Endpoint) -> str:
    if endpoint.api_key is None:
        return "no key was sent: set OPENAI_API_KEY"
    origin = endpoint.api_key.origin if isinstance(endpoint.api_key, Secret) else ""
    if origin:
        return f"it refuses the key in {origin}: set {origin} to a valid one"
    return "it refuses the key that was passed as api_key: pass a valid one"


def _meaning(status: int, complaint: Complaint) -> int:
    for code in complaint.code.lower().split():
        if code in _MEANS:
            return _MEANS[code]
    message = complaint.message.lower()
    return next((known for sign, known in _SAYS.items() if status == 400 and sign in message), status)


def _about_model(endpoint: Endpoint, complaint: Complaint) -> str:
    if "model" in f"{complaint.message} {complaint.code}".lower():
        pull = f", or run `ollama pull {endpoint.model}`" if endpoint.kind == "ollama" else ""
        return f"model {endpoint.model!r} does not exist; check its name{pull}"
    if endpoint.kind == "ollama":
        return "the URL of an Ollama server has no path, like http://localhost:11434"
    return f"no such route or model: check the model's name, and that {endpoint.url} is the base URL"


def _redirected(endpoint: Endpoint, status: int, location: str) -> EndpointRefused:
    try:
        target, ours = urlsplit(location), urlsplit(endpoint.url)
        host = target.netloc.rpartition("@")[2] or "another path"
        if (target.scheme, target.hostname) == ("https", ours.hostname) and ours.scheme == "http":
            host = f"https://{host}"
    except ValueError:
        host = "an unreadable address"
    return EndpointRefused(
        f"{endpoint.name} answered {status}, a redirect to {host}; redirects are not followed, because the "
        "key would travel along: use the final URL"
    )


def _short(text: str) -> str:
    return Complaint(message=text).excerpt()
