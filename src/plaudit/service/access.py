"""Who may ask: checks on a request's head, made before anything of its body is read.

Pure. A server on this machine is reachable by every page that its user's browser has open: by DNS rebinding
under a foreign name (so the Host is checked), and by requests across sites (so the Origin is). A server on
other addresses has a token as well. A browser sends it once and gets a pass for the page: a cookie that is
good for some hours, for reading only, and does not tell the token.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
from dataclasses import dataclass
from urllib.parse import urlsplit

from multidict import MultiMapping

from plaudit.config import Secret
from plaudit.errors import ConfigError

TOKEN = "PLAUDIT_TOKEN"  # noqa: S105 - the name of a variable
LOOPBACK = ("localhost", "127.0.0.1", "::1")
READING = ("GET", "HEAD")
MIN_TOKEN = 16
"""Characters; a shorter token can be guessed."""
PASS_SECONDS = 12 * 3600
"""How long a browser may read the page before it is asked for the token again."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not served."""

    status: int
    message: str


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of one server.

    Raises:
        ConfigError: the server would be open to strangers.
    """

    host: str = "127.0.0.1"
    """The address that it listens on."""
    trusted_hosts: tuple[str, ...] = ()
    """Names, besides those of this machine, under which clients reach it."""
    token: Secret | None = None

    def __post_init__(self) -> None:
        if self.token is not None and len(self.token.reveal()) < MIN_TOKEN:
            why = f"has fewer than {MIN_TOKEN} characters; use a longer one"
            raise ConfigError(why, setting="token", spelled=TOKEN)
        if self.host in LOOPBACK:
            return
        if self.token is None:
            raise ConfigError(
                "allows other machines, so clients need a token; run: export PLAUDIT_TOKEN=$(openssl rand "
                "-hex 24), and give the same to clients as OPENAI_API_KEY",
                setting="host",
                value=self.host,
            )
        if not self.trusted_hosts:
            raise ConfigError(
                "allows other machines; name the host that clients use in their URL", setting="trusted_host"
            )

    def refusal(
        self,
        method: str,
        headers: MultiMapping[str],
        *,
        page_pass: str = "",
        now: float = 0.0,
        is_public: bool = False,
    ) -> Refusal | None:
        """Why a request with this head is not served; None if it is.

        Args:
            method: GET, POST, ...
            headers: All there are. Origin and Sec-Fetch-Site come from pages in a browser.
            page_pass: What `new_pass` gave, where the request is for the page.
            now: Unix time, by which a pass ends.
            is_public: Whether there is nothing to protect: the page without its data.
        """
        hosts = headers.getall("Host", [])
        if len(hosts) != 1 or _host_of(hosts[0]) not in (*LOOPBACK, *self.trusted_hosts):
            return Refusal(400, "the Host header does not name this server")
        own = (f"http://{hosts[0]}", f"https://{hosts[0]}")
        origins, sites = headers.getall("Origin", []), headers.getall("Sec-Fetch-Site", [])
        if not {*origins} <= {*own} or not {*sites} <= {"none", "same-origin"}:
            return Refusal(403, "requests from other sites are refused")
        is_reader = method in READING and (is_public or self._is_pass(page_pass, now))
        if self.token is not None and not is_reader and not self._is_known(headers.get("Authorization", "")):
            return Refusal(401, "the token is missing or wrong; send it as Authorization: Bearer TOKEN")
        if method in READING:
            return None
        if method != "POST":
            return Refusal(405, "use GET or POST")
        if headers.get("Content-Type", "").partition(";")[0].strip().lower() != "application/json":
            return Refusal(415, "send JSON, with Content-Type: application/json")
        if headers.get("Content-Encoding"):
            return Refusal(415, "send the body as it is, without a Content-Encoding")
        return None

    def new_pass(self, now: float) -> str:
        """A pass to read the page, for who has sent the token."""
        return self._pass_until(int(now) + PASS_SECONDS)

    def _is_pass(self, given: str, now: float) -> bool:
        until = given.partition(".")[0]
        if self.token is None or not until.isdecimal() or len(until) > 12 or int(until) <= now:
            return False
        return _is_equal(given, self._pass_until(int(until)))

    def _pass_until(self, until: int) -> str:
        key = self.token.reveal().encode() if self.token is not None else b""
        return f"{until}.{hmac.new(key, b'page until %d' % until, hashlib.sha256).hexdigest()}"

    def _is_known(self, authorization: str) -> bool:
        assert self.token is not None
        scheme, _, given = authorization.partition(" ")
        return _is_equal(given.strip(), self.token.reveal()) and scheme.lower() == "bearer"


def _is_equal(given: str, secret: str) -> bool:
    """Compare without telling, by the time it takes, how much was right."""
    return hmac.compare_digest(given.encode(errors="surrogateescape"), secret.encode())


@functools.lru_cache(maxsize=256)
def _host_of(header: str) -> str:
    """The name in a Host header, without its port."""
    try:
        parts = urlsplit(f"//{header}")
        return (parts.hostname or "") if parts.netloc == header else ""
    except ValueError:
        return ""
