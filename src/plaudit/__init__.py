"""plaudit: rewards from language-model judges, without the GPU waiting."""

from plaudit.compute_score import acompute_score, compute_score
from plaudit.config import Endpoint, Price, Secret
from plaudit.core.fingerprint import get_request_hash
from plaudit.engine import Engine
from plaudit.errors import BatchFailed, ConfigError, PlauditError
from plaudit.events import Summary
from plaudit.judges import Group, Jury, Pairwise, Rubric
from plaudit.openai_manager import AsyncOpenAIManager
from plaudit.pending import Pending
from plaudit.types import ChatRequest, Reply, Sample, Source, Status, Usage, Verdict

__all__ = [
    "AsyncOpenAIManager",
    "BatchFailed",
    "ChatRequest",
    "ConfigError",
    "Endpoint",
    "Engine",
    "Group",
    "Jury",
    "Pairwise",
    "Pending",
    "PlauditError",
    "Price",
    "Reply",
    "Rubric",
    "Sample",
    "Secret",
    "Source",
    "Status",
    "Summary",
    "Usage",
    "Verdict",
    "acompute_score",
    "compute_score",
    "get_request_hash",
]
