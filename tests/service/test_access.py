"""Who may ask: every rule, on every method."""

from __future__ import annotations

from typing import Any

import pytest
from multidict import CIMultiDict

from plaudit.config import Secret
from plaudit.errors import ConfigError
from plaudit.service.access import PASS_SECONDS, Access

TOKEN = Secret("correct-horse-battery")
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
HERE = "127.0.0.1:8400"


OPEN = Access()
HEADERS = {
    "hosts": "Host",
    "origins": "Origin",
    "fetch_sites": "Sec-Fetch-Site",
    "authorization": "Authorization",
    "content_type": "Content-Type",
    "encoding": "Content-Encoding",
}


def status(access: Access = OPEN, method: str = "POST", **head: Any) -> int | None:
    given = {"hosts": [HERE], "content_type": "application/json", **head}
    headers = CIMultiDict[str]()
    for name, header in HEADERS.items():
        value = given.pop(name, [])
        headers.extend((header, one) for one in ([value] if isinstance(value, str) else value))
    refusal = access.refusal(method, headers, **given)
    return None if refusal is None else refusal.status


@pytest.mark.parametrize("host", ["localhost:8400", "127.0.0.1", "[::1]:8400", HERE])
def test_programs_on_this_machine_are_served(host: str) -> None:
    assert status(hosts=[host]) is None
    assert status(method="GET", hosts=[host], content_type="") is None


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "hosts",
    [
        [],
        ["evil.example"],
        ["evil.example:8400"],
        [HERE, HERE],
        ["127.0.0.1.evil.example"],
        ["[::1"],
        ["localhost/evil.example"],
        ["localhost@evil.example"],
    ],
)
def test_a_foreign_missing_or_doubled_host_is_refused_on_every_method(method: str, hosts: list[str]) -> None:
    assert status(method=method, hosts=hosts) == 400


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "head",
    [
        {"origins": ["https://evil.example"]},
        {"origins": ["null"]},
        {"origins": [""]},
        {"origins": ["http://["]},
        {"origins": ["http://127.0.0.1:9999"]},
        {"origins": [f"http://{HERE}", "https://evil.example"]},
        {"fetch_sites": ["cross-site"]},
        {"fetch_sites": ["same-site"]},
        {"fetch_sites": ["same-origin", "cross-site"]},
    ],
)
def test_requests_from_other_sites_are_refused_on_every_method(method: str, head: dict[str, Any]) -> None:
    assert status(method=method, **head) == 403


def test_the_servers_own_page_is_served() -> None:
    assert status(origins=[f"http://{HERE}"], fetch_sites=["same-origin"]) is None


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_than_get_and_post_are_refused(method: str) -> None:
    assert status(method=method) == 405


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "text/json"])
def test_a_post_has_to_be_json(kind: str) -> None:
    assert status(content_type=kind) == 415


def test_json_with_a_character_set_is_json() -> None:
    assert status(content_type="application/json; charset=utf-8") is None


def test_a_packed_body_is_refused() -> None:
    assert status(encoding="gzip") == 415


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer wrong", "Basic correct-horse-battery", "Bearer é"])
def test_without_the_right_token_nothing_is_served(given: str) -> None:
    access = Access(token=TOKEN)
    assert status(access, authorization=given) == 401
    assert status(access, "GET", authorization=given, content_type="") == 401


def test_with_the_token_it_is() -> None:
    assert status(Access(token=TOKEN), authorization="Bearer correct-horse-battery") is None


def test_other_addresses_need_a_token_and_a_name() -> None:
    with pytest.raises(ConfigError) as caught:
        Access("0.0.0.0")
    assert caught.value.setting == "host"
    with pytest.raises(ConfigError) as caught:
        Access("0.0.0.0", token=TOKEN)
    assert caught.value.setting == "trusted_host"
    access = Access("0.0.0.0", ("judge.lan",), TOKEN)
    assert status(access, hosts=["judge.lan:8400"], authorization="Bearer correct-horse-battery") is None


def test_a_token_that_can_be_guessed_is_refused_and_none_is_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        Access(token=Secret("hunter2"))
    assert caught.value.setting == "token" and "hunter2" not in str(caught.value)
    assert "horse" not in repr(Access(token=TOKEN))


def test_a_pass_reads_the_page_for_some_hours_and_does_nothing_else() -> None:
    access = Access(token=TOKEN)
    pass_ = access.new_pass(1000.0)
    assert TOKEN.reveal() not in pass_
    assert status(access, "GET", page_pass=pass_, now=1001.0) is None
    assert status(access, "GET", page_pass=pass_, now=1000.0 + PASS_SECONDS) == 401
    assert status(access, "POST", page_pass=pass_, now=1001.0) == 401
    assert status(access, "GET", page_pass=pass_, now=1001.0, fetch_sites=["cross-site"]) == 403


@pytest.mark.parametrize(
    "forged", ["", ".", "9" * 12, "99999999999.", "99999999999.é", "99999999999." + "0" * 64, "1e9.", "٣.x"]
)
def test_a_forged_pass_reads_nothing(forged: str) -> None:
    access = Access(token=TOKEN)
    assert status(access, "GET", page_pass=forged, now=1.0) == 401
    other = Access(token=Secret("another-token-of-length")).new_pass(1000.0)
    assert status(access, "GET", page_pass=other, now=1001.0) == 401
    until, _, mark = access.new_pass(1000.0).partition(".")
    assert status(access, "GET", page_pass=f"{int(until) + 1}.{mark}", now=1001.0) == 401


def test_the_page_without_its_data_is_for_everybody_to_read() -> None:
    access = Access(token=TOKEN)
    assert status(access, "GET", is_public=True) is None
    assert status(access, "POST", is_public=True) == 401
