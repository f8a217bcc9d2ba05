"""Query mutation: rewriting a question so that a target model answers it better, learned by reinforcement.

The batch functions need no extra package but their encoder's; environments and trainer come with
`pip install plaudit[mutation]`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from plaudit.install_command import install_command
from plaudit.mutation.batch_functions import (
    DEFAULT_REPLY,
    Mutated,
    TargetAnswer,
    abatch_encode_queries,
    abatch_mutate_queries,
    abatch_query_target_model,
    batch_encode_queries,
    batch_mutate_queries,
    batch_query_target_model,
    embedded_engine,
    offline_engine,
)
from plaudit.mutation.completion import Text
from plaudit.mutation.encoders import Encoded, Encoder, EndpointEncoder, StaticEncoder, default_encoder
from plaudit.mutation.episode import Rules
from plaudit.mutation.operators import KEEP, Operator, builtin_operators, check_operators, load_operators
from plaudit.mutation.outage import OutageWatch
from plaudit.mutation.questions import Item, builtin_questions, load_questions
from plaudit.mutation.rewrite_check import RewriteCheck
from plaudit.mutation.task import Models, MutationTask
from plaudit.mutation.training import Training

if TYPE_CHECKING:
    from plaudit.mutation.env import BatchedQueryMutationEnv, QueryMutationEnv
    from plaudit.mutation.mutation_trainer import train
    from plaudit.mutation.ppo import VectorAdapter

__all__ = [
    "DEFAULT_REPLY",
    "KEEP",
    "BatchedQueryMutationEnv",
    "Encoded",
    "Encoder",
    "EndpointEncoder",
    "Item",
    "Models",
    "Mutated",
    "MutationTask",
    "Operator",
    "OutageWatch",
    "QueryMutationEnv",
    "RewriteCheck",
    "Rules",
    "StaticEncoder",
    "TargetAnswer",
    "Text",
    "Training",
    "VectorAdapter",
    "abatch_encode_queries",
    "abatch_mutate_queries",
    "abatch_query_target_model",
    "batch_encode_queries",
    "batch_mutate_queries",
    "batch_query_target_model",
    "builtin_operators",
    "builtin_questions",
    "check_operators",
    "default_encoder",
    "embedded_engine",
    "load_operators",
    "load_questions",
    "offline_engine",
    "train",
]

_LATER = {
    "BatchedQueryMutationEnv": "env",
    "QueryMutationEnv": "env",
    "VectorAdapter": "ppo",
    "train": "mutation_trainer",
}
"""What needs Gymnasium or torch is imported when it is asked for."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "plaudit":
            raise
        command = install_command("plaudit[mutation]")
        raise ImportError(f"{name} needs {error.name}; run: {command}") from error
