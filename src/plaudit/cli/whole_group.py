"""Lines of one group go to the judge together, though the input is read piece by piece.

The lines of a group stand next to each other; the last group read so far may not be complete yet.
"""

from __future__ import annotations

from plaudit.setup.json_lines import Line

MAX_LINES = 8192
"""Lines of one group beyond which it is not held back any longer."""


class WholeGroups:
    """Holds the last group back until something else follows, or nothing does."""

    def __init__(self) -> None:
        self._held: list[Line] = []

    def __len__(self) -> int:
        return len(self._held)

    def add(self, lines: list[Line], *, is_end: bool) -> list[Line]:
        """The lines that may go now: those of all groups that are complete."""
        lines = self._held + lines
        self._held = []
        if is_end or not lines or lines[-1].sample.group is None or len(lines) >= MAX_LINES:
            return lines
        start = len(lines) - 1
        while start and lines[start - 1].sample.group == lines[-1].sample.group:
            start -= 1
        self._held = lines[start:]
        return lines[:start]
