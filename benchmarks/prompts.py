"""What a change of the prompts did: an earlier commit's rubric beside this tree's, on labelled pairs.

    python benchmarks/prompts.py COMMIT [--base-url URL --model M] [--pairs 24] [--rubric TEXT]
        [--kind rubric|expected] [--reference]

Both trees run `plaudit score` on the same pairs, with the rubric of their own prompts, against the same
endpoint; by default that is the embedded model. With `--kind expected` the score is read from
log-probabilities, which shows small differences, too; with `--reference` the right answer is every row's
reference. `plaudit audit compare` shows the same of two judge files.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import table
from clients import ROOT
from house import checkout

from plaudit.audit import read_pairs, samples_of
from plaudit.audit.comparison import Contender, compare
from plaudit.config import Secret
from plaudit.local import LocalServer, ensure_packaged_model
from plaudit.types import Status, Verdict

SCALES = {"rubric": (0, 10), "expected": (0, 9)}
FILES = (ROOT / "examples" / "data" / "pairs.jsonl", ROOT / "benchmarks" / "data" / "fresh_pairs.jsonl")


@contextlib.contextmanager
def endpoint(url: str | None, model: str | None) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Where the judge answers, the model, and the variable with its key."""
    if url is not None:
        yield url, model or "", {}
        return
    with LocalServer(ensure_packaged_model(lambda _: True)) as server:
        found = server.endpoint
        assert isinstance(found.api_key, Secret)
        key = {"PLAUDIT_API_KEY": found.api_key.reveal()}
        yield found.url, found.model, key


def scores(tree: Path, lines: Path, judge: Path, where: tuple[str, str, dict[str, str]]) -> list[Verdict]:
    """A tree's verdicts on the lines."""
    url, model, key = where
    out = lines.with_suffix(".out")
    words = ["score", str(lines), "-o", str(out), "--judge", str(judge), "--base-url", url, "--model", model]
    command = [sys.executable, "-m", "plaudit", *words, "--cache", "off", "--timeout", "600", "--quiet"]
    environment = os.environ | key | {"PYTHONPATH": str(tree / "src")}
    subprocess.run(command, env=environment, check=False)  # status 3: some have no verdict, which is counted
    found = [json.loads(line)["score"] for line in out.read_text(encoding="utf-8").splitlines()]
    return [Verdict(score, Status.UNREADABLE if score is None else Status.OK) for score in found]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("commit")
    arguments.add_argument("--base-url")
    arguments.add_argument("--model")
    arguments.add_argument("--pairs", type=int, default=24, help="how many of the 80")
    arguments.add_argument("--rubric", default="Is the response a correct answer to the task?")
    arguments.add_argument("--kind", choices=SCALES, default="rubric")
    arguments.add_argument("--reference", action="store_true", help="give each row the right answer")
    arguments.add_argument("--max-tokens", type=int, default=100, help="of a reply; small models ramble")
    given = arguments.parse_args()
    pairs = [pair for file in FILES for pair in read_pairs(file.read_bytes(), file.name)][: given.pairs]
    with (
        tempfile.TemporaryDirectory() as folder,
        endpoint(given.base_url, given.model) as where,
    ):
        old = checkout(given.commit, Path(folder) / "old")
        lines = Path(folder) / "answers.jsonl"
        rows = [{"prompt": one.prompt, "response": one.response} for one in samples_of(pairs)]
        if given.reference:
            rows = [row | {"reference": rows[number // 2 * 2]["response"]} for number, row in enumerate(rows)]
        lines.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        judge = Path(folder) / "judge.toml"
        scale = SCALES[given.kind]
        fields = {"kind": given.kind, "criteria": given.rubric, "scale": list(scale)}
        fields |= {"max_tokens": given.max_tokens} if given.kind == "rubric" else {}
        lines_of_judge = (f"{name} = {json.dumps(value)}\n" for name, value in fields.items())
        judge.write_text("".join(lines_of_judge), encoding="utf-8")
        before, now = (
            Contender(name, scale, scores(tree, lines, judge, where))
            for name, tree in ((given.commit, old), ("this tree", ROOT))
        )
    made = [
        (
            one.name,
            sum(verdict.score is None for verdict in one.verdicts),
            *_sides(one.verdicts),
            _lead(one.verdicts),
        )
        for one in (before, now)
    ]
    header = (
        "prompts of",
        "answers without a score",
        "right one higher",
        "tie",
        "wrong one higher",
        "mean lead of the right one",
    )
    table.show(f"{len(pairs)} labelled pairs", header, [tuple(map(str, row)) for row in made])
    found = compare(pairs, before, now)
    print(
        f"both prefer the same response on {found.agreement.hits} of {found.agreement.of} pairs "
        "that both scored"
    )
    return 0


def _sides(verdicts: Sequence[Verdict]) -> tuple[int, int, int]:
    sides = [
        (better.score > worse.score) - (better.score < worse.score)
        for better, worse in zip(verdicts[::2], verdicts[1::2], strict=True)
        if better.score is not None and worse.score is not None
    ]
    return sides.count(1), sides.count(0), sides.count(-1)


def _lead(verdicts: Sequence[Verdict]) -> str:
    """By how much the right answers score higher, with the standard error."""
    leads = [
        better.score - worse.score
        for better, worse in zip(verdicts[::2], verdicts[1::2], strict=True)
        if better.score is not None and worse.score is not None
    ]
    if len(leads) < 2:
        return "-"
    return f"{statistics.mean(leads):+.2f} +- {statistics.stdev(leads) / len(leads) ** 0.5:.2f}"


if __name__ == "__main__":
    sys.exit(main())
