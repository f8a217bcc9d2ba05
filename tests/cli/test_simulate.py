"""`plaudit simulate`: one line when it listens, a clean end, and clear words when it cannot start."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import msgspec
import pytest
from click.testing import CliRunner
from until import PATIENCE_S

from plaudit.cli import app
from plaudit.simulator import PRESETS


@contextmanager
def simulating(
    *options: str, env: dict[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command in a process of its own, with the line it prints once it listens."""
    command = [sys.executable, "-m", "plaudit", "simulate", "--port", "0", *options]
    process = subprocess.Popen(
        command,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def ask(url: str, headers: dict[str, str] | None = None) -> dict[str, object]:
    data = msgspec.json.encode({"model": "simulated", "messages": [{"role": "user", "content": "hi"}]})
    with urlopen(Request(f"{url}/v1/chat/completions", data, headers or {}), timeout=PATIENCE_S) as response:
        found: dict[str, object] = msgspec.json.decode(response.read())
        return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_listens_answers_and_ends_cleanly(number: signal.Signals) -> None:
    with simulating("--scenario", "rejecting", "--seed", "4", "--speed", "100") as (process, line):
        assert line.startswith("listening on http://127.0.0.1:")
        assert line.endswith("(scenario rejecting, seed 4, speed 100)")
        assert ask(line.split()[2])["choices"]
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, out) == (0, "")
        assert err == "served 1 requests: 1 answered, 0 rejected, at most 1 in flight\n"


def test_a_key_can_be_demanded_and_is_shown_nowhere() -> None:
    env = {"JUDGE_KEY": "sesame"}
    with simulating("--scenario", "instant", "--api-key-env", "JUDGE_KEY", env=env) as (process, line):
        url = line.split()[2]
        with pytest.raises(HTTPError, match="401"):
            ask(url)
        assert ask(url, {"Authorization": "Bearer sesame"})["choices"]
        process.terminate()
        out, err = process.communicate(timeout=PATIENCE_S)
        assert "sesame" not in line + out + err


def test_the_options_change_the_scenario() -> None:
    with simulating("--scenario", "queue", "--capacity", "3", "--latency", "2") as (_, line):
        with urlopen(f"{line.split()[2]}/scenario", timeout=PATIENCE_S) as response:
            scenario = msgspec.json.decode(response.read())
        assert scenario["capacity"]["slots"] == 3
        latency = scenario["latency"]
        mean = latency["round_trip"] + latency["first_token"] + 200 * latency["seconds_per_token"]
        assert mean == pytest.approx(2.0)


def test_a_port_in_use_is_named_with_the_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(app, ["simulate", "--port", str(port)])
    assert result.exit_code == 2
    assert f"cannot listen on 127.0.0.1 port {port}: Address already in use" in result.output
    assert "--port 0 for any free one" in result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scenario", "nowhere"], "--scenario nowhere"),
        (["--scenario", "gone.toml"], "gone.toml cannot be read"),
        (["--speed", "0"], "--speed 0 would stop time"),
        (["--capacity", "0"], "--capacity 0 should be a number above 0"),
        (["--scenario", "instant", "--capacity", "5"], "no capacity to change"),
        (["--latency", "-1"], "--latency -1 should be a number above 0"),
        (["--api-key-env", "NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE is not set"),
        (["--host", "999.0.0.1"], "cannot listen on 999.0.0.1"),
    ],
)
def test_bad_usage_gets_one_line_and_status_2(options: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["simulate", *options])
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_the_list_has_a_sentence_for_every_scenario() -> None:
    result = CliRunner().invoke(app, ["simulate", "--list"])
    assert result.exit_code == 0
    rows = [line.split(maxsplit=1) for line in result.stdout.splitlines()]
    assert [name for name, _ in rows] == list(PRESETS)
    assert all(sentence.endswith(".") for _, sentence in rows)
