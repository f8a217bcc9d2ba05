"""Judges: what is asked of a language model about a sample, and how its answer is read."""

from plaudit.judges.base import Judge, Panel, Question
from plaudit.judges.cascade import Cascade
from plaudit.judges.checklist import Checklist, SplitChecklist
from plaudit.judges.criteria import Criterion
from plaudit.judges.expected import Expected
from plaudit.judges.fence import fence
from plaudit.judges.group import Group
from plaudit.judges.jury import Jury
from plaudit.judges.likelihood import Likelihood
from plaudit.judges.monitor import Monitor
from plaudit.judges.pairwise import Pairwise
from plaudit.judges.parse import single_object
from plaudit.judges.reference import Reference
from plaudit.judges.rubric import Rubric
from plaudit.judges.scale import Scale, unit_score
from plaudit.judges.yes import Yes

__all__ = [
    "Cascade",
    "Checklist",
    "Criterion",
    "Expected",
    "Group",
    "Judge",
    "Jury",
    "Likelihood",
    "Monitor",
    "Pairwise",
    "Panel",
    "Question",
    "Reference",
    "Rubric",
    "Scale",
    "SplitChecklist",
    "Yes",
    "fence",
    "single_object",
    "unit_score",
]
