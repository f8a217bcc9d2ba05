"""`plaudit audit`: over a simulated judge, from the command to the table and the files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from simulated_judge import FAST, Simulator, simulated

from plaudit.cli import app
from plaudit.simulator import Scenario

ROOT = Path(__file__).parents[2]
PAIRS = ROOT / "examples" / "data" / "pairs.jsonl"


def audit(*arguments: object, url: str = "") -> Any:
    where = ["--base-url", url] if url else []
    return CliRunner().invoke(app, ["audit", *map(str, arguments), *where, "--quiet"])


def test_the_pairs_that_come_with_plaudit_are_forty_and_all_different() -> None:
    rows = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == len({row["prompt"] for row in rows}) == len({row["id"] for row in rows}) == 40
    assert all(row["chosen"] != row["rejected"] for row in rows)


def test_probe_prints_a_table_and_writes_both_files(simulator: Simulator, tmp_path: Path) -> None:
    result = audit(
        "probe", "--per-family", 2, "--json", tmp_path / "p.json", "--html", tmp_path / "p.html",
        url=simulator.url,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "master key" in result.stdout
    assert "harmless words (control)" in result.stdout
    found = json.loads((tmp_path / "p.json").read_text())
    assert len(found["families"]) == 14
    assert found["fooled"]["of"] == 28
    assert len(found["attempts"]) == 30
    assert (tmp_path / "p.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("flag", ["--json", "--html"])
def test_a_report_that_cannot_be_written_is_said_by_its_option_before_any_call(
    flag: str, simulator: Simulator, tmp_path: Path
) -> None:
    for place, why in (
        (tmp_path / "gone" / "c", "does not exist; make it first"),
        (tmp_path, "is a folder"),
        (PAIRS, "would overwrite the input"),
    ):
        result = audit("calibrate", PAIRS, flag, place, url=simulator.url)
        assert result.exit_code == 2
        assert result.stderr.startswith(f"plaudit: {flag} {place} ")
        assert why in result.stderr
    assert simulator.server.stats.requests == 0


def test_calibrate_asks_again_past_the_cache(simulator: Simulator, tmp_path: Path) -> None:
    first = audit("calibrate", PAIRS, "--json", tmp_path / "c.json", url=simulator.url)
    assert first.exit_code == 0, first.output
    assert simulator.server.stats.requests == 160
    found = json.loads((tmp_path / "c.json").read_text())
    assert found["retest"]["same"]["of"] == 80
    assert found["agreement"]["of"] == 40
    assert len(found["subsets"]) == 5
    audit("calibrate", PAIRS, "--no-retest", url=simulator.url)
    assert simulator.server.stats.requests == 160, "what was asked is in the cache"


def test_compare_puts_two_judges_to_the_same_pairs(simulator: Simulator, tmp_path: Path) -> None:
    result = audit(
        "compare", PAIRS, "--judge", "rubric", "--judge", "yes", "--html", tmp_path / "c.html",
        url=simulator.url,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "rubric agrees with the label" in result.stdout
    assert "Disagreements" in (tmp_path / "c.html").read_text()


def test_compare_puts_two_models_to_the_same_pairs() -> None:
    with simulated(Scenario(latency=FAST)) as running:
        result = audit("compare", PAIRS, "--model", "small", "--model", "large", url=running.url)
    assert result.exit_code == 0, result.output
    assert "small (rubric) agrees with the label" in result.stdout


@pytest.mark.parametrize("name", ["in.jsonl", "in.csv"])
def test_compare_takes_answers_without_labels(simulator: Simulator, tmp_path: Path, name: str) -> None:
    rows = [{"question": f"{number} + 1?", "answer": f"{number + number % 2}"} for number in range(12)]
    content = "".join(json.dumps(row) + "\n" for row in rows)
    if name == "in.csv":
        content = "question,answer\n" + "".join(",".join(row.values()) + "\n" for row in rows)
    (tmp_path / name).write_text(content)
    result = audit(
        "compare", tmp_path / name, "--judge", "rubric", "--judge", "yes", "--json", tmp_path / "c.json",
        "--html", tmp_path / "c.html", url=simulator.url,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "c.json").read_text())
    assert (found["close"]["of"], found["missing"]) == (12, 0)
    assert found["correlation"] > 0.5
    assert f"12 from {name}" in (tmp_path / "c.html").read_text()


def test_a_report_never_takes_the_place_of_the_pairs(simulator: Simulator, tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    file.write_text(before := '{"prompt": "a", "chosen": "b", "rejected": "c"}\n')
    result = audit("calibrate", file, "--no-retest", "--json", file, url=simulator.url)
    assert (result.exit_code, file.read_text()) == (2, before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare", PAIRS), "give --judge twice"),
        (("compare", PAIRS, "--judge", "yes", "--judge", "yes"), "give --judge twice"),
        (("compare", PAIRS, *["--judge", "yes"] * 3), "given 3 times"),
        (("calibrate", "nowhere.jsonl"), "nowhere.jsonl does not exist"),
        (("probe", "--pass-mark", "99"), "--pass-mark 99"),
    ],
)
def test_bad_usage_is_refused_before_anybody_is_asked(
    simulator: Simulator, arguments: tuple[object, ...], message: str
) -> None:
    result = audit(*arguments, url=simulator.url)
    assert result.exit_code == 2
    assert message in result.stderr
    assert simulator.server.stats.requests == 0


def test_a_line_that_is_no_pair_is_named(simulator: Simulator, tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text('{"prompt": "a", "chosen": "b", "rejected": "c"}\n{"prompt": "a"}\n')
    result = audit("calibrate", file, url=simulator.url)
    assert result.exit_code == 2
    assert "bad.jsonl, line 2" in result.stderr


def test_where_no_verdict_comes_back_the_reason_is_said(simulator: Simulator, tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    file.write_text('{"prompt": "a", "chosen": "b", "rejected": "c"}\n')
    result = audit("calibrate", file, "--model", "missing", url=simulator.url)
    assert result.exit_code == 2
    assert "no verdict at all came back: " in result.stderr
    assert "404" in result.stderr


def test_a_judge_whose_score_is_no_quality_is_refused(simulator: Simulator, tmp_path: Path) -> None:
    file = tmp_path / "judge.toml"
    file.write_text('kind = "monitor"\nbehaviour = "It edits the tests."\n')
    result = audit("probe", "--judge", file, url=simulator.url)
    assert result.exit_code == 2
    assert "a lower score of Monitor is the better one" in result.stderr
