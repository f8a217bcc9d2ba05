"""On its way through a front end a row is parsed, read, checked and rendered once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from counted_calls import counted_calls
from loopback import JUDGE, loopback

from plaudit import Engine, compute_score
from plaudit.cli import app
from plaudit.integrations.scored import Scored, sample_of
from plaudit.integrations.trl import reward_function

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


Turns = list[dict[str, str]]
PROMPTS: list[Turns] = [[{"role": "user", "content": f"{number} + 1?"}] for number in range(LINES)]
RESPONSES = [str(number) for number in range(LINES)]


def by_engine(url: str) -> None:
    rows = [{"prompt": prompt, "response": one} for prompt, one in zip(PROMPTS, RESPONSES, strict=True)]
    with Engine(url, model="m", cache=None) as engine:
        engine.score(rows, JUDGE)


def by_compute_score(url: str) -> None:
    infos = [{"question": prompt} for prompt in PROMPTS]
    with pytest.MonkeyPatch.context() as environment:
        for name, value in {"OPENAI_BASE_URL": url, "PLAUDIT_MODEL": "m", "PLAUDIT_CACHE": "off"}.items():
            environment.setenv(name, value)
        environment.setenv("PLAUDIT_RUBRIC", "Is it right?")
        compute_score(solution_strs=RESPONSES, extra_infos=infos)


def by_adapter(url: str) -> None:
    samples = [sample_of(prompt, one) for prompt, one in zip(PROMPTS, RESPONSES, strict=True)]
    Scored(JUDGE, url=url, model="m", cache=None).rewards(samples)


def by_trl(url: str) -> None:
    asyncio.run(reward_function(JUDGE, url=url, model="m", cache=None)(PROMPTS, RESPONSES))


@pytest.mark.parametrize("front_end", [by_engine, by_compute_score, by_adapter, by_trl])
def test_nothing_is_done_twice_in_python(front_end: Callable[[str], None]) -> None:
    read = ("rows.read_prompt", "rows.read_response", "judges.prompt.check", "judges.rubric.parse")
    with loopback() as server, counted_calls() as calls:
        front_end(server.url)
    assert {name: calls[name] for name in read} == dict.fromkeys(read, LINES)
    assert calls["settings.resolve"] == 1
