"""No test reads or writes what belongs to whoever runs it: keys, proxies, settings, caches."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

with contextlib.suppress(ModuleNotFoundError):  # the clients' environment has none of it
    from hypothesis import HealthCheck, settings

    settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("busy machine")  # how long an example takes says nothing of the code

_MARKS = ("PLAUDIT_", "OPENAI_", "OLLAMA_")
_NAMES = ("TRAIN_WITH_MONITOR", "MONITOR_CACHE")
_KEPT: tuple[tuple[str, str, Callable[[], object]], ...] = (
    ("plaudit.scoring", "_scoring", lambda: None),
    ("plaudit.engine", "_shared", list),
    ("plaudit.integrations.scored", "_kept", list),
)
_GROUPS = ("trainers", "environments", "clients", "nemo_gym")
_GROUP = re.compile(r"^pytestmark = .*pytest\.mark\.(" + "|".join(_GROUPS) + ")", re.MULTILINE)


_STDERR: list[int] = []
_RAY = {
    "RAY_ADDRESS": "local",
    "RAY_agent_register_timeout_ms": "600000",
    "RAY_gcs_server_port_wait_time_s": "120",
    "RAY_raylet_start_wait_time_s": "120",
    "RAY_worker_register_timeout_seconds": "600",
    "RAY_memory_monitor_refresh_ms": "0",
}
"""Its processes may take long to start, none is killed where others fill the memory, and no cluster is joined
that only happens to run here."""


def pytest_configure() -> None:
    """Let Ctrl-C reach the processes that tests start, also where a shell started these in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, value in _RAY.items():
        os.environ[name] = value
    _STDERR.append(os.dup(2))


def pytest_runtest_setup() -> None:
    """Let a crash in native code name its thread: where Ray ends, it takes the handlers of signals away."""
    if "ray" in sys.modules and faulthandler.is_enabled():
        faulthandler.disable()
        faulthandler.enable(_STDERR[0])


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files with packages of their own run by themselves: `-m trainers`, `-m clients`, ...."""
    if collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    is_browser = collection_path.parent.name == "browser"
    if is_browser or config.getoption("markexpr") == "browser":
        return None if is_browser and config.getoption("markexpr") == "browser" else True
    found = _GROUP.search(collection_path.read_text(encoding="utf-8"))
    wanted = config.getoption("markexpr")
    is_wanted = found[1] == wanted if found else wanted not in _GROUPS
    return None if is_wanted else True


def pytest_collection_finish() -> None:
    """Keep thousands of collected tests out of every garbage collection that follows."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """End at once after tests with Ray or torch: their native threads may crash at interpreter exit.

    By then every test has ended and everything was said; how plaudit itself ends, tests of their own see.
    """
    session = config.pluginmanager.get_plugin("session")
    if config.getoption("markexpr") in ("trainers", "environments") and session is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(session.exitstatus))


@pytest.fixture(autouse=True)
def isolated_environment(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(_MARKS) or name.upper().endswith("_PROXY") or name in _NAMES:
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("plaudit-home")
    monkeypatch.setenv("PLAUDIT_HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))


@pytest.fixture(autouse=True)
def forgotten_engines() -> Iterator[None]:
    """Engines that a process keeps for its trainer live no longer than the test that asked for them."""
    yield
    for module, name, nothing in _KEPT:
        keeper = sys.modules.get(module)
        if keeper is not None and getattr(keeper, name):
            setattr(keeper, name, nothing())
            gc.collect()
