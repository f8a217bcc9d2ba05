"""plaudit: rewards from language-model judges, without the GPU waiting."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from plaudit.compute_score import acompute_score, compute_score

if TYPE_CHECKING:
    from plaudit.caches import Cache, MemoryCache, SqliteCache
    from plaudit.config import UNSET, Endpoint, EngineConfig, Price, Sampling, Secret
    from plaudit.engine import Engine
    from plaudit.errors import (
        BatchFailed,
        BudgetSpent,
        CacheError,
        ConfigError,
        CutOff,
        Declined,
        EndpointRefused,
        EngineClosed,
        JudgeError,
        KeyRefused,
        ModelNotFound,
        OutOfFiles,
        PlauditError,
        RateLimited,
        RequestRefused,
        SendAgain,
        TimedOut,
        TransientError,
        TransportFailed,
        Unreachable,
        UnreadableVerdict,
        Unsendable,
    )
    from plaudit.events import (
        BatchFinished,
        BatchStarted,
        BreakerChanged,
        CacheTrouble,
        CallFinished,
        CallStarted,
        CauseCount,
        EndpointLost,
        EndpointSummary,
        Event,
        LimitChanged,
        Observer,
        RetryPlanned,
        Summary,
        VerdictsReady,
    )
    from plaudit.judges import (
        Cascade,
        Checklist,
        Criterion,
        Expected,
        Group,
        Judge,
        Jury,
        Likelihood,
        Monitor,
        Pairwise,
        Panel,
        Question,
        Reference,
        Rubric,
        SplitChecklist,
        Yes,
        unit_score,
    )
    from plaudit.judges.file import load_judge
    from plaudit.observers.log import Log
    from plaudit.observers.progress import Progress
    from plaudit.observers.telemetry import OpenTelemetry
    from plaudit.observers.trackers import mlflow_scalars, tensorboard_scalars, wandb_scalars
    from plaudit.openai_manager import AsyncOpenAIManager, AsyncOpenAIWorker
    from plaudit.pending import Pending
    from plaudit.policy.fingerprint import get_request_hash
    from plaudit.report.verdict_table import verdicts_to_pandas
    from plaudit.service.remote_engine import connect
    from plaudit.types import (
        Cause,
        ChatRequest,
        EmbedRequest,
        Failure,
        GenerateRequest,
        LikelihoodRequest,
        Message,
        RateHeaders,
        Reply,
        Request,
        Sample,
        Source,
        Status,
        TokenChoice,
        Usage,
        Verdict,
    )

__all__ = [
    "UNSET",
    "AsyncOpenAIManager",
    "AsyncOpenAIWorker",
    "BatchFailed",
    "BatchFinished",
    "BatchStarted",
    "BreakerChanged",
    "BudgetSpent",
    "Cache",
    "CacheError",
    "CacheTrouble",
    "CallFinished",
    "CallStarted",
    "Cascade",
    "Cause",
    "CauseCount",
    "ChatRequest",
    "Checklist",
    "ConfigError",
    "Criterion",
    "CutOff",
    "Declined",
    "EmbedRequest",
    "Endpoint",
    "EndpointLost",
    "EndpointRefused",
    "EndpointSummary",
    "Engine",
    "EngineClosed",
    "EngineConfig",
    "Event",
    "Expected",
    "Failure",
    "GenerateRequest",
    "Group",
    "Judge",
    "JudgeError",
    "Jury",
    "KeyRefused",
    "Likelihood",
    "LikelihoodRequest",
    "LimitChanged",
    "Log",
    "MemoryCache",
    "Message",
    "ModelNotFound",
    "Monitor",
    "Observer",
    "OpenTelemetry",
    "OutOfFiles",
    "Pairwise",
    "Panel",
    "Pending",
    "PlauditError",
    "Price",
    "Progress",
    "Question",
    "RateHeaders",
    "RateLimited",
    "Reference",
    "Reply",
    "Request",
    "RequestRefused",
    "RetryPlanned",
    "Rubric",
    "Sample",
    "Sampling",
    "Secret",
    "SendAgain",
    "Source",
    "SplitChecklist",
    "SqliteCache",
    "Status",
    "Summary",
    "TimedOut",
    "TokenChoice",
    "TransientError",
    "TransportFailed",
    "Unreachable",
    "UnreadableVerdict",
    "Unsendable",
    "Usage",
    "Verdict",
    "VerdictsReady",
    "Yes",
    "acompute_score",
    "compute_score",
    "connect",
    "get_request_hash",
    "load_judge",
    "mlflow_scalars",
    "tensorboard_scalars",
    "unit_score",
    "verdicts_to_pandas",
    "wandb_scalars",
]

_HOMES = {
    "plaudit.report.verdict_table": "verdicts_to_pandas",
    "plaudit.caches": "Cache MemoryCache SqliteCache",
    "plaudit.config": "UNSET Endpoint EngineConfig Price Sampling Secret",
    "plaudit.engine": "Engine",
    "plaudit.errors": (
        "BatchFailed BudgetSpent CacheError ConfigError CutOff Declined EndpointRefused EngineClosed "
        "JudgeError KeyRefused ModelNotFound OutOfFiles PlauditError RateLimited RequestRefused SendAgain "
        "TimedOut TransientError TransportFailed Unreachable UnreadableVerdict Unsendable"
    ),
    "plaudit.events": (
        "BatchFinished BatchStarted BreakerChanged CacheTrouble CallFinished CallStarted CauseCount "
        "EndpointLost EndpointSummary Event LimitChanged Observer RetryPlanned Summary VerdictsReady"
    ),
    "plaudit.judges": (
        "Cascade Checklist Criterion Expected Group Judge Jury Likelihood Monitor Pairwise Panel Question "
        "Reference Rubric SplitChecklist Yes unit_score"
    ),
    "plaudit.judges.file": "load_judge",
    "plaudit.observers.log": "Log",
    "plaudit.observers.progress": "Progress",
    "plaudit.observers.telemetry": "OpenTelemetry",
    "plaudit.observers.trackers": "mlflow_scalars tensorboard_scalars wandb_scalars",
    "plaudit.openai_manager": "AsyncOpenAIManager AsyncOpenAIWorker",
    "plaudit.pending": "Pending",
    "plaudit.policy.fingerprint": "get_request_hash",
    "plaudit.service.remote_engine": "connect",
    "plaudit.types": (
        "Cause ChatRequest EmbedRequest Failure GenerateRequest LikelihoodRequest Message RateHeaders "
        "Reply Request Sample Source Status TokenChoice Usage Verdict"
    ),
}
"""Where each name is defined. A name is imported when it is first used: workers start in no time."""
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        error = AttributeError(f"module 'plaudit' has no attribute {name!r}")
        error.name, error.obj = name, sys.modules[__name__]  # for the interpreter's "Did you mean"
        raise error
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
