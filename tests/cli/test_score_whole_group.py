"""Groups of lines: never torn apart by the pieces in which a file is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from simulated_judge import Simulator

from plaudit.cli import app
from plaudit.cli.input import MAX_GROUP, WholeGroups
from plaudit.setup.json_lines import Line
from plaudit.types import Sample


def lines(groups: str) -> list[Line]:
    return [Line(n, b"{}", Sample("p", "r", group=name)) for n, name in enumerate(groups, start=1)]


def names(taken: list[Line]) -> str:
    return "".join(line.sample.group or "-" for line in taken)


def test_the_last_group_waits_until_another_follows() -> None:
    groups = WholeGroups()
    assert names(groups.add(lines("aabb"), is_end=False)) == "aa"
    assert len(groups) == 2
    assert names(groups.add(lines("bbc"), is_end=False)) == "bbbb"
    assert names(groups.add([], is_end=False)) == ""
    assert names(groups.add([], is_end=True)) == "c"
    assert len(groups) == 0


def test_lines_without_a_group_wait_for_nothing() -> None:
    ungrouped = [Line(1, b"{}", Sample("p", "r"))]
    assert WholeGroups().add(ungrouped, is_end=False) == ungrouped


def test_a_group_without_end_is_not_held_for_ever() -> None:
    assert len(WholeGroups().add(lines("a" * MAX_GROUP), is_end=False)) == MAX_GROUP


def scored(source: Path, simulator: Simulator, *options: str) -> Result:
    out = source.with_suffix(".out")
    arguments = ("score", source, "-o", out, "--base-url", simulator.url, "--judge", "group", *options)
    return CliRunner().invoke(app, [str(part) for part in arguments])


def test_a_file_of_groups_is_judged_group_by_group(tmp_path: Path, simulator: Simulator) -> None:
    source = tmp_path / "in.jsonl"
    records = [{"prompt": f"{n // 3}?", "response": f"answer {n}", "group": n // 3} for n in range(600)]
    source.write_text("".join(json.dumps(record) + "\n" for record in records))
    result = scored(source, simulator)
    assert result.exit_code == 0, result.output
    written = [json.loads(line) for line in source.with_suffix(".out").read_text().splitlines()]
    assert [line["response"] for line in written] == [record["response"] for record in records]
    assert {line["status"] for line in written} == {"ok"}
    assert simulator.server.stats.unique == 200


@pytest.mark.parametrize(
    ("last", "complaint"),
    [
        ({"group": "z"}, "lines 255 to 259: group='z' "),
        ({}, "lines 255 to 259: sample 4: group "),
    ],
)
def test_a_group_of_one_is_refused_before_the_first_call(
    tmp_path: Path, simulator: Simulator, last: dict[str, str], complaint: str
) -> None:
    source = tmp_path / "in.jsonl"
    records = [{"prompt": "p", "response": f"{n}", "group": f"{n // 2}"} for n in range(258)]
    records.append({"prompt": "p", "response": "alone", **last})
    source.write_text("".join(json.dumps(record) + "\n" for record in records))
    result = scored(source, simulator)
    assert result.exit_code == 2
    assert complaint in " ".join(result.output.split())
    assert simulator.server.stats.requests == 0
