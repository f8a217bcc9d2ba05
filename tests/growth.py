"""Whether work grows in proportion to a text: four times as much must not take sixteen times as long."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

ROUNDS = 3
MORE_ROUNDS = 30
"""On a busy machine, until the shortest times are those of the work alone."""
PROPORTIONAL = 9.0
"""Between four, which is proportional, and sixteen, which is quadratic."""
UNSEEN_S = 0.005
"""What a clock, a cache or an interrupt may add."""


def slowdown(work: Callable[[int], object], length: int) -> float:
    """How many times as long `length` takes as a quarter of it, in CPU time, each at its shortest."""
    whole = quarter = math.inf
    ratio = math.inf
    for number in range(MORE_ROUNDS):
        quarter = min(quarter, _seconds(work, length // 4))
        whole = min(whole, _seconds(work, length))
        ratio = (whole - UNSEEN_S) / quarter
        if number + 1 >= ROUNDS and ratio < PROPORTIONAL:
            break
    return ratio


def _seconds(work: Callable[[int], object], length: int) -> float:
    start = time.process_time()
    work(length)
    return time.process_time() - start
