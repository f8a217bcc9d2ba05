"""A judge that refuses its key, to see whether that is said before anything is generated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from loopback import INSTANT, loopback

from plaudit.errors import BatchFailed


@contextmanager
def refused_before_generating() -> Iterator[dict[str, Any]]:
    """Options of a judge that refuses its key; what is done with them has to raise that."""
    with (
        loopback(INSTANT.replace(api_key="sk-right")) as server,
        pytest.raises(BatchFailed, match=r"will never answer: .* 401"),
    ):
        yield {"url": server.url, "model": "m", "api_key": "sk-wrong", "cache": None}
