"""The process that checks mathematical answers: JSON lines in, JSON lines out, until its input ends.

A line is [ground truth, answer]; what comes back is true, false, or null where the truth cannot be read.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys

SECONDS = 3
"""For each of: reading the ground truth, reading the answer, comparing them."""
MEMORY = 4 << 30
"""Bytes: an answer that needs more is wrong, and must not cost the trainer its own."""


def is_equal(truth: str, answer: str) -> bool | None:
    """Whether math-verify finds the answer equal to the truth; None where there is no truth to be had."""
    import math_verify

    boxed = truth if "\\boxed" in truth else f"\\boxed{{{truth}}}"
    gold = math_verify.parse(boxed, parsing_timeout=SECONDS)
    if not gold:
        return None
    found = math_verify.parse(answer, parsing_timeout=SECONDS)
    return bool(math_verify.verify(gold, found, timeout_seconds=SECONDS))


def main() -> None:
    """Serve until the parent closes the pipe, or dies."""
    with contextlib.suppress(ValueError, OSError):  # macOS has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)  # whatever a library prints must not look like an answer
        for line in sys.stdin:
            truth, answer = json.loads(line)
            out.write(json.dumps(is_equal(truth, answer)) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
