"""plaudit: rewards from language-model judges, without the GPU waiting."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from plaudit.compute_score import acompute_score, compute_score

if TYPE_CHECKING:
    from plaudit.config import Endpoint, EngineConfig, Price, Secret
    from plaudit.engine import Engine
    from plaudit.errors import BatchFailed, ConfigError, PlauditError
    from plaudit.events import Summary
    from plaudit.judges import (
        Cascade,
        Checklist,
        Criterion,
        Expected,
        Group,
        Judge,
        Jury,
        Monitor,
        Pairwise,
        Panel,
        Question,
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
    "EngineConfig",
    "Expected",
    "Group",
    "Judge",
    "Jury",
    "Monitor",
    "Pairwise",
    "Panel",
    "Pending",
    "PlauditError",
    "Price",
    "Question",
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

_HOMES = {
    "plaudit.config": "Endpoint EngineConfig Price Secret",
    "plaudit.engine": "Engine",
    "plaudit.errors": "BatchFailed ConfigError PlauditError",
    "plaudit.events": "Summary",
    "plaudit.judges": (
        "Cascade Checklist Criterion Expected Group Judge Jury Monitor Pairwise Panel Question Reference "
        "Rubric SplitChecklist Yes"
    ),
    "plaudit.judges.file": "load_judge",
    "plaudit.openai_manager": "AsyncOpenAIManager",
    "plaudit.pending": "Pending",
    "plaudit.policy.fingerprint": "get_request_hash",
    "plaudit.types": "ChatRequest Reply Sample Source Status Usage Verdict",
}
"""Where each name is defined. A name is imported when it is first used: workers start in no time."""
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'plaudit' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
