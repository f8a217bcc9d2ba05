"""`plaudit train-mutator` end to end: over sockets, on a real model, through faults, kills and bad input."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.trainers

import msgspec  # noqa: E402
from click.testing import CliRunner  # noqa: E402
from loopback import INSTANT, loopback, taking  # noqa: E402
from tiny_model import write_tiny_model  # noqa: E402
from until import until  # noqa: E402

from plaudit.cli import app  # noqa: E402
from plaudit.mutation.history import History  # noqa: E402
from plaudit.mutation.questions import builtin_questions  # noqa: E402
from plaudit.simulator import Fault, Scenario  # noqa: E402

ROOT = Path(__file__).parent.parent.parent
SMALL = ("--num-processes", "4", "--num-steps", "8", "--num-env-steps", "64", "--num-mini-batch", "2")
NEVER = 10**9


def command(*words: object, status: int = 0) -> str:
    done = CliRunner().invoke(app, ["train-mutator", *map(str, words)])
    assert done.exit_code == status, done.output + done.stderr
    return done.output + done.stderr


def history_of(folder: Path) -> History:
    return msgspec.json.decode((folder / "history.json").read_bytes(), type=History)


def test_over_a_server_it_trains_and_reports(tmp_path: Path) -> None:
    with loopback() as server:
        said = command("--servers", server.url, "--embed-model", "simulated", *SMALL, "-o", tmp_path / "run")
    history = history_of(tmp_path / "run")
    assert history.steps == 64 and not history.steps_failed()
    assert "Reward per episode" in said
    assert "64/64 steps" in said
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "<svg" in page and "score before" in page


def test_batching_keeps_the_server_busy_and_no_batching_asks_one_thing_at_a_time(tmp_path: Path) -> None:
    peaks = []
    for flag in ("--no-batching", "--use-batching", "--no-barrier"):
        with loopback(Scenario(latency=taking(0.005))) as server:
            command("--servers", server.url, *SMALL, flag, "--cache", "off", "-o", tmp_path / flag, "--quiet")
            peaks.append(server.stats.peak_in_flight)
    assert peaks[0] == 1
    assert min(peaks[1:]) >= 3
    one, two, three = (history_of(folder) for folder in tmp_path.iterdir())
    assert one == two == three


def test_with_a_tenth_of_the_calls_failing_and_a_server_dying_it_goes_on(tmp_path: Path) -> None:
    dying = INSTANT.replace(faults=(Fault("down", requests=(60, NEVER)),))
    flaky = INSTANT.replace(faults=(Fault("error", probability=0.1, status=400),))
    with loopback(dying) as one, loopback(flaky) as two:
        servers = f"{one.url},{two.url}"
        command("--servers", servers, "--model", "simulated", *SMALL, "--no-barrier", "-o", tmp_path / "run")
        assert two.stats.answered > 50
    history = history_of(tmp_path / "run")
    assert history.steps == 64
    assert 0 < history.steps_failed() < 32
    assert sum(history.errors.values()) == history.steps_failed()


def test_with_all_servers_dead_it_ends_when_patience_does_and_goes_on_as_if_they_had_lived(
    tmp_path: Path,
) -> None:
    dying = INSTANT.replace(faults=(Fault("down", requests=(140, NEVER)),))
    words = ("--model", "simulated", *SMALL, "--cache", "off")
    with loopback(dying) as server:
        given_up = ("--servers", server.url, *words, "--patience", "1", "-o", tmp_path / "cut")
        assert "--resume" in command(*given_up, status=3)
        assert server.stats.answered <= 140
    assert not (tmp_path / "cut" / "policy.zip").exists()
    with loopback() as server:
        command("--servers", server.url, *words, "-o", tmp_path / "cut", "--resume")
        command("--servers", server.url, *words, "-o", tmp_path / "whole")
    assert history_of(tmp_path / "cut") == history_of(tmp_path / "whole")


def test_killed_outright_and_resumed_it_gives_the_same_curve(tmp_path: Path) -> None:
    steady = Scenario(latency=taking(0.004))
    settings = ("--model", "simulated", *SMALL, "--num-env-steps", "160", "--cache", "off", "--seed", "5")
    with loopback(steady) as server:
        words = ("--servers", server.url, *settings)
        script = [sys.executable, str(ROOT / "train_query_mutator.py"), *words, "-o", str(tmp_path / "cut")]
        child = subprocess.Popen(script, env=os.environ, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        until((tmp_path / "cut" / "checkpoint.zip").exists)
        assert child.poll() is None
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert not (tmp_path / "cut" / "report.html").exists()
        command(*words, "-o", tmp_path / "cut", "--resume")
        command(*words, "-o", tmp_path / "whole")
    assert history_of(tmp_path / "cut") == history_of(tmp_path / "whole")


def test_on_a_real_model_server_it_runs_from_end_to_end(tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf")
    operators = tmp_path / "operators.toml"
    operators.write_text(
        'builtin = ["keep"]\n[[operators]]\nname = "free"\n'
        'instruction = "Say it in any way."\nmay_state = true\n'
    )
    few = ("--num-processes", "4", "--num-steps", "4", "--num-env-steps", "16", "--num-mini-batch", "2")
    said = command(
        *("--local-model", model, "--operators", operators, "--answer-tokens", "16"),
        *(*few, "--cache", "off", "-o", tmp_path / "run"),
    )
    assert "tiny.gguf" in said
    history = history_of(tmp_path / "run")
    assert history.steps == 16 and history.episodes > 0
    assert history.steps_failed() < history.steps
    assert all(point.reward is None or abs(point.reward) <= 1.5 for point in history.points)


def test_what_is_wrong_is_said_before_training_starts(tmp_path: Path) -> None:
    out = ("-o", tmp_path / "run")
    nobody = ("--servers", "http://127.0.0.1:9/v1", "--model", "m", "--timeout", 0.1)
    said = command(*nobody, *out, status=2)
    assert "127.0.0.1:9" in said and "start" in said
    with loopback() as server:
        said = command("--servers", server.url, "--model", "missing", *out, status=2)
        assert "has no model 'missing'; it has simulated" in said
        plain = tmp_path / "plain.jsonl"
        plain.write_text('{"question": "What is 2 + 2?"}\n')
        judged = ("--judge", "reference", "--questions", plain)
        assert "reference" in command("--servers", server.url, *judged, *out, status=2)
    two = ("--servers", "http://127.0.0.1:9/v1", "--model", "m", "--judge-model", "n")
    assert "--rpm cannot be held over 2 models" in command(*two, "--rpm", 60, *out, status=2)
    said = command("--mutate-model", "m", *out, status=2)
    assert "--mutate-model needs a server" in said
    assert not (tmp_path / "run").exists()


def test_a_server_that_lists_a_model_and_does_not_serve_it_is_found_out(tmp_path: Path) -> None:
    broken = Scenario(models=("missing",))
    with loopback(broken) as server:
        said = command("--servers", server.url, "--model", "missing", "-o", tmp_path, status=2)
    assert "does not answer" in said and "missing" in said


def test_the_packaged_questions_are_what_it_asks_by_default(tmp_path: Path) -> None:
    with loopback() as server:
        command("--servers", server.url, *SMALL, "-o", tmp_path / "run", "--quiet")
    asked = {item.question for item in builtin_questions()}
    assert set(history_of(tmp_path / "run").best) <= asked
