"""docs/judges.md: every example on the page runs, and the judge of one's own is the one in examples/."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plaudit.errors import ConfigError
from plaudit.judges.file import load_judge

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "judges.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "own_judge.py"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_every_python_example_runs_and_gives_scores(capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, Any] = {}
    code = blocks("python")
    assert len(code) >= 8
    for block in code:
        exec(compile(block, "docs/judges.md", "exec"), namespace)
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) >= 14
    assert "None" not in printed, "a simulated judge that knows the format fails nowhere"


@pytest.mark.parametrize(
    "text",
    [
        'kind = "rubric"\n\ncritera = "Is it right?"\n',
        'kind = "checklist"\n\n[[criteria]]\nname = "correct"\ntext = "It is right."\n\n'
        '[[criteria]]\nname = "correct"\ntext = "It is true."\n',
    ],
)
def test_a_faulty_file_gets_the_message_that_the_page_shows(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("judge.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_judge("judge.toml")
    assert str(caught.value) in "".join(blocks("text")).splitlines()


def test_the_judge_of_one_s_own_has_some_twenty_lines_and_is_the_one_in_the_example() -> None:
    shown = re.search(r"^class Tone.*?(?=^tone = )", PAGE, re.MULTILINE | re.DOTALL)
    assert shown is not None
    code = shown[0].strip()
    assert code in EXAMPLE.read_text(encoding="utf-8")
    assert len(code.splitlines()) <= 25


def test_the_example_runs_offline() -> None:
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["ok", "ok", "empty"]
