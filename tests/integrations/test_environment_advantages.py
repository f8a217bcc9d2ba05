"""The advantages that frameworks of environments compute are those of the formulas on docs/frameworks.md."""

from __future__ import annotations

import nest_asyncio
import pytest
from own_advantages import check_own_advantages

pytestmark = pytest.mark.environments


@pytest.mark.parametrize("name", ["areal", "art", "atropos", "tinker_cookbook"])
def test_the_frameworks_own_code_gives_what_its_formula_does(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nest_asyncio, "apply", lambda: None)  # ART and AReaL want different event loops
    check_own_advantages(name, monkeypatch)
