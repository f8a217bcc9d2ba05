"""The pages whose code needs torch, verl, TRL, Ray or the encoder of query mutation: all of it runs, too."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import Block, name_of, programs, run

pytestmark = pytest.mark.trainers


@pytest.mark.parametrize("program", programs("trainers"), ids=name_of)
def test_the_code_of_a_page_runs_from_its_first_line_to_its_last(
    program: list[Block], tmp_path: Path
) -> None:
    run(program, tmp_path)
