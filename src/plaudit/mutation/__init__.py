"""Query mutation: rewriting a question so that a target model answers it better, learned by reinforcement.

The batch functions need no extra package but their encoder's; environments and trainer come with
`pip install plaudit[mutation]`.
"""

from plaudit.mutation.ask import Text
from plaudit.mutation.batch import (
    DEFAULT_REPLY,
    Answer,
    abatch_encode_queries,
    abatch_mutate_queries,
    abatch_query_target_model,
    batch_encode_queries,
    batch_mutate_queries,
    batch_query_target_model,
)
from plaudit.mutation.check import Check
from plaudit.mutation.encoders import Encoded, Encoder, EndpointEncoder, StaticEncoder, default_encoder
from plaudit.mutation.offline import embedded_engine, offline_engine
from plaudit.mutation.operators import KEEP, Operator, builtin_operators, check_operators, load_operators
from plaudit.mutation.questions import Item, builtin_questions, load_questions
from plaudit.mutation.rewrite import Mutated

__all__ = [
    "DEFAULT_REPLY",
    "KEEP",
    "Answer",
    "Check",
    "Encoded",
    "Encoder",
    "EndpointEncoder",
    "Item",
    "Mutated",
    "Operator",
    "StaticEncoder",
    "Text",
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
]
