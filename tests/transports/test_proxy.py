"""Proxies by environment variable, as users expect from curl and everything like it."""

from __future__ import annotations

import pytest
from complaints import about

from plaudit.errors import ConfigError
from plaudit.transports.proxy import proxy_for

PROXY = "http://proxy:3128"


def test_no_variable_means_no_proxy() -> None:
    assert proxy_for("http://host/v1", {}) is None
    assert proxy_for("http://host/v1", {"HTTP_PROXY": " "}) is None


def test_each_scheme_has_its_own_and_all_proxy_serves_both() -> None:
    environ = {"HTTP_PROXY": "http://plain:1", "https_proxy": "http://safe:2"}
    assert proxy_for("http://host", environ) == "http://plain:1"
    assert proxy_for("https://host", environ) == "http://safe:2"
    assert proxy_for("https://host", {"ALL_PROXY": PROXY}) == PROXY


def test_lower_case_wins() -> None:
    assert proxy_for("http://host", {"HTTP_PROXY": "http://upper:1", "http_proxy": PROXY}) == PROXY


def test_a_proxy_may_be_written_without_its_scheme() -> None:
    assert proxy_for("http://host", {"HTTP_PROXY": "proxy:3128"}) == PROXY


def test_a_kind_of_proxy_that_is_not_supported_is_named_without_its_password() -> None:
    with pytest.raises(ConfigError, check=about("ALL_PROXY")) as caught:
        proxy_for("http://host", {"ALL_PROXY": "socks5://u:pw@proxy:1080"})
    assert "pw" not in str(caught.value)


def test_a_cgi_script_does_not_take_its_proxy_from_a_visitor() -> None:
    assert proxy_for("http://host", {"HTTP_PROXY": PROXY, "REQUEST_METHOD": "GET"}) is None


@pytest.mark.parametrize(
    ("host", "exceptions"),
    [
        ("localhost:8000", "localhost"),
        ("127.0.0.1:8000", "other, 127.0.0.1 "),
        ("127.0.0.1:8000", "localhost 127.0.0.1"),
        ("127.0.0.1", "127.0.0.0/8"),
        ("10.1.2.3", "10.0.0.0/8"),
        ("[::1]:8000", "::1"),
        ("[::1]:8000", "[::1]:8000"),
        ("judge.corp.example", "corp.example"),
        ("judge.corp.example", ".corp.example"),
        ("judge.corp.example", "*.corp.example"),
        ("judge.corp.example:8000", "judge.corp.example:8000"),
        ("judge.corp.example", "JUDGE.corp.example:80"),
        ("anything", "*"),
    ],
)
def test_what_no_proxy_names_is_reached_directly(host: str, exceptions: str) -> None:
    assert proxy_for(f"http://{host}/v1", {"HTTP_PROXY": PROXY, "NO_PROXY": exceptions}) is None


@pytest.mark.parametrize(
    ("host", "exceptions"),
    [
        ("localhost:8000", ""),
        ("localhost:8000", "localhost:9000"),
        ("notcorp.example", "corp.example"),
        ("11.1.2.3", "10.0.0.0/8"),
        ("judge", "10.0.0.0/8,nonsense/99, ,."),
    ],
)
def test_what_no_proxy_does_not_name_goes_through_the_proxy(host: str, exceptions: str) -> None:
    assert proxy_for(f"http://{host}/v1", {"HTTP_PROXY": PROXY, "no_proxy": exceptions}) == PROXY


@pytest.mark.parametrize(
    "proxy",
    [
        "http://user:hunter2@proxy:99999",
        "http://user:hunter2@",
        "http://[::1",
        "http://user:hunter2@proxy..example",
    ],
)
def test_a_proxy_that_is_no_url_is_named_by_its_variable_without_its_password(proxy: str) -> None:
    with pytest.raises(ConfigError, check=about("HTTPS_PROXY")) as caught:
        proxy_for("https://host/v1", {"HTTPS_PROXY": proxy})
    assert "hunter2" not in str(caught.value)
