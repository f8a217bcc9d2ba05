"""`plaudit serve` as a process: it says its URL, serves, and drains on SIGTERM."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from loopback import INSTANT, loopback, taking
from until import PATIENCE_S

ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.startswith(("OPENAI", "PLAUDIT"))
}


def started(
    tmp_path: object, *options: str, files: int | None = None, **environment: str
) -> subprocess.Popen[str]:
    """A server with these options, and so many file descriptors at the most."""
    command = [sys.executable, "-m", "plaudit", "serve", "--port", "0", *options]
    if files is not None:
        command = ["bash", "-c", f'ulimit -n {files}; exec "$@"', "bash", *command]
    return subprocess.Popen(
        command,
        env={**ENVIRONMENT, "PLAUDIT_HOME": str(tmp_path), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_it_says_its_url_answers_and_ends_well_on_sigterm(tmp_path: object) -> None:
    with (
        loopback(INSTANT.replace(latency=taking(0.2))) as judge,
        started(tmp_path, "--base-url", judge.url, "--model", "m") as process,
    ):
        assert process.stdout is not None
        url = process.stdout.readline().strip().removeprefix("listening on ")
        body = json.dumps({"samples": [{"prompt": "1 + 1?", "response": "2"}]}).encode()
        request = urllib.request.Request(f"{url}/score", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
            assert json.load(reply)["verdicts"][0]["status"] == "ok"
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert f"OPENAI_BASE_URL={url}/v1" in said


def test_what_it_says_to_type_reaches_a_server_for_other_machines(tmp_path: object) -> None:
    with (
        loopback(INSTANT) as judge,
        started(
            tmp_path,
            *("--base-url", judge.url, "--model", "m", "--host", "0.0.0.0", "--trusted-host", "localhost"),
            PLAUDIT_TOKEN="a token for this test",
        ) as process,
    ):
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        line = next(line for line in process.stderr if "curl" in line)
        url, bearer = re.findall(r'curl (\S+) -H "Authorization: (Bearer .*?)"', line)[0]
        body = json.dumps({"samples": [{"prompt": "1 + 1?", "response": "2"}]}).encode()
        headers = {
            "Content-Type": "application/json",
            "Authorization": bearer.replace("$PLAUDIT_TOKEN", "a token for this test"),
        }
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=PATIENCE_S) as reply:
            assert json.load(reply)["verdicts"][0]["status"] == "ok"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)


@pytest.mark.parametrize(
    "options",
    [
        ("--host", "0.0.0.0", "--model", "m"),
        ("--port", "70000", "--model", "m"),
    ],
)
def test_what_cannot_be_served_is_said_before_anything_starts(
    tmp_path: object, options: tuple[str, ...]
) -> None:
    with started(tmp_path, "--base-url", "http://127.0.0.1:1/v1", *options) as process:
        said, error = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, said) == (2, "")
    assert error.strip()


def score_request(number: int = 0) -> bytes:
    body = json.dumps({"samples": [{"prompt": f"1 + {number}?", "response": "2"}]}).encode()
    head = (
        b"POST /score HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
    )
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def test_more_clients_than_there_are_file_descriptors_wait_for_their_turn(tmp_path: object) -> None:
    with (
        loopback(INSTANT.replace(latency=taking(0.2))) as judge,
        started(tmp_path, "--base-url", judge.url, "--model", "m", "--quiet", files=128) as process,
    ):
        assert process.stdout is not None
        host, _, port = process.stdout.readline().strip().removeprefix("listening on http://").partition(":")
        with contextlib.ExitStack() as stack:
            clients = [
                stack.enter_context(socket.create_connection((host, int(port)), PATIENCE_S))
                for _ in range(200)
            ]
            for number, client in enumerate(clients):
                client.sendall(score_request(number))
            answers = [client.makefile("rb").read() for client in clients]
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    assert all(answer.startswith(b"HTTP/1.1 200") and b'"ok"' in answer for answer in answers)


def test_a_file_of_settings_is_named_by_an_option(tmp_path: Path) -> None:
    file = tmp_path / "elsewhere.toml"
    with loopback(INSTANT) as judge:
        file.write_text(f'model = "from-the-file"\nbase_url = ["{judge.url}"]\n')
        with started(tmp_path, "--config", str(file), "--quiet") as process:
            assert process.stdout is not None
            url = process.stdout.readline().strip().removeprefix("listening on ")
            with urllib.request.urlopen(f"{url}/v1/models", timeout=PATIENCE_S) as reply:
                assert [model["id"] for model in json.load(reply)["data"]] == ["from-the-file"]
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
    with started(tmp_path, "--config", str(tmp_path / "missing.toml")) as process:
        assert "missing.toml' does not exist" in process.communicate(timeout=PATIENCE_S)[1]


def test_requests_that_are_on_their_way_when_it_is_to_end_are_answered(tmp_path: object) -> None:
    with (
        loopback(INSTANT.replace(latency=taking(0.5))) as judge,
        started(tmp_path, "--base-url", judge.url, "--model", "m", "--quiet") as process,
    ):
        assert process.stdout is not None
        host, _, port = process.stdout.readline().strip().removeprefix("listening on http://").partition(":")
        with contextlib.ExitStack() as stack:
            clients = [
                stack.enter_context(socket.create_connection((host, int(port)), PATIENCE_S))
                for _ in range(30)
            ]
            for client in clients:
                client.sendall(score_request())
            process.send_signal(signal.SIGTERM)
            answers = [client.makefile("rb").read() for client in clients]
        assert process.wait(PATIENCE_S) == 0
    assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers)


def test_a_second_signal_ends_it_at_once(tmp_path: object) -> None:
    with (
        loopback(INSTANT.replace(latency=taking(100.0))) as judge,
        started(tmp_path, "--base-url", judge.url, "--model", "m") as process,
    ):
        assert process.stdout is not None and process.stderr is not None
        host, _, port = process.stdout.readline().strip().removeprefix("listening on http://").partition(":")
        with socket.create_connection((host, int(port)), PATIENCE_S) as client:
            client.sendall(score_request())
            process.send_signal(signal.SIGTERM)
            assert any("stopping" in line for line in process.stderr)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--judge", "nope"], "--judge nope is neither a judge nor a file"),
        (["--on-failure", "zero"], "--on-failure zero is not one of null, group-mean, raise"),
    ],
)
def test_a_wrong_option_is_said_before_a_server_is_waited_for(
    tmp_path: Path, options: list[str], said: str
) -> None:
    with started(tmp_path, "--base-url", "http://127.0.0.1:9/v1", *options) as process:
        _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert stderr.startswith(f"plaudit: {said}")


def test_a_token_that_is_too_short_is_named_by_its_variable(tmp_path: Path) -> None:
    with started(tmp_path, "--base-url", "http://127.0.0.1:9/v1", PLAUDIT_TOKEN="short") as process:
        _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert stderr == "plaudit: PLAUDIT_TOKEN has fewer than 16 characters; use a longer one\n"
