"""`plaudit score` as users run it, against a simulated judge."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from simulated_judge import Simulator, simulated
from until import PATIENCE_S, until

from plaudit.caches import default_path
from plaudit.cli import app
from plaudit.simulator import Latency, Queue, Scenario

FIELDS = ["id", "prompt", "response", "score", "status", "reason", "judge"]


def plaudit(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def lines(count: int) -> str:
    return "".join(
        json.dumps({"id": number, "prompt": f"{number} + 1?", "response": f"{number + 1}"}) + "\n"
        for number in range(count)
    )


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_text(lines(20))
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


def test_every_line_gets_a_verdict(simulator: Simulator, source: Path, out: Path) -> None:
    result = plaudit(
        "score", source, "-o", out, "--base-url", simulator.url, "--rubric", "Right?", "--scale", 0, 5
    )
    assert result.exit_code == 0, result.output
    scored = read(out)
    assert [line["id"] for line in scored] == list(range(20))
    assert all(list(line) == FIELDS for line in scored)
    assert all(0 <= line["score"] <= 5 for line in scored)
    assert all(line["judge"]["model"] == "simulated" for line in scored)
    assert "20 of 20 lines scored" in result.stderr


def test_a_second_run_is_answered_from_the_cache(simulator: Simulator, source: Path, out: Path) -> None:
    for expected in ("call", "cache"):
        assert plaudit("score", source, "-o", out, "--base-url", simulator.url).exit_code == 0
        assert {line["judge"]["source"] for line in read(out)} == {expected}
    assert simulator.server.stats.answered == 20


def test_without_the_cache_everything_is_asked_again(simulator: Simulator, source: Path, out: Path) -> None:
    for _ in range(2):
        arguments = ["score", source, "-o", out, "--base-url", simulator.url, "--cache", "off", "--quiet"]
        result = plaudit(*arguments)
        assert (result.exit_code, result.output) == (0, "")
    assert simulator.server.stats.answered == 40


def test_a_table_on_stdin_is_not_taken_for_json_lines_with_a_fault(simulator: Simulator) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "plaudit", "score", "-", "-o", "-", "--base-url", simulator.url],
        input="question,answer\n1 + 1?,2\n",
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "plaudit: stdin: line 1: not JSON: Expecting value at character 1\n"
        "stdin takes one JSON object per line; give any other format as a file.\n"
    )


def test_stdin_to_stdout_leaves_nothing_else_on_stdout(simulator: Simulator) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "plaudit", "score", "-", "-o", "-", "--base-url", simulator.url],
        input=lines(20).encode(),
        capture_output=True,
        check=True,
    )
    scored = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["id"] for line in scored] == list(range(20))
    assert b"20 of 20 lines scored" in done.stderr


def test_a_reader_that_leaves_ends_the_run_quietly(simulator: Simulator, source: Path) -> None:
    source.write_text(lines(5000))
    command = (
        f"{sys.executable} -m plaudit score {source} -o - --base-url {simulator.url} --quiet | head -n 1"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    assert json.loads(done.stdout)["id"] == 0
    assert done.stderr == b""


def test_settings_come_from_the_environment_and_from_plaudit_toml(
    simulator: Simulator, source: Path, out: Path, clean_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (clean_environment / "plaudit.toml").write_text(f'base_url = "{simulator.url}"\nscale = [1, 2]\n')
    monkeypatch.setenv("PLAUDIT_MODEL", "named-by-variable")
    assert plaudit("score", source, "-o", out).exit_code == 0
    assert {line["judge"]["model"] for line in read(out)} == {"named-by-variable"}
    assert {line["score"] for line in read(out)} <= {1.0, 2.0}


def test_a_wrong_key_is_one_message_that_names_the_variable(
    source: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-0123456789abcdefghij")
    with simulated(Scenario(api_key="right")) as simulator:
        result = plaudit(
            "score", source, "-o", out, "--base-url", simulator.url, "--model", "m", "--api-key-env", "MY_KEY"
        )
        assert simulator.server.stats.requests <= 20
    assert result.exit_code == 3
    assert {line["status"] for line in read(out)} == {"failed"}
    assert len({line["error"] for line in read(out)}) == 1
    assert result.stderr.count("answered 401") == 1
    assert "MY_KEY" in result.stderr
    assert "0123456789" not in result.stderr + out.read_text()


def test_nobody_there_is_told_once_with_the_remedy_while_it_goes_on_trying(source: Path, out: Path) -> None:
    nobody = ("--base-url", "http://127.0.0.1:9/v1", "--deadline", "1")
    result = plaudit("score", source, "-o", out, *nobody, "--model", "m")
    assert result.exit_code == 3
    (told,) = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
    assert told.startswith(
        "warning: no connection to http://127.0.0.1:9/v1: Connection refused; start a server"
    )
    assert told.endswith("or correct the URL. Still trying, for up to 60 s")
    assert {line["status"] for line in read(out)} == {"deadline"}


def test_nobody_to_ask_for_the_model_is_told_and_tried_until_the_deadline(source: Path, out: Path) -> None:
    nobody = ("--base-url", "http://127.0.0.1:9/v1", "--deadline", "0.5")
    result = plaudit("score", source, "-o", out, *nobody)
    assert result.exit_code == 2
    assert "Still trying, for up to 0.5 s" in result.stderr
    assert "plaudit: no connection to http://127.0.0.1:9/v1" in result.stderr


def test_a_deadline_is_kept_and_marks_what_is_missing(source: Path, out: Path) -> None:
    slow = Scenario(latency=Latency(mean_tokens=1, seconds_per_token=30.0))
    with simulated(slow) as simulator:
        result = plaudit("score", source, "-o", out, "--base-url", simulator.url, "--deadline", "0.3")
    assert result.exit_code == 3
    assert {line["status"] for line in read(out)} == {"deadline"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["score"], "Missing argument 'IN'"),
        (["score", "in.jsonl"], "Missing option '-o'"),
        (["scor", "in.jsonl"], "Did you mean 'score'?"),
        (["score", "missing.jsonl", "-o", "out.jsonl"], "missing.jsonl does not exist"),
        (["score", ".", "-o", "out.jsonl"], "is a folder"),
        (["score", "in.jsonl", "-o", "."], "is a folder"),
        (["score", "in.jsonl", "-o", "no/out.jsonl"], "make it first"),
        (["score", "in.jsonl", "-o", "o", "--base-url", "localhost:8000"], "--base-url localhost:8000 "),
        (["score", "in.jsonl", "-o", "o", "--base-url", "https://api.openai.com/v1"], "OPENAI_API_KEY"),
        (["score", "in.jsonl", "-o", "o", "--rpm", "0"], "--rpm 0 "),
        (["score", "in.jsonl", "-o", "o", "--rpm", "many"], "Invalid value"),
        (["score", "in.jsonl", "-o", "o", "--scale", "5", "1"], "--scale 5 1 "),
        (["score", "in.jsonl", "-o", "o", "--on-failure", "zero"], "--on-failure zero "),
        (["score", "in.jsonl", "-o", "o", "--judge", "nobody"], "--judge nobody "),
        (["score", "in.jsonl", "-o", "o", "--rubric", "criteria.md"], "--rubric criteria.md "),
        (["score", "in.jsonl", "-o", "o", "--local-model", "no.gguf"], "no.gguf"),
        (["score", "in.jsonl", "-o", "o", "--timeout", "-1"], "--timeout -1 "),
        (["score", "in.jsonl", "-o", "o", "--cache", "in.jsonl"], "is not a plaudit cache"),
        (
            ["score", "in.jsonl", "-o", "o", "--base-url", "http://x/v1", "--budget", "1"],
            "add --price IN OUT",
        ),
    ],
)
def test_what_cannot_work_is_said_in_plain_words_with_status_two(
    arguments: list[str], words: str, clean_environment: Path
) -> None:
    (clean_environment / "in.jsonl").write_text(lines(1))
    result = plaudit(*arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.replace("│", " ").split())
    assert "Traceback" not in result.output
    assert not (clean_environment / "out.jsonl").exists()


@pytest.mark.parametrize("output", ["-o", "--summary"])
@pytest.mark.parametrize(
    ("option", "what"),
    [
        ("--cache", "would overwrite the cache"),
        ("--journal", "would overwrite the journal"),
        ("--rubric", "would overwrite the rubric"),
    ],
)
def test_no_output_takes_the_place_of_a_file_that_the_run_uses(
    simulator: Simulator, source: Path, tmp_path: Path, output: str, option: str, what: str
) -> None:
    both = tmp_path / "both.md"
    if option == "--rubric":
        both.write_text("Is it right?")
    named = {"-o": str(tmp_path / "out.jsonl"), output: str(both), option: str(both)}
    words = [word for pair in named.items() for word in pair]
    result = plaudit("score", source, *words, "--base-url", simulator.url)
    assert result.exit_code == 2
    assert what in result.stderr
    assert simulator.server.stats.requests == 0
    if option == "--rubric":
        assert both.read_text() == "Is it right?"


def test_debug_shows_the_traceback(source: Path) -> None:
    result = plaudit("score", source, "-o", "no/out.jsonl", "--debug")
    assert isinstance(result.exception, Exception)
    assert "make it first" in str(result.exception)


def test_a_bad_line_is_named_by_number_and_reason(simulator: Simulator, source: Path, out: Path) -> None:
    source.write_text(lines(2) + '{"prompt": "p"}\n')
    result = plaudit("score", source, "-o", out, "--base-url", simulator.url)
    assert result.exit_code == 2
    assert "line 3: no 'response'" in result.stderr
    assert simulator.server.stats.requests == 0


def stored() -> int:
    """How many verdicts the user's cache holds."""
    if not default_path().exists():
        return 0
    with contextlib.closing(sqlite3.connect(default_path())) as connection:
        try:
            return int(connection.execute("SELECT count(*) FROM verdicts").fetchone()[0])
        except sqlite3.OperationalError:  # not made yet
            return 0


def test_a_bad_line_from_a_pipe_keeps_what_came_before_it(simulator: Simulator, out: Path) -> None:
    command = [sys.executable, "-m", "plaudit", "score", "-", "-o", str(out), "--base-url", simulator.url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdin
        assert run.stderr
        run.stdin.write(lines(3).encode())
        run.stdin.flush()
        until(lambda: stored() >= 3)  # delivered before they are stored
        run.stdin.write(b"nonsense\n")
        run.stdin.close()
        said = run.stderr.read().decode()
    assert run.returncode == 2
    assert "line 4: not JSON" in said
    assert "out.partial.jsonl" in said
    assert not out.exists()
    assert [line["id"] for line in read(out.with_name("out.partial.jsonl"))] == [0, 1, 2]


def slow_run(simulator: Simulator, source: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "plaudit", "score", source, "-o", out, "--base-url", simulator.url]
    return subprocess.Popen([str(part) for part in command], stderr=subprocess.PIPE)


@pytest.fixture
def half_slow() -> Iterator[Simulator]:
    """Four answers at a time, each a tenth of a second."""
    latency = Latency(mean_tokens=1, sigma=0.0, seconds_per_token=0.05, first_token=0.05, round_trip=0.0)
    with simulated(Scenario(latency=latency, capacity=Queue(slots=4))) as running:
        yield running


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_what_is_done_and_a_rerun_goes_on(
    half_slow: Simulator, source: Path, out: Path, number: int, status: int
) -> None:
    source.write_text(lines(1000))  # far more than can be judged before the signal comes
    run = slow_run(half_slow, source, out)
    until(lambda: stored() >= 12)
    os.kill(run.pid, number)
    _, said = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == status
    assert not out.exists()
    partial = read(out.with_name("out.partial.jsonl"))
    assert 8 <= len(partial) < 1000
    assert all(line["score"] is not None for line in partial)
    assert b"out.partial.jsonl" in said
    assert b"run the same command again" in said
    assert b"Traceback" not in said
    saved = {line["id"] for line in partial}
    source.write_text(lines(16))
    again = plaudit("score", source, "-o", out, "--base-url", half_slow.url)
    assert again.exit_code == 0
    assert all(line["judge"]["source"] == "cache" for line in read(out) if line["id"] in saved)
    assert not out.with_name("out.partial.jsonl").exists()


def test_killed_three_times_it_loses_nothing() -> None:
    script = Path(__file__).parents[2] / "benchmarks" / "kill_resume.py"
    done = subprocess.run(
        [sys.executable, str(script), "--kills", "3", "--lines", "400"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "output never torn, every acknowledged verdict kept" in done.stdout


@pytest.mark.parametrize("command", [[], ["score"], ["doctor"]])
def test_every_command_has_help_with_an_example(command: list[str]) -> None:
    result = plaudit(*command, "--help")
    assert result.exit_code == 0
    assert "xample" in result.output


def test_python_m_plaudit_works_and_tells_its_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "plaudit", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("plaudit 0.")


def test_lines_are_judged_by_the_rubric_that_each_brings(
    simulator: Simulator, out: Path, tmp_path: Path
) -> None:
    source = tmp_path / "rubrics.jsonl"
    rows: list[dict[str, Any]] = [
        {"prompt": "6 x 7?", "response": "42", "rubric": ["Says 42", "Is rude"]},
        {"prompt": "Why?", "response": "So.", "rubric": [{"title": "Kind", "description": "Is kind"}]},
    ]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ["score", source, "-o", out, "--base-url", simulator.url, "--judge", "checklist"]
    assert plaudit(*arguments).exit_code == 0
    assert [list(line["judge"]["parts"]) for line in read(out)] == [["c1", "c2"], ["Kind"]]
    source.write_text(json.dumps(rows[0]) + "\n" + json.dumps({**rows[1], "rubric": [{"points": 1}]}) + "\n")
    before = simulator.server.stats.answered
    result = plaudit(*arguments)
    assert result.exit_code == 2
    assert "line 2: rubric[0] " in result.stderr
    assert simulator.server.stats.answered == before
