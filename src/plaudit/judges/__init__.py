"""Judges: what is asked of a language model about a sample, and how its answer is read."""

from plaudit.judges.base import Judge
from plaudit.judges.rubric import Rubric
from plaudit.judges.yes import Yes

__all__ = ["Judge", "Rubric", "Yes"]
