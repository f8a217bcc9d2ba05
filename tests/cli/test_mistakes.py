"""The page of common mistakes: every row is typed as it stands, and says what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from simulated_judge import Simulator

from plaudit import Engine, Rubric, Sample
from plaudit.cli import app
from plaudit.errors import ConfigError

PAGE = Path(__file__).parent.parent.parent / "docs" / "mistakes.md"
SHOWN = "localhost:8000"
ROWS = re.findall(r"^\| `(.+?)` \| `(.+?)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
TYPED = [row for row in ROWS if row[0].startswith("plaudit ")]
WRITTEN = [row for row in ROWS if not row[0].startswith("plaudit ")]


def test_the_page_has_rows_of_both_kinds() -> None:
    assert len(TYPED) >= 15
    assert len(WRITTEN) >= 5


@pytest.mark.parametrize(("typed", "said"), TYPED, ids=[typed for typed, _ in TYPED])
def test_a_mistake_on_the_command_line_is_named_with_the_remedy(
    typed: str, said: str, simulator: Simulator, clean_environment: Path
) -> None:
    (clean_environment / "answers.jsonl").write_text('{"prompt": "1 + 1?", "response": "2"}\n')
    (clean_environment / "book.xlsx").write_bytes(b"PK\x03\x04" + bytes(60))
    (clean_environment / "runs").mkdir()
    (clean_environment / "quotes.jsonl").write_text("{'prompt': '1 + 1?', 'response': '2'}\n")
    (clean_environment / "ragged.csv").write_text("prompt,response\n1 + 1?,2\n2 + 2?\n")
    (clean_environment / "open.csv").write_text('prompt,response\n1 + 1?,"2\n2 + 2?,4\n')
    (clean_environment / "wrapped.json").write_text('{"rows": [{"prompt": "1 + 1?", "response": "2"}]}')
    (clean_environment / "empty.txt").write_text("\n")
    (clean_environment / "windows.csv").write_text("prompt,response\n1 + 1?,2\n", encoding="utf-16")
    (clean_environment / "odd.jsonl").write_text('{"task": "1 + 1?", "text": "2"}\n')
    host = simulator.url.removeprefix("http://").removesuffix("/v1")
    result = CliRunner().invoke(app, shlex.split(typed.replace(SHOWN, host))[1:])
    assert result.exit_code in (2, 3)
    assert said.replace(SHOWN, host) in " ".join(result.stderr.split())


@pytest.mark.parametrize(("written", "said"), WRITTEN, ids=[written for written, _ in WRITTEN])
def test_a_mistake_in_python_is_named_with_the_remedy(written: str, said: str) -> None:
    with Engine(f"http://{SHOWN}/v1", model="judge") as engine, pytest.raises(ConfigError) as caught:
        eval(written, {"engine": engine, "Engine": Engine, "Rubric": Rubric, "Sample": Sample})
    assert said in str(caught.value)
