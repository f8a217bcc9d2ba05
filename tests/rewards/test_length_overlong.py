"""DAPO's soft overlong punishment."""

from __future__ import annotations

import math

import pytest
from complaints import about

from plaudit.errors import ConfigError
from plaudit.rewards import SoftOverlong


def test_it_is_nothing_then_a_line_then_minus_one() -> None:
    dapo = SoftOverlong(max_length=20480, cache=4096)
    lengths = [0, 16384, 18432, 20480, 30000]
    assert dapo.rewards(lengths) == pytest.approx([0, 0, -0.5, -1, -1])


@pytest.mark.parametrize(
    ("max_length", "cache", "field"),
    [(math.nan, 1, "max_length"), (100, 0, "cache"), (100, 200, "cache"), (0, 0, "max_length")],
)
def test_bad_settings_are_refused_by_name(max_length: float, cache: float, field: str) -> None:
    with pytest.raises(ConfigError, check=about(field)):
        SoftOverlong(max_length, cache)
