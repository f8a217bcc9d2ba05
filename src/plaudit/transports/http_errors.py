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
from plaudit.transports.complaint import Complaint, complaint_of, is_about_length

_MEANS = {
    "invalid_api_key": 401,
    "insufficient_quota": 402,
    "insufficient_balance": 402,
    "credit_balance_exhausted": 402,
    "billing_hard_limit_reached": 402,
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
_SAYS = {"api key not valid": 401, **dict.fromkeys(_NO_MODEL, 404)}
"""The same for services and gateways that give no telling code."""
_TRANSIENT_4XX = (408, 409, 425)
_WRONG_ROUTE = (405, 406, 410, 415, 501)


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
            return str(error.strerror or error)


def broken(endpoint: Endpoint, cause: str) -> TransportFailed:
    """The call broke on the way, or the body is not a reply."""
    return TransportFailed(f"{endpoint.name}: {_short(cause)}").with_facts(endpoint=endpoint.name)


def too_large(endpoint: Endpoint, most: int) -> TransportFailed:
    """The reply, unpacked, is longer than is read."""
    return broken(endpoint, f"the reply is larger than {most >> 20} MiB")


def dropped(endpoint: Endpoint, *, is_kept_alive: bool | None = None) -> Dropped:
    """The server hung up without a word."""
    message = f"{endpoint.name}: the server closed the connection without an answer"
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
    error = _of_status(endpoint, status, headers, complaint, now=now)
    wait = retry_after(headers, now=now)
    return error.with_facts(endpoint=endpoint.name, http_status=status, retry_after_s=wait)


def _of_status(
    endpoint: Endpoint, status: int, headers: Mapping[str, str], complaint: Complaint, *, now: float
) -> PlauditError:
    said = complaint.excerpt(endpoint.key)
    what = f"{endpoint.name} answered {status}" + (f": {said}" if said else "")
    wait = retry_after(headers, now=now)
    status = _meaning(status, complaint)
    if status == 402:
        return EndpointRefused(f"{what}; the account has no credit left: add some, or use another endpoint")
    if status in (401, 403):
        return KeyRefused(f"{what}; {_about_key(endpoint)}")
    if status == 404:
        return _not_found(endpoint, what, complaint)
    if status == 407:
        return EndpointRefused(f"{what}; the proxy wants credentials: write them into HTTP_PROXY")
    if status in (429, 503, 529):
        rate = rate_headers(headers, now=now)
        return RateLimited(f"{what}; it is rate limiting", retry_after=wait, rate=rate)
    if is_about_length(complaint) and status in (400, 413, 422, 500):
        return RequestRefused(
            f"{what}; the request is longer than the model's context: shorten it, lower max_tokens, "
            "or use a model with a longer context"
        )
    if status == 413:
        return RequestRefused(f"{what}; the request is larger than the server takes: shorten it")
    if status in _TRANSIENT_4XX or (status >= 500 and status not in _WRONG_ROUTE):
        return TransportFailed(f"{what}; the server failed, and may do better later", retry_after=wait)
    if status in _WRONG_ROUTE:
        return EndpointRefused(f"{what}; check that {endpoint.url} is the base URL of an API")
    return RequestRefused(f"{what}; the server will not take this request")


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


def _not_found(endpoint: Endpoint, what: str, complaint: Complaint) -> ModelNotFound:
    if "model" in f"{complaint.message} {complaint.code}".lower():
        remedy = f"model {endpoint.model!r} does not exist; check its name"
        if endpoint.kind == "ollama":
            remedy += f", or run `ollama pull {endpoint.model}`"
    elif endpoint.kind == "ollama":
        remedy = "the URL of an Ollama server has no path, like http://localhost:11434"
    else:
        remedy = f"no such route or model: check the model's name, and that {endpoint.url} is the base URL"
    return ModelNotFound(f"{what}; {remedy}")


def _redirected(endpoint: Endpoint, status: int, location: str) -> EndpointRefused:
    try:
        host = urlsplit(location).netloc.rpartition("@")[2] or "another path"
    except ValueError:
        host = "an unreadable address"
    return EndpointRefused(
        f"{endpoint.name} answered {status}, a redirect to {host}; redirects are not followed, because the "
        "key would travel along: use the final URL"
    )


def _short(text: str) -> str:
    return Complaint(message=text).excerpt(None)
