"""What needs a framework says how to get it, where that is not there."""

from __future__ import annotations

import importlib
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "leaf", "name", "framework", "says"),
    [
        (
            "plaudit.integrations.ray",
            "shared",
            "SharedEngine",
            "ray",
            r'needs Ray; run: .*pip install "plaudit\[ray\]"',
        ),
        ("plaudit.integrations.verl", "reward_loop", "RewardManager", "verl", r"pip install 'verl>=0\.7\.1'"),
        (
            "plaudit.mutation",
            "vector_env",
            "BatchedQueryMutationEnv",
            "gymnasium",
            r'BatchedQueryMutationEnv needs gymnasium; run: .*pip install "plaudit\[mutation\]"',
        ),
    ],
)
def test_a_missing_framework_is_named_with_its_remedy(
    module: str, leaf: str, name: str, framework: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"{module}.{leaf}", raising=False)
    monkeypatch.setitem(sys.modules, framework, None)
    with pytest.raises(ImportError, match=says):
        getattr(importlib.import_module(module), name)


def test_what_is_not_there_at_all_is_an_attribute_error() -> None:
    for module in ("plaudit.integrations.ray", "plaudit.mutation"):
        with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
            importlib.import_module(module).Nothing  # noqa: B018
