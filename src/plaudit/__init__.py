"""plaudit: rewards from language-model judges, without the GPU waiting."""

from plaudit.config import Endpoint, Price, Secret
from plaudit.core.fingerprint import get_request_hash
from plaudit.engine import Engine
from plaudit.errors import ConfigError, PlauditError
from plaudit.events import Summary
from plaudit.judges import Group, Jury, Pairwise, Rubric
from plaudit.openai_manager import AsyncOpenAIManager
from plaudit.pending import Pending
from plaudit.types import ChatRequest, Reply, Sample, Source, Status, Usage, Verdict

__all__ = [
    "AsyncOpenAIManager",
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
    "get_request_hash",
]
