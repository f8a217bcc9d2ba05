"""The settings that processes must agree on: settled where they are given, compared without showing a key."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from plaudit import ConfigError, Endpoint, Price
from plaudit.caches import MemoryCache
from plaudit.integrations.ray.terms import Terms

URL = "http://localhost:8000/v1"


def test_what_is_left_out_is_settled_by_the_callers_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PLAUDIT_RPM", "60")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-process")
    monkeypatch.setenv("PLAUDIT_HOME", str(tmp_path))
    terms = Terms.of(URL, model="m", tpm=1000)
    assert (terms.rpm, terms.tpm, terms.timeout) == (60, 1000, 120.0)
    assert terms.endpoints[0].key == "sk-of-this-process"
    assert terms.cache == str(tmp_path / "verdicts.sqlite")


def test_a_cache_is_named_by_its_full_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Terms.of(URL, model="m", cache="here.sqlite").cache == str(tmp_path / "here.sqlite")
    assert Terms.of(URL, model="m", cache="memory").cache == "memory"
    assert Terms.of(URL, model="m", cache="off").cache is Terms.of(URL, model="m", cache=None).cache is None


def test_a_cache_object_cannot_be_shared() -> None:
    with pytest.raises(ConfigError, match="lives in one process and cannot be shared; give the path"):
        Terms.of(URL, model="m", cache=MemoryCache())  # type: ignore[arg-type]


def test_bad_settings_are_told_as_the_engine_tells_them() -> None:
    with pytest.raises(ConfigError, match="rpm=0 allows no call at all"):
        Terms.of(URL, model="m", rpm=0)
    with pytest.raises(ConfigError, match="no endpoint"):
        Terms.of()


def test_the_engine_gets_what_was_agreed_on() -> None:
    endpoint = Endpoint(URL, model="m", price=Price(1.0, 2.0))
    terms = Terms.of(endpoints=[endpoint], budget=3.0, cache=None)
    with terms.open() as engine:
        assert engine.endpoints == (endpoint,)


def test_differences_are_named_and_no_key_is_shown() -> None:
    there = Terms.of(URL, model="m", api_key="sk-one", rpm=60, cache=None)
    here = Terms.of(URL, model="n", api_key="sk-two", rpm=30, cache=None)
    assert there.differences(there) == []
    assert there.differences(here) == [
        "endpoints[0].model is 'm' there and 'n' here",
        "endpoints[0].api_key differs",
        "rpm is 60 there and 30 here",
    ]
    keyless = Terms.of(URL, model="m", rpm=60, cache=None)
    assert there.differences(keyless) == ["endpoints[0].api_key is set only there"]
    assert keyless.differences(there) == ["endpoints[0].api_key is set only here"]


def test_several_endpoints_differ_by_number() -> None:
    there = Terms.of(endpoints=[Endpoint(URL, model="m"), Endpoint(URL, model="n")], cache=None)
    assert there.differences(Terms.of(URL, model="m", cache=None)) == ["endpoints are 2 there and 1 here"]


def test_terms_travel_with_their_key_and_never_show_it() -> None:
    terms = Terms.of(URL, model="m", api_key="sk-secret", cache=None)
    assert pickle.loads(pickle.dumps(terms)) == terms
    assert "sk-secret" not in repr(terms)
