"""Observers that are named by their import path, as front ends that only pass text do."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from complaints import about
from loopback import INSTANT, JUDGE, loopback, samples

from plaudit import Engine, compute_score
from plaudit.cli import app
from plaudit.config import Endpoint, EngineConfig
from plaudit.errors import ConfigError
from plaudit.events import BatchFinished, Event
from plaudit.integrations.scored import Scored, sample_of
from plaudit.observers.log import Log
from plaudit.observers.named import load_observers
from plaudit.scoring import Scoring
from plaudit.settings import load
from plaudit.simulator import SimulatedTransport

SEEN = "seen_events"
MODULE = """
events = []

def watch(event):
    events.append(event)

class Watch:
    def __call__(self, event):
        events.append(event)

nothing = None
"""


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """What the observers of a module of the user's have seen."""
    (tmp_path / f"{SEEN}.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, SEEN, raising=False)
    events: list[Event] = importlib.import_module(SEEN).events
    return events


@pytest.mark.parametrize("name", ["watch", "Watch"])
def test_an_observer_of_the_configuration_sees_every_batch(seen: list[Event], name: str) -> None:
    config = EngineConfig(endpoints=(Endpoint("http://host/v1", model="m"),), observers=(f"{SEEN}:{name}",))
    with Engine.from_config(config, transport=lambda _: SimulatedTransport(INSTANT)) as engine:
        engine.score(samples(3), JUDGE)
    assert [event.summary.samples for event in seen if isinstance(event, BatchFinished)] == [3]


def test_functions_and_names_can_be_given_together(seen: list[Event]) -> None:
    own: list[Event] = []
    with Engine(
        "http://host/v1",
        model="m",
        cache=None,
        observers=[own.append, f"{SEEN}:watch"],
        transport=lambda _: SimulatedTransport(INSTANT),
    ) as engine:
        assert engine.config.observers == (f"{SEEN}:watch",)
        engine.score(samples(3), JUDGE)
    assert own == seen != []


def test_the_environment_may_name_observers(seen: list[Event], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAUDIT_OBSERVERS", f"{SEEN}:watch,plaudit.observers.log:Log")
    engine = Engine("http://host/v1", model="m", cache=None)
    assert engine.config.observers == (f"{SEEN}:watch", "plaudit.observers.log:Log")
    assert isinstance(load_observers(engine.config.observers)[1], Log)


def finished(seen: list[Event]) -> int:
    return sum(event.summary.samples for event in seen if isinstance(event, BatchFinished))


def test_compute_score_and_the_adapters_take_them(seen: list[Event], monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        Scored(observers=[f"{SEEN}:watch"]).rewards([sample_of("1 + 1?", "2")])
        assert finished(seen) == 1
        Scoring(load({}), observers=[seen.append]).scores([sample_of("1 + 1?", "3")])
        assert finished(seen) == 2
        monkeypatch.setenv("PLAUDIT_OBSERVERS", f"{SEEN}:watch")
        compute_score("4", "2", "other", {"question": "1 + 1?"})
        assert finished(seen) == 3


def test_the_command_line_takes_them(seen: list[Event], tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"prompt": "1 + 1?", "response": "2"}\n', encoding="utf-8")
    with loopback() as server:
        arguments = ["score", str(source), "-o", str(tmp_path / "out"), "--base-url", server.url]
        arguments += ["--observers", f"{SEEN}:watch", "--quiet"]
        assert CliRunner().invoke(app, arguments).exit_code == 0
    assert finished(seen) == 1


@pytest.mark.parametrize(
    "path", ["", SEEN, ":watch", "no.such.module:watch", f"{SEEN}:no_such_name", f"{SEEN}:nothing"]
)
def test_what_is_no_observer_is_named_before_anything_starts(seen: list[Event], path: str) -> None:
    config = EngineConfig(endpoints=(Endpoint("http://host/v1", model="m"),), observers=(path,))
    with pytest.raises(ConfigError) as caught:
        Engine.from_config(config)
    assert (caught.value.setting, caught.value.value) == ("observers", path)


def test_a_file_of_a_project_names_no_code_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plaudit.toml").write_text('observers = ["evil:run"]\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, check=about("", "PLAUDIT_OBSERVERS")):
        Engine("http://host/v1", model="m")
