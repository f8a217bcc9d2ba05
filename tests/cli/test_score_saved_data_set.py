"""`plaudit score` on a folder that the Hugging Face library has saved, opened by that library again."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from simulated_judge import Simulator

from plaudit.cli import app

pytestmark = [pytest.mark.trainers, pytest.mark.filterwarnings("ignore")]

ROWS = [{"question": f"{number} + 1?", "answer": f"{number + 1}"} for number in range(5)]


def score(simulator: Simulator, source: Path, out: Path) -> Result:
    return CliRunner().invoke(app, ["score", str(source), "-o", str(out), "--base-url", simulator.url])


def test_a_saved_data_set_comes_back_as_one_with_its_features(simulator: Simulator, tmp_path: Path) -> None:
    import datasets

    features = datasets.Features(
        {
            "question": datasets.Value("string"),
            "answer": datasets.Value("string"),
            "kind": datasets.ClassLabel(names=["sum", "other"]),
        }
    )
    rows = [row | {"kind": "sum"} for row in ROWS]
    datasets.Dataset.from_list(rows, features=features).save_to_disk(tmp_path / "set")
    result = score(simulator, tmp_path / "set", tmp_path / "scored")
    assert result.exit_code == 0, result.output
    scored = datasets.load_from_disk(tmp_path / "scored")
    assert scored["question"][:] == [row["question"] for row in ROWS]
    assert None not in scored["score"][:]
    assert scored.features["kind"] == features["kind"]
    again = score(simulator, tmp_path / "scored", tmp_path / "again")
    assert again.exit_code == 0, again.output
    assert datasets.load_from_disk(tmp_path / "again")["score"][:] == scored["score"][:]
