"""The three batch functions: encode queries, rewrite them, put prompts to the target model, all at once.

Nothing that fails raises, and nothing that failed passes for a result: a rewrite that did not come about
keeps the original query, an answer that did not come is the default reply, and both say so (`is_fallback`,
`error`). Each function has a twin with an `a` in front, for callers with an event loop of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from plaudit.engine import Engine
from plaudit.errors import ConfigError
from plaudit.judges.template import prompt_file
from plaudit.mutation.ask import TRUNCATED, Asked, Text, aask, ask
from plaudit.mutation.encoders import Encoded, Encoder, default_encoder
from plaudit.mutation.offline import offline_engine
from plaudit.mutation.operators import Operator
from plaudit.mutation.rewrite import NO_USAGE, PACKAGE, Mutated, mutated, rewriting
from plaudit.mutation.trouble import report
from plaudit.types import Message, Sample, Source, Usage

DEFAULT_REPLY = "(no answer)"
"""What stands in for a target's answer that did not come."""
DEADLINE = 300.0
"""Seconds after which a batch goes on without what is missing, so that no server can stop a training."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The target's answer to a prompt, or the default reply where none came."""

    text: str
    is_fallback: bool = False
    """Whether no answer came, so that `text` is the default reply. Never judge that one."""
    error: str | None = None
    is_truncated: bool = False
    """Whether the answer ends at its token limit."""
    usage: Usage = NO_USAGE
    source: Source = Source.RULE


def batch_encode_queries(queries: Sequence[str], encoder: Encoder | None = None) -> Encoded:
    """The embeddings of many queries. Without an encoder: static embeddings on this machine."""
    _check_texts("query", queries)
    return _reported((encoder or default_encoder()).encode(list(queries)))


async def abatch_encode_queries(queries: Sequence[str], encoder: Encoder | None = None) -> Encoded:
    """The same for callers with an event loop."""
    _check_texts("query", queries)
    return _reported(await (encoder or default_encoder()).aencode(list(queries)))


def batch_mutate_queries(
    queries: Sequence[str],
    operators: Operator | Sequence[Operator],
    engine: Engine | None = None,
    *,
    references: Sequence[str | None] | None = None,
    max_tokens: int = 256,
    temperature: float = 0.0,
    deadline: float | None = DEADLINE,
) -> list[Mutated]:
    """Rewrite each query by its operator, in parallel; one operator may serve all.

    references  right answers, where known: a rewrite that gives one away is not used
    max_tokens  for one rewrite
    deadline    seconds for the whole batch; None waits as long as it takes

    Without an engine the embedded model rewrites.
    """
    work = _Rewriting.of(queries, operators, references)
    if not work.samples:
        return work.finish([])
    judge = Text(max_tokens, temperature)
    return work.finish(ask(engine or offline_engine(), work.samples, judge, deadline))


async def abatch_mutate_queries(
    queries: Sequence[str],
    operators: Operator | Sequence[Operator],
    engine: Engine | None = None,
    *,
    references: Sequence[str | None] | None = None,
    max_tokens: int = 256,
    temperature: float = 0.0,
    deadline: float | None = DEADLINE,
) -> list[Mutated]:
    """The same for callers with an event loop."""
    work = _Rewriting.of(queries, operators, references)
    if not work.samples:
        return work.finish([])
    judge = Text(max_tokens, temperature)
    if engine is None:
        engine = await asyncio.to_thread(offline_engine)
    return work.finish(await aask(engine, work.samples, judge, deadline))


def batch_query_target_model(
    prompts: Sequence[str],
    engine: Engine | None = None,
    *,
    system: str | None = None,
    default_reply: str = DEFAULT_REPLY,
    max_tokens: int = 512,
    temperature: float = 0.0,
    deadline: float | None = DEADLINE,
) -> list[Answer]:
    """Put each prompt to the target model, in parallel, and give its answers in order.

    system         what the target is told first; None for a plain request to answer, "" for nothing
    default_reply  what stands in for an answer that did not come
    max_tokens     for one answer
    deadline       seconds for the whole batch; None waits as long as it takes

    Without an engine the embedded model answers.
    """
    samples = _answering(prompts, system)
    if not samples:
        return []
    judge = Text(max_tokens, temperature)
    return _answers(ask(engine or offline_engine(), samples, judge, deadline), default_reply)


async def abatch_query_target_model(
    prompts: Sequence[str],
    engine: Engine | None = None,
    *,
    system: str | None = None,
    default_reply: str = DEFAULT_REPLY,
    max_tokens: int = 512,
    temperature: float = 0.0,
    deadline: float | None = DEADLINE,
) -> list[Answer]:
    """The same for callers with an event loop."""
    samples = _answering(prompts, system)
    if not samples:
        return []
    judge = Text(max_tokens, temperature)
    if engine is None:
        engine = await asyncio.to_thread(offline_engine)
    return _answers(await aask(engine, samples, judge, deadline), default_reply)


# -- what goes out ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rewriting:
    """Queries with their operators; those that need a call have a sample."""

    queries: Sequence[str]
    operators: Sequence[Operator]
    references: Sequence[str | None]
    samples: Sequence[Sample]

    @staticmethod
    def of(
        queries: Sequence[str],
        operators: Operator | Sequence[Operator],
        references: Sequence[str | None] | None,
    ) -> _Rewriting:
        _check_texts("query", queries)
        if isinstance(operators, Operator):
            operators = [operators] * len(queries)
        references = [None] * len(queries) if references is None else references
        for name, given in (("operators", operators), ("references", references)):
            if len(given) != len(queries):
                raise ConfigError(
                    f"there are {len(given)} {name} for {len(queries)} queries; give one for each query"
                )
        samples = [rewriting(*pair) for pair in zip(queries, operators, strict=True) if not pair[1].is_keep]
        return _Rewriting(queries, operators, references, samples)

    def finish(self, asked: Sequence[Asked]) -> list[Mutated]:
        """The outcome for every query, from what came of those that were asked about."""
        came = iter(asked)
        results = [
            Mutated(query, operator.name)
            if operator.is_keep
            else mutated(query, operator, *next(came), reference=reference)
            for query, operator, reference in zip(self.queries, self.operators, self.references, strict=True)
        ]
        report("rewriting", [result.error for result in results], "the original query is kept")
        return results


def _answering(prompts: Sequence[str], system: str | None) -> list[Sample]:
    _check_texts("prompt", prompts)
    if system is None:
        system = prompt_file("answer_system", PACKAGE)
    first: list[Message] = [{"role": "system", "content": system}] if system else []
    return [Sample([*first, {"role": "user", "content": prompt}], "") for prompt in prompts]


def _check_texts(what: str, texts: Sequence[str]) -> None:
    if isinstance(texts, str):
        raise ConfigError(f"one {what} is given where a list is expected; write [{what}]")
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ConfigError(f"{what} {number} is {type(text).__name__}, not text; decode it first")


# -- what comes back --------------------------------------------------------------------------------------


def _answers(asked: Sequence[Asked], default_reply: str) -> list[Answer]:
    results = [
        Answer(
            text=verdict.reason if error is None else default_reply,
            is_fallback=error is not None,
            error=error,
            is_truncated=TRUNCATED in verdict.parts,
            usage=verdict.usage,
            source=verdict.source,
        )
        for verdict, error in asked
    ]
    report("answering", [result.error for result in results], "the default reply stands in")
    return results


def _reported(encoded: Encoded) -> Encoded:
    report("encoding", encoded.errors, "a vector of zeros stands in")
    return encoded
