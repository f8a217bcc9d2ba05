"""Warnings of the heavy frameworks' own are theirs to mend."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("trainers") and "/verl/" in item.path.as_posix():
            item.add_marker(pytest.mark.filterwarnings("ignore"))
