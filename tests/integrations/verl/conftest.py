"""The heavy frameworks' own warnings are theirs to mend."""

from __future__ import annotations

import hypothesis  # noqa: F401 - its plugin does so after the last test, which fails now and then beside torch
import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("trainers") and "/verl/" in item.path.as_posix():
            item.add_marker(pytest.mark.filterwarnings("ignore"))
