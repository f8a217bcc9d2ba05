"""Every version of verl that docs/verl.md and docs/verl-legacy.md name, with a tenth of the verdicts missing.

Each runs in a process of its own with that version first on the path. `make test-trainers` puts the sources
of the older ones into .venv-trainers/verl-VERSION.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from loopback import INSTANT, LOSING_A_TENTH, loopback

pytestmark = pytest.mark.trainers

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
VERSIONS = {
    "0.4.1": "legacy",
    "0.5.0": "legacy",
    "0.6.1": "legacy",
    "0.7.0": "legacy",
    "0.7.1": "loop",
    "0.8.0": "loop",
}


@pytest.mark.parametrize(("version", "way"), VERSIONS.items(), ids=VERSIONS)
def test_lost_verdicts_have_no_advantage_and_every_other_row_keeps_its_score(
    version: str, way: str, tmp_path: Path
) -> None:
    sources = Path(sys.prefix) / f"verl-{version}"
    if not sources.is_dir():
        pytest.skip(f"{sources} is not there; make test-trainers installs it")
    path = [sources, Path(sys.prefix) / "verl-old-setuptools", HERE, HERE.parents[1], ROOT / "src"]
    variables = {
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "PLAUDIT_HOME": str(tmp_path),
        "HF_HUB_OFFLINE": "1",
        "PYTHONWARNINGS": "ignore",
    }
    command = [sys.executable, str(HERE / "version_training.py"), way]
    with loopback(INSTANT.replace(faults=LOSING_A_TENTH)) as judge:
        done = subprocess.run(
            [*command, judge.url],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
        )
    lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    assert lines, done.stdout[-2000:] + done.stderr[-4000:]
    found = json.loads(lines[0].removeprefix("FOUND "))
    assert found["version"] == version
    groups = defaultdict(list)
    for uid, *row in found["rows"]:
        groups[uid].append(row)
    lost = [row for rows in groups.values() for row in rows if not row[0]]
    assert 3 <= len(lost) <= 16  # of 80
    assert len({round(advantage, 4) for rows in groups.values() for *_, advantage in rows}) > 2
    for rows in groups.values():
        earned = [reward for is_valid, _, reward, _ in rows if is_valid]
        for is_valid, judged, reward, advantage in rows:
            if is_valid:
                assert reward == pytest.approx(judged)
            else:
                assert reward == pytest.approx(sum(earned) / len(earned))
                # Where all rewards of a group are equal, verl divides its own rounding of float32 by 1e-6.
                assert advantage == pytest.approx(0.0, abs=1e-4 if len(set(earned)) > 1 else 0.02)
