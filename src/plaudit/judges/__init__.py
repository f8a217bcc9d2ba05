"""Judges: what is asked of a language model about a sample, and how its answer is read."""

from plaudit.judges.base import Judge
from plaudit.judges.expected import Expected
from plaudit.judges.monitor import Monitor
from plaudit.judges.reference import Reference
from plaudit.judges.rubric import Rubric
from plaudit.judges.yes import Yes

__all__ = ["Expected", "Judge", "Monitor", "Reference", "Rubric", "Yes"]
