"""What the README shows is run as it stands, with only the server's address and the environment put in."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from loopback import loopback

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHOWN_URL = "http://localhost:8000/v1"
PLAUDIT = [sys.executable, "-m", "plaudit"]


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, env=os.environ, text=True, capture_output=True, timeout=60)


def commands(name: str) -> list[list[str]]:
    """The README's indented `plaudit NAME` commands against the simulator, as words."""
    lines = re.findall(rf"^    \.venv/bin/(plaudit {name} .*{SHOWN_URL}.*)$", README, re.MULTILINE)
    return [shlex.split(line)[1:] for line in lines]


def test_the_python_example_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    with loopback() as judge:
        script = tmp_path / "example.py"
        script.write_text(code.replace(SHOWN_URL, judge.url).replace('model="judge"', 'model="simulated"'))
        done = run([sys.executable, str(script)], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ok") == 2


def test_the_commands_for_scoring_and_looking_run(tmp_path: Path) -> None:
    with loopback() as judge:
        for words in [*commands("score"), *commands("doctor")]:
            put_in = [
                word.replace(SHOWN_URL, judge.url).replace("examples/", f"{ROOT}/examples/") for word in words
            ]
            done = run([*PLAUDIT, *put_in], tmp_path)
            assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "scored.jsonl").read_text().splitlines()]
    assert len(lines) == 64
    assert {line["status"] for line in lines} == {"ok"}


def test_every_file_it_names_is_there() -> None:
    linked = re.findall(r"\]\(([^)#]+)\)", README)
    assert linked
    assert [name for name in linked if not (ROOT / name).exists()] == []


def test_every_target_it_names_can_be_made() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"`?make ([a-z]+)`?", README)) - {"and"}
    assert {name for name in named if not re.search(rf"^{name}:", makefile, re.MULTILINE)} == set()
