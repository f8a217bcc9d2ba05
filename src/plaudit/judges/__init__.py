"""Judges: what is asked of a language model about a sample, and how its answer is read."""

from plaudit.judges.base import Judge
from plaudit.judges.rubric import Rubric

__all__ = ["Judge", "Rubric"]
