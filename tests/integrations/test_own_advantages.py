"""The advantages that verl and TRL compute themselves are those of the formulas on docs/frameworks.md."""

from __future__ import annotations

import pytest
from own_advantages import check_own_advantages

pytestmark = pytest.mark.trainers


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["verl", "trl"])
def test_the_frameworks_own_code_gives_what_its_formula_does(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_own_advantages(name, monkeypatch)
