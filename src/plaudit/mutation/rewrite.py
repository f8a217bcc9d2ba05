"""One query and its operator: what the rewriter is asked, and what becomes of its reply. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from plaudit.judges.fence import fence
from plaudit.judges.template import fill, prompt_file
from plaudit.mutation.ask import TRUNCATED
from plaudit.mutation.check import tidy
from plaudit.mutation.operators import Operator
from plaudit.types import Message, Sample, Source, Usage, Verdict

PACKAGE = "plaudit.mutation"
NO_USAGE = Usage()
SHOWN = 20_000
"""Characters of a query that the rewriter sees; of a longer one, head and tail."""


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
    rewrite = tidy(verdict.reason)
    fault = None if error else _fault(query, rewrite, operator, verdict, reference)
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


def _fault(
    query: str, rewrite: str, operator: Operator, verdict: Verdict, reference: str | None
) -> str | None:
    if TRUNCATED in verdict.parts:
        return "the rewrite was cut off at its token limit; raise max_tokens"
    told = f"{operator.instruction}\n{prompt_file('rewrite_after', PACKAGE)}"
    return operator.check.fault(query, rewrite, instruction=told, reference=reference)
