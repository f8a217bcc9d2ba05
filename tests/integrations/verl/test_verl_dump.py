"""What verl writes of each row leads back to the journal's record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from journals import judged as recorded
from journals import write
from test_verl_row_reward import FakeEngine, by_number, judged, row, score_all

from plaudit.journal.index import JournalIndex

pytestmark = pytest.mark.trainers


def test_rows_that_verl_dumps_name_their_records_and_its_means_of_validation_pass_over_the_names(
    tmp_path: Path,
) -> None:
    from verl.trainer.ppo.metric_utils import process_validation_metrics
    from verl.trainer.ppo.ray_trainer import RayPPOTrainer

    rows = [row(str(number), is_validation=True) for number in (3, 5, 8)]
    found = [extra for _, extra in score_all(judged(FakeEngine(by_number)), rows)]
    extras = {name: [one[name] for one in found] for name in found[0]}
    responses = [one.sample.text for one in rows]
    RayPPOTrainer._write_generations(
        ["7 x 8?"] * 3, responses, ["9"] * 3, [0.3, 0.5, 0.8], extras, str(tmp_path / "dump"), 4
    )
    dumped = [json.loads(line) for line in (tmp_path / "dump" / "4.jsonl").read_text().splitlines()]
    write(tmp_path / "j", [recorded(number, prompt="7 x 8?", response=str(number)) for number in (8, 3, 5)])
    with JournalIndex(tmp_path / "j") as index:
        places = [index.row_of(line["plaudit/record"]) for line in dumped]
        assert [index.text(place or 0).response for place in places] == responses
    means = process_validation_metrics(["own"] * 3, ["a", "b", "c"], extras)
    assert "plaudit/judge" in means["own"] and "plaudit/record" not in means["own"]
