"""plaudit: rewards from language-model judges, without the GPU waiting."""

from plaudit.compute_score import acompute_score, compute_score
from plaudit.config import Endpoint, Price, Secret
from plaudit.engine import Engine
from plaudit.errors import BatchFailed, ConfigError, PlauditError
from plaudit.events import Summary
from plaudit.judges import (
    Cascade,
    Checklist,
    Criterion,
    Expected,
    Group,
    Jury,
    Monitor,
    Pairwise,
    Reference,
    Rubric,
    SplitChecklist,
    Yes,
)
from plaudit.judges.file import load_judge
from plaudit.openai_manager import AsyncOpenAIManager
from plaudit.pending import Pending
from plaudit.policy.fingerprint import get_request_hash
from plaudit.types import ChatRequest, Reply, Sample, Source, Status, Usage, Verdict

__all__ = [
    "AsyncOpenAIManager",
    "BatchFailed",
    "Cascade",
    "ChatRequest",
    "Checklist",
    "ConfigError",
    "Criterion",
    "Endpoint",
    "Engine",
    "Expected",
    "Group",
    "Jury",
    "Monitor",
    "Pairwise",
    "Pending",
    "PlauditError",
    "Price",
    "Reference",
    "Reply",
    "Rubric",
    "Sample",
    "Secret",
    "Source",
    "SplitChecklist",
    "Status",
    "Summary",
    "Usage",
    "Verdict",
    "Yes",
    "acompute_score",
    "compute_score",
    "get_request_hash",
    "load_judge",
]
