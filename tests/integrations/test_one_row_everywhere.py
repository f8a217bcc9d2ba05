"""One row, five front ends: the same sample, the same request, paid for once."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from loopback import Loopback, loopback

from plaudit import Rubric, Sample, compute_score, get_request_hash
from plaudit.cli import app
from plaudit.compute_score import row_sample
from plaudit.integrations.scored import Scored, sample_of
from plaudit.integrations.trl import reward_function
from plaudit.integrations.trl.samples import samples_of
from plaudit.integrations.verl.batch_row import read_row
from plaudit.integrations.verl.reward_engine import judge_for, open_reward_engine, resolve
from plaudit.integrations.verl.reward_settings import read_settings
from plaudit.integrations.verl.row_reward import RowReward
from plaudit.integrations.verl.rule_score import RuleScorer
from plaudit.setup.json_lines import Line, parse
from plaudit.types import ChatRequest

CRITERIA = "Is it correct and brief?"
RESPONSE = "Because short waves scatter more: ½ · λ⁻⁴ 🌤"
EXTRA = {"rubric": [{"criterion": "names scattering", "points": 5}], "level": 3, "data_source": "my/essays"}
PROMPTS: dict[str, Any] = {
    "text": "Why is the sky blue?",
    "unicode": "Warum ist der Himmel blau?\n为什么天空是蓝色的? 🌈",
    "messages": [{"role": "user", "content": "Why is the sky blue?"}],
    "system turn": [
        {"role": "system", "content": "You are a physicist."},
        {"role": "user", "content": "Why is the sky blue?"},
        {"role": "assistant", "content": "On Earth?"},
        {"role": "user", "content": "Yes."},
    ],
    "content parts": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Why is it blue in "},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
                {"type": "text", "text": "?"},
            ],
        }
    ],
    "tool calls": [
        {"role": "user", "content": "Why is the sky blue?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"function": {"name": "look", "arguments": "{}"}}],
        },
        {"role": "tool", "content": "It is blue."},
    ],
}


class Letters:
    """A tokenizer whose tokens are characters."""

    def decode(self, ids: Any, *, skip_special_tokens: bool = False) -> str:
        return "".join(map(chr, ids)) if skip_special_tokens else ""


class VerlItem:
    """A row as verl hands it over: arrays, and a part of its columns in `extra_info`."""

    def __init__(self, prompt: Any) -> None:
        response = np.array([ord(letter) for letter in RESPONSE])
        turns = prompt if isinstance(prompt, str) else np.array(prompt, dtype=object)
        self.batch = {"responses": response, "attention_mask": np.ones_like(response)}
        self.non_tensor_batch = {
            "raw_prompt": turns,
            "uid": "0",
            "data_source": EXTRA["data_source"],
            "reward_model": {"ground_truth": "Rayleigh", "style": "rule"},
            "rubric": np.array(EXTRA["rubric"], dtype=object),
            "extra_info": {"level": np.int64(3)},
            "__num_turns__": 2,
        }


def line_of(prompt: Any) -> bytes:
    row = {"prompt": prompt, "response": RESPONSE, "reference": "Rayleigh", "group": 0, **EXTRA}
    return json.dumps(row).encode()


def extra_info(prompt: Any) -> dict[str, Any]:
    columns = {name: value for name, value in EXTRA.items() if name != "data_source"}
    return {"question": prompt, "uid": 0, **columns}


def columns() -> dict[str, Any]:
    return {"answer": ["Rayleigh"], **{name: [value] for name, value in EXTRA.items()}}


def everywhere(prompt: Any) -> dict[str, Sample]:
    """The sample that each front end makes of one row."""
    line = parse(1, line_of(prompt))
    assert isinstance(line, Line), line
    return {
        "plaudit score": line.sample,
        "compute_score": row_sample("my/essays", RESPONSE, "Rayleigh", extra_info(prompt)),
        "verl": read_row(VerlItem(prompt), Letters()).sample,
        "TRL": samples_of([prompt], [RESPONSE], columns(), reference="answer")[0],
        "Scored": sample_of(prompt, RESPONSE + "<|im_end|>", "Rayleigh", group=0, extra=EXTRA),
    }


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS)
def test_one_row_is_one_sample_and_one_request_everywhere(prompt: Any) -> None:
    judge = Rubric(CRITERIA)
    samples = everywhere(prompt)
    first = samples["plaudit score"]
    assert first.extra == EXTRA
    assert first.reference == "Rayleigh"
    requests = {}
    for name, sample in samples.items():
        assert sample == first, name
        request = judge.render(sample)
        assert isinstance(request, ChatRequest)
        requests[name] = get_request_hash(request, model="m", version=judge.version)
    assert len(set(requests.values())) == 1


@pytest.fixture
def judge_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """A judge, and settings that every front end reads."""
    with loopback() as server:
        for name, value in {
            "BASE_URL": server.url,
            "MODEL": "m",
            "RUBRIC": CRITERIA,
            "CACHE": str(tmp_path / "verdicts.db"),
        }.items():
            monkeypatch.setenv(f"PLAUDIT_{name}", value)
        yield server


def by_verl(prompt: Any) -> float:
    settings = read_settings({"rule": "off"})
    plain = resolve(settings)
    engine = open_reward_engine(settings, plain)
    try:
        reward = RowReward(settings, judge_for(settings, plain), engine, RuleScorer(lambda **_: None, "off"))
        return asyncio.run(reward.score(read_row(VerlItem(prompt), Letters())))[0]
    finally:
        engine.close()


def by_command_line(prompt: Any, folder: Path) -> float:
    (folder / "in.jsonl").write_bytes(line_of(prompt))
    out = folder / "out.jsonl"
    result = CliRunner().invoke(app, ["score", str(folder / "in.jsonl"), "-o", str(out), "--quiet"])
    assert result.exit_code == 0, result.output
    return float(json.loads(out.read_text(encoding="utf-8"))["score"])


@pytest.mark.skipif(sys.platform == "win32", reason="SQLite files shared by engines of one process")
def test_a_verdict_that_one_front_end_paid_for_serves_all_others(
    judge_server: Loopback, tmp_path: Path
) -> None:
    prompt = PROMPTS["content parts"]
    low, high = Rubric(CRITERIA).scale
    function = reward_function(Rubric(CRITERIA), reference="answer", cache=str(tmp_path / "verdicts.db"))
    scores = [
        (by_command_line(prompt, tmp_path) - low) / (high - low),
        float(compute_score(RESPONSE, "Rayleigh", "my/essays", extra_info(prompt))),
        by_verl(prompt),
        asyncio.run(function([prompt], [RESPONSE], **columns()))[0],
        float(Scored().rewards([everywhere(prompt)["Scored"]])[0]),
    ]
    assert scores == [scores[0]] * 5
    assert judge_server.stats.requests == 1
