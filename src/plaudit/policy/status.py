"""What an HTTP status says of a call that failed, and so who acts on it."""

from __future__ import annotations

from plaudit.errors import (
    EndpointRefused,
    KeyRefused,
    ModelNotFound,
    PlauditError,
    RateLimited,
    RequestRefused,
    TransportFailed,
)

QUOTA = 429
"""Too many requests, by some count; the others that ask for patience say that there is no room."""
HTTPS_WANTED = 497
"""nginx's own, for http on a port that speaks TLS."""
WRONG_ROUTE = (405, 406, 410, 415, 501)
"""What servers say where a URL is not the base URL of an API."""
_OF_THE_SERVER = frozenset({408, 409, 421, 423, 424, 425, 430, *range(432, 500)} - {451})
"""Said of the server, not of the request; past 431 only gateways say them, of what lies behind them."""


def error_for(status: int) -> type[PlauditError]:
    """The error that an answer with this status is, as far as the status alone tells."""
    if status in (401, 403):
        return KeyRefused
    if status == 404:
        return ModelNotFound
    if status in (QUOTA, 498, 503, 529):  # 498: Groq's, for no room; 529: Anthropic's
        return RateLimited
    if status in (402, 407, HTTPS_WANTED, *WRONG_ROUTE):
        return EndpointRefused
    return TransportFailed if status >= 500 or status in _OF_THE_SERVER else RequestRefused
