"""The tiny model, for all tests of the embedded judge."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_model import write_tiny_model


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny.gguf")
