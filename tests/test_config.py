"""What an engine works with: nonsense is named before any call, and no key or password is shown."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace

import pytest
from complaints import about

from plaudit.config import UNSET, Endpoint, EngineConfig, Price, Secret, Unset, without_password
from plaudit.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "remedy"),
    [
        ("htp://localhost:8000/v1", "use http:// or https://"),
        ("ftp://host/v1", "use http:// or https://"),
        ("localhost:8000/v1", "http://localhost:8000/v1"),
        ("judge", "http://judge"),
        ("", "http://localhost:8000/v1"),
        ("http://", "names no host"),
        ("http:///v1", "names no host"),
        ("http://:8000/v1", "names no host"),
        ("http://local host:8000/v1", "contains a space"),
        ("http://localhost:8000/v1 /chat", "contains a space"),
        ("http://localhost\x00:8000/v1", "not allowed in a URL"),
        ("http://localhost:99999/v1", "from 1 to 65535"),
        ("http://localhost:0/v1", "from 1 to 65535"),
        ("http://localhost:-1/v1", "from 1 to 65535"),
        ("http://localhost:port/v1", "from 1 to 65535"),
        ("http://[::1/v1", "Invalid IPv6 URL"),
        ("http://judge..example/v1", "cannot be one"),
        (f"http://{'a' * 64}.example/v1", "cannot be one"),
    ],
)
def test_what_is_no_url_is_named_with_its_remedy(url: str, remedy: str) -> None:
    with pytest.raises(ConfigError, check=about("url", remedy)):
        Endpoint(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://user:hunter2@host/v1",
        "htp://user:hunter2@host/v1",
        "user:hunter2@host/v1",
        "http://user:hunter2@host:99999/v1",
        "http://user:hun/ter2@host/v1",
        "http://user:hunter2@/v1",
        "http://user:hunter2@ho st/v1",
        "http://hunter2@host/v1",
    ],
)
def test_no_message_shows_a_password(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Endpoint(url)
    assert "hunter2" not in str(caught.value)
    assert "ter2" not in str(caught.value)


def test_blanks_around_a_url_are_no_part_of_it() -> None:
    assert Endpoint(" http://host/v1\n").url == "http://host/v1"


def test_a_query_is_kept_for_every_route_and_shown_nowhere() -> None:
    endpoint = Endpoint("https://host/v1/?api-version=2024-10-21&subscription-key=sk-1", model="m")
    for one in (endpoint, replace(endpoint, model="n")):
        assert one.route("/chat/completions") == (
            "https://host/v1/chat/completions?api-version=2024-10-21&subscription-key=sk-1"
        )
        assert "sk-1" not in one.name + repr(one)
    assert Endpoint("http://host").route("/models") == "http://host/v1/models"


def test_a_url_is_shown_without_its_secrets() -> None:
    assert (
        without_password("http://a:b@host:1/v1?api-key=c&version=2&sig=d")
        == "http://host:1/v1?api-key=***&version=2&sig=***"
    )
    assert without_password("http://host/v1?version=2") == "http://host/v1?version=2"
    assert without_password("a:b@host/v1") == "host/v1"
    said = "407 from http://me:p@ss@proxy:3128 for you"
    assert without_password(said) == "407 from http://proxy:3128 for you"


def test_not_said_is_something_else_than_none() -> None:
    assert isinstance(UNSET, Unset)
    assert not UNSET
    assert UNSET is not None
    assert repr(UNSET) == "not said"
    assert pickle.loads(pickle.dumps(UNSET)) is UNSET


def test_a_configuration_travels_whole_and_never_shows_its_key() -> None:
    config = EngineConfig(endpoints=(Endpoint("http://host/v1", model="m", api_key="sk-secret"),), rpm=60)
    copy = pickle.loads(pickle.dumps(config))
    assert copy == config
    assert copy.endpoints[0].key == "sk-secret"
    assert "sk-secret" not in repr(config)


def test_a_configuration_cannot_be_changed_afterwards() -> None:
    with pytest.raises(FrozenInstanceError):
        EngineConfig().rpm = 60  # type: ignore[misc]


@pytest.mark.parametrize(
    "nonsense",
    [{"max_concurrent": 0}, {"rpm": 0}, {"tpm": -1}, {"timeout": 0}, {"timeout": None}, {"budget": -1.0}],
)
def test_a_value_that_makes_no_sense_is_named(nonsense: dict[str, float]) -> None:
    (name,) = nonsense
    with pytest.raises(ConfigError, check=about(name)):
        EngineConfig(**nonsense)  # type: ignore[arg-type]


def test_a_budget_needs_a_price_for_every_endpoint() -> None:
    priced = Endpoint("http://one/v1", price=Price(1.0, 2.0))
    assert EngineConfig(endpoints=(priced,), budget=1.0).budget == 1.0
    with pytest.raises(ConfigError, check=about("budget")):
        EngineConfig(endpoints=(priced, Endpoint("http://two/v1")), budget=1.0)


URL = "http://localhost:8000/v1"


def config(*endpoints: Endpoint, rpm: int | None = None) -> EngineConfig:
    return EngineConfig(endpoints=endpoints, rpm=rpm)


def test_differences_are_named_and_no_key_is_shown() -> None:
    there = config(Endpoint(URL, model="m", api_key="sk-one"), rpm=60)
    assert there.differences(there) == []
    assert there.differences(config(Endpoint(URL, model="n", api_key="sk-two"), rpm=30)) == [
        "endpoints[0].model is 'm' there and 'n' here",
        "endpoints[0].api_key differs",
        "rpm is 60 there and 30 here",
    ]
    keyless = config(Endpoint(URL, model="m"), rpm=60)
    assert there.differences(keyless) == ["endpoints[0].api_key is set only there"]
    assert keyless.differences(there) == ["endpoints[0].api_key is set only here"]


@pytest.mark.parametrize("between", [",", ";", " ", ", "])
def test_several_urls_in_one_are_told_apart_whatever_stands_between(between: str) -> None:
    with pytest.raises(ConfigError, check=about("url", "contains several URLs")):
        Endpoint(f"http://a:8000/v1{between}http://b:8000/v1", model="m")


def test_several_endpoints_differ_by_number() -> None:
    there = config(Endpoint(URL, model="m"), Endpoint(URL, model="n"))
    assert there.differences(config(Endpoint(URL, model="m"))) == ["endpoints are 2 there and 1 here"]


def test_a_rate_is_limited_for_the_engine_or_for_one_endpoint() -> None:
    assert not config(Endpoint(URL)).has_rates
    assert config(Endpoint(URL), rpm=60).has_rates
    assert config(Endpoint(URL), Endpoint(URL, tpm=1000)).has_rates


def test_servers_of_one_model_name_share_cache_keys_unless_their_identity_says_otherwise() -> None:
    one, other = Endpoint("http://a/v1", model="m"), Endpoint("http://b/v1", model="m")
    assert EngineConfig(endpoints=(one,)).model == EngineConfig(endpoints=(other,)).model == "m"
    quantised = replace(other, identity="m-awq")
    assert EngineConfig(endpoints=(quantised,)).model == "m-awq"
    assert EngineConfig(endpoints=(one, quantised)).model == "m+m-awq"


@pytest.mark.parametrize("key", ["sk-one\nsk-two", "sk-\u2013dash", "sk-\x00"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Endpoint("http://localhost:8000/v1", api_key=Secret(key, origin="TEAM_KEY"))
    assert str(caught.value).startswith("TEAM_KEY contains a line break or another character")
    assert key not in str(caught.value)
