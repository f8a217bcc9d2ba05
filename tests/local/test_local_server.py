"""The embedded server: it answers like any endpoint, says why it cannot start, and never stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from complaints import about
from tiny_model import write_tiny_model
from until import PATIENCE_S, until
from wire import chat, ends_within, is_running

from plaudit.config import Endpoint
from plaudit.engine import Engine
from plaudit.errors import ConfigError
from plaudit.judges.yes import Yes
from plaudit.local.local_server import LocalServer
from plaudit.types import Sample

pytestmark = pytest.mark.local


@pytest.fixture(scope="module")
def server(tiny: Path) -> Iterator[LocalServer]:
    with LocalServer(tiny, slots=2, context=512) as running:
        yield running


# --- it answers ---------------------------------------------------------------------------------------------


def test_it_answers_chat_completions_under_the_name_of_its_model(server: LocalServer) -> None:
    reply = chat(server.endpoint, "Hello")
    assert reply["model"] == server.endpoint.model
    assert reply["usage"]["prompt_tokens"] > 0
    assert isinstance(reply["choices"][0]["message"]["content"], str)


def test_its_endpoint_admits_no_more_calls_than_it_has_slots(server: LocalServer) -> None:
    assert server.endpoint.max_concurrent == 2
    assert server.endpoint.url.startswith("http://127.0.0.1:")


def test_an_engine_reaches_it_directly_whatever_proxy_is_set(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # where nobody listens
    with Engine(endpoints=[server.endpoint], cache=None) as engine:
        (verdict,) = engine.score([Sample("Is it?", "It is.")], Yes())
    assert verdict.error is not None and "answered 400" in verdict.error  # the question is too long for it


def test_top_logprobs_come_back(server: LocalServer) -> None:
    reply = chat(server.endpoint, "Is it?", max_tokens=1, logprobs=True, top_logprobs=20)
    (first,) = reply["choices"][0]["logprobs"]["content"]
    assert len(first["top_logprobs"]) == 20
    assert all(choice["logprob"] <= 0.0 for choice in first["top_logprobs"])


def test_a_json_schema_is_kept_even_by_a_random_model(server: LocalServer) -> None:
    schema = {
        "type": "object",
        "properties": {"score": {"enum": [1, 2, 3]}},
        "required": ["score"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": schema}}
    reply = chat(server.endpoint, "Score it.", max_tokens=200, response_format=form)
    assert json.loads(reply["choices"][0]["message"]["content"])["score"] in (1, 2, 3)


def test_a_request_longer_than_a_slot_is_refused_and_the_next_one_answered(server: LocalServer) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        chat(server.endpoint, "x" * 2000)
    assert refused.value.code == 400
    assert b"context" in refused.value.read()
    assert chat(server.endpoint, "short")["choices"]


def test_nobody_is_served_without_the_key(server: LocalServer) -> None:
    stranger = Endpoint(server.endpoint.url, model=server.endpoint.model, api_key="guess")
    with pytest.raises(urllib.error.HTTPError) as refused:
        chat(stranger, "Hello")
    assert refused.value.code == 401


def test_the_key_is_in_no_argument_and_no_repr(server: LocalServer) -> None:
    assert server.pid is not None
    assert server.endpoint.key
    assert server.endpoint.key not in " ".join(psutil.Process(server.pid).cmdline())
    assert server.endpoint.key not in repr(server.endpoint)


def test_several_servers_run_side_by_side(server: LocalServer, tmp_path: Path) -> None:
    other_model = write_tiny_model(tmp_path / "tiny.gguf", seed=1)
    with LocalServer(other_model) as other:
        assert other.endpoint.url != server.endpoint.url
        assert other.endpoint.model != server.endpoint.model  # same file name, other weights
        assert chat(other.endpoint, "Hello")["choices"]
        assert chat(server.endpoint, "Hello")["choices"]


# --- it ends ------------------------------------------------------------------------------------------------


def test_it_is_gone_when_the_block_ends(tiny: Path) -> None:
    with LocalServer(tiny) as server:
        pid = server.pid
        assert pid is not None and is_running(pid)
    assert not psutil.pid_exists(pid)  # not even a zombie
    with pytest.raises(ConfigError, check=about("", "with LocalServer(...)")):
        _ = server.endpoint
    server.close()


def test_it_is_gone_when_the_block_fails(tiny: Path) -> None:
    pid = None
    with pytest.raises(ZeroDivisionError), LocalServer(tiny) as server:
        pid = server.pid
        _ = 1 / 0
    assert pid is not None and not psutil.pid_exists(pid)


def start(script: str, *arguments: str | Path) -> tuple[subprocess.Popen[str], list[int]]:
    """Run a script in a process of its own; it prints the process ids to watch."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert parent.stdout is not None
    return parent, [int(word) for word in parent.stdout.readline().split()]


SERVE = """
import signal, sys
from plaudit.local.local_server import LocalServer
with LocalServer(sys.argv[1]) as server:
    print(server.pid, flush=True)
    signal.pause()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_dies_with_its_parent(tiny: Path, how: signal.Signals) -> None:
    parent, (server,) = start(SERVE, tiny)
    with parent:
        assert is_running(server)
        parent.send_signal(how)
        parent.wait(timeout=PATIENCE_S)
    until(lambda: not is_running(server))


FORK = """
import os, signal, sys
from plaudit.local.local_server import LocalServer
server = LocalServer(sys.argv[1]).__enter__()
forked = os.fork()
if forked:
    print(server.pid, forked, flush=True)
elif sys.argv[2] == "closes":
    server.close()
signal.pause()
"""


@pytest.mark.parametrize("forked_one", ["closes", "holds on"])
def test_a_forked_process_neither_stops_it_nor_keeps_it_alive(tiny: Path, forked_one: str) -> None:
    parent, (server, forked) = start(FORK, tiny, forked_one)
    with parent:
        try:
            assert not ends_within(server, 0.05)
            parent.kill()
            parent.wait(timeout=PATIENCE_S)
            until(lambda: not is_running(server))
        finally:
            os.kill(forked, signal.SIGKILL)


INTERRUPT = """
import os, signal, sys, threading, time
import psutil
from plaudit.local.local_server import LocalServer

def interrupt():
    while not (children := psutil.Process().children()):
        time.sleep(0.001)
    print(children[0].pid, flush=True)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
with LocalServer(sys.argv[1]):
    signal.pause()
"""


def test_an_interrupted_start_leaves_nothing_behind(tiny: Path) -> None:
    parent, (server,) = start(INTERRUPT, tiny)
    with parent:
        assert parent.wait(timeout=PATIENCE_S) == -signal.SIGINT
    until(lambda: not is_running(server))


# --- it says what is wrong ----------------------------------------------------------------------------------


def test_a_model_that_llama_cpp_cannot_load_is_reported_in_its_words(tiny: Path, tmp_path: Path) -> None:
    half = tmp_path / "half.gguf"
    half.write_bytes(tiny.read_bytes()[:200_000])
    with pytest.raises(ConfigError, check=about("local_model")):
        LocalServer(half).__enter__()


def test_a_library_that_llama_cpp_misses_is_named_and_not_the_model_blamed(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "xllamacpp.py").write_text("raise ImportError('libgomp.so.1: cannot open')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(ConfigError, check=about("local_model", "apt-get install libgomp1", "libgomp.so.1")):
        LocalServer(tiny).__enter__()


def test_a_start_that_takes_too_long_is_given_up(tiny: Path) -> None:
    with pytest.raises(ConfigError, check=about("local_model")):
        LocalServer(tiny, start_timeout=0.001).__enter__()


def test_a_server_that_dies_says_so(tiny: Path) -> None:
    with LocalServer(tiny) as server:
        assert server.trouble is None
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        until(lambda: server.trouble is not None)
        trouble = server.trouble
        assert trouble is not None
        assert "tiny.gguf" in trouble and "memory" in trouble
    assert server.trouble is None


def test_without_xllamacpp_it_names_the_extra(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ConfigError, check=about("", "plaudit[local]")):
        LocalServer(tiny).__enter__()


@pytest.mark.parametrize("name", ["slots", "context", "threads"])
def test_it_needs_something_to_work_with(tiny: Path, name: str) -> None:
    with pytest.raises(ConfigError, check=about(name)):
        LocalServer(tiny, **{name: 0})
