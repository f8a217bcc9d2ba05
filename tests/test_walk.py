"""On its way through `plaudit score` a line is parsed, read, checked and rendered once."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner
from counted_calls import counted_calls
from loopback import loopback

from plaudit.cli import app

LINES = 20
ONCE = ("settings.resolve", "setup.judges.judge_of", "judges.check.check_judge")
FOR_EACH_LINE = (
    "setup.json_lines.parse",
    "rows.read_prompt",
    "rows.read_response",
    "rows.read_reference",
    "judges.prompt.check",
    "judges.rubric.render",
    "transports.openai.encode",
    "transports.openai.decode",
    "judges.rubric.parse",
)


def test_nothing_is_done_twice_in_plaudit_score(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    rows = (
        {
            "prompt": [{"role": "user", "content": f"{number} + 1?"}],
            "response": [{"role": "assistant", "content": str(number)}],
            "reference": str(number + 1),
        }
        for number in range(LINES)
    )
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with loopback() as server, counted_calls() as calls:
        arguments = ["score", str(source), "-o", str(tmp_path / "out.jsonl"), "--base-url", server.url]
        ran = CliRunner().invoke(app, [*arguments, "--model", "m", "--cache", "off", "--quiet"])
    assert ran.exit_code == 0, ran.output
    assert {name: calls[name] for name in ONCE} == dict.fromkeys(ONCE, 1)
    assert {name: calls[name] for name in FOR_EACH_LINE} == dict.fromkeys(FOR_EACH_LINE, LINES)
