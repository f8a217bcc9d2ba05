"""plaudit: rewards from language-model judges, without the GPU waiting."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from plaudit.compute_score import acompute_score as acompute_score, compute_score as compute_score

if TYPE_CHECKING:
    from plaudit.caches import Cache as Cache, MemoryCache as MemoryCache, SqliteCache as SqliteCache
    from plaudit.config import (
        UNSET as UNSET,
        Endpoint as Endpoint,
        EngineConfig as EngineConfig,
        Price as Price,
        Sampling as Sampling,
        Secret as Secret,
    )
    from plaudit.engine import Engine as Engine
    from plaudit.errors import (
        BatchFailed as BatchFailed,
        BudgetSpent as BudgetSpent,
        CacheError as CacheError,
        ConfigError as ConfigError,
        CutOff as CutOff,
        Declined as Declined,
        EndpointRefused as EndpointRefused,
        EngineClosed as EngineClosed,
        JudgeError as JudgeError,
        KeyRefused as KeyRefused,
        ModelNotFound as ModelNotFound,
        OutOfFiles as OutOfFiles,
        PlauditError as PlauditError,
        RateLimited as RateLimited,
        RequestRefused as RequestRefused,
        SendAgain as SendAgain,
        TimedOut as TimedOut,
        TransientError as TransientError,
        TransportFailed as TransportFailed,
        Unreachable as Unreachable,
        UnreadableVerdict as UnreadableVerdict,
        Unsendable as Unsendable,
    )
    from plaudit.events import (
        BatchFinished as BatchFinished,
        BatchStarted as BatchStarted,
        BreakerChanged as BreakerChanged,
        CacheTrouble as CacheTrouble,
        CallFinished as CallFinished,
        CallStarted as CallStarted,
        CauseCount as CauseCount,
        EndpointLost as EndpointLost,
        EndpointSummary as EndpointSummary,
        Event as Event,
        LimitChanged as LimitChanged,
        Observer as Observer,
        RetryPlanned as RetryPlanned,
        Summary as Summary,
        VerdictsReady as VerdictsReady,
    )
    from plaudit.judges import (
        Cascade as Cascade,
        Checklist as Checklist,
        Criterion as Criterion,
        Expected as Expected,
        Group as Group,
        Judge as Judge,
        Jury as Jury,
        Likelihood as Likelihood,
        Monitor as Monitor,
        Pairwise as Pairwise,
        Panel as Panel,
        Question as Question,
        Reference as Reference,
        Rubric as Rubric,
        SplitChecklist as SplitChecklist,
        Yes as Yes,
        unit_score as unit_score,
    )
    from plaudit.judges.file import load_judge as load_judge
    from plaudit.observers.log import Log as Log
    from plaudit.observers.progress import Progress as Progress
    from plaudit.observers.telemetry import OpenTelemetry as OpenTelemetry
    from plaudit.observers.trackers import (
        mlflow_scalars as mlflow_scalars,
        tensorboard_scalars as tensorboard_scalars,
        wandb_scalars as wandb_scalars,
    )
    from plaudit.openai_manager import (
        AsyncOpenAIManager as AsyncOpenAIManager,
        AsyncOpenAIWorker as AsyncOpenAIWorker,
    )
    from plaudit.pending import Pending as Pending
    from plaudit.policy.fingerprint import get_request_hash as get_request_hash
    from plaudit.report.verdict_table import verdicts_to_pandas as verdicts_to_pandas
    from plaudit.service.remote_engine import connect as connect
    from plaudit.types import (
        Cause as Cause,
        ChatRequest as ChatRequest,
        EmbedRequest as EmbedRequest,
        Failure as Failure,
        GenerateRequest as GenerateRequest,
        LikelihoodRequest as LikelihoodRequest,
        Message as Message,
        RateHeaders as RateHeaders,
        Reply as Reply,
        Request as Request,
        Sample as Sample,
        Source as Source,
        Status as Status,
        TokenChoice as TokenChoice,
        Usage as Usage,
        Verdict as Verdict,
    )

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
__all__ = ["acompute_score", "compute_score", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        error = AttributeError(f"module 'plaudit' has no attribute {name!r}")
        error.name, error.obj = name, sys.modules[__name__]  # for the interpreter's "Did you mean"
        raise error
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
