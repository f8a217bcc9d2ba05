"""Asking a model for something else than a judgement: the verdict is its whole reply.

So rewriting, answering and embedding get everything that judging has: the right concurrency, one call for
identical requests, the cache, retries, deadlines, several servers. A verdict here says nothing of quality:
its score is 1.0 where there is a reply, and its reason is that reply.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import re
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, ParamSpec, TypeVar

from plaudit._loop_thread import LoopThread
from plaudit.engine import Engine
from plaudit.errors import UnreadableVerdict
from plaudit.judges.base import Judge
from plaudit.judges.content import has_content
from plaudit.judges.parse import check_declined
from plaudit.judges.reply_objects import encodable
from plaudit.reasoning import without_reasoning
from plaudit.types import Cause, ChatRequest, Message, Reply, Sample, Status, Verdict
from plaudit.value_check import check_fields

log = logging.getLogger("plaudit")
P = ParamSpec("P")
T = TypeVar("T")

CLOSE_WITHIN = 10.0
TRUNCATED = "truncated"
"""The part of a verdict that tells a reply cut off at its token limit (1.0) from a whole one (absent)."""
CAUSES_KEPT = 1000
OVERLOADED = (
    "give it more slots (OLLAMA_NUM_PARALLEL for Ollama), add a server, use fewer environments, "
    "or raise the deadline"
)


@dataclass(frozen=True, slots=True)
class Text(Judge):
    """Asks for a text: the sample's prompt goes out as it is, and the verdict's reason is what came back."""

    max_tokens: int = 512
    """Tokens the reply may have."""
    temperature: float = 0.0
    """0.0 makes runs repeatable; identical requests share one reply at any temperature."""

    version: ClassVar[str] = "text-1"
    """The request says everything but how its reply is read."""
    scale: ClassVar[tuple[float, float]] = (0.0, 1.0)
    """1 where there is a reply."""

    def __post_init__(self) -> None:
        check_fields(self)

    def render(self, sample: Sample) -> ChatRequest:
        """The sample's prompt as a conversation to be continued."""
        prompt = sample.prompt
        messages: tuple[Message, ...] = (
            ({"role": "user", "content": prompt},) if isinstance(prompt, str) else tuple(prompt)
        )
        return ChatRequest(messages, self.max_tokens, self.temperature, is_fixed=True)

    def parse(self, reply: Reply, sample: Sample) -> Verdict:  # noqa: ARG002 - the protocol's signature
        """The reply without its reasoning. Raises UnreadableVerdict where nothing is left of it."""
        check_declined(reply)
        is_truncated = reply.finish_reason == "length"
        text = encodable(without_reasoning(reply.text).strip())
        if not has_content(text):
            is_thinking = is_truncated and reply.text.strip()
            raise UnreadableVerdict(
                f"the model was still reasoning after {self.max_tokens} tokens; raise max_tokens"
                if is_thinking
                else "the reply is empty"
            )
        return Verdict.of(reply, 1.0, text, {TRUNCATED: 1.0} if is_truncated else {})


Completion = tuple[Verdict, str | None]
"""What came of a question: the verdict that carries the reply; or the error, with what to do about it."""


async def complete(
    engine: Engine, samples: Sequence[Sample], judge: Judge, deadline: float | None
) -> list[Completion]:
    """Put questions to a model, and wait for every outcome, in order."""
    verdicts = await engine.ascore(samples, judge, deadline=deadline)
    return [(verdict, explain(verdict, deadline)) for verdict in verdicts]


def blocking(work: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The same function for callers that do not await. Ctrl-C calls it off."""

    @functools.wraps(work)
    def wait(*args: P.args, **kwargs: P.kwargs) -> T:
        thread = LoopThread("plaudit-waiting")  # of its own: the caller's may run an event loop
        try:
            return thread.run(lambda: work(*args, **kwargs))
        finally:
            thread.end(call_off, within=CLOSE_WITHIN)

    wait.__name__ = work.__name__.removeprefix("a")
    return wait


async def call_off() -> None:
    """Cancel whatever else is under way on this event loop."""
    under_way = asyncio.all_tasks() - {asyncio.current_task()}
    for task in under_way:
        task.cancel()
    await asyncio.gather(*under_way, return_exceptions=True)


def explain(verdict: Verdict, deadline: float | None) -> str | None:
    """Why there is no reply in this verdict, and what to do; None where there is one."""
    if verdict.status is Status.OK:
        return None
    if verdict.status is Status.DEADLINE:
        within = f"within {deadline:g} s" if deadline is not None else "in time"
        return f"no reply {within}: the server is too slow, or says too many requests; {OVERLOADED}"
    error = verdict.error or f"the call failed ({verdict.status})"
    return f"{error}; {OVERLOADED}" if verdict.cause is Cause.RATE_LIMITED else error


def report(what: str, errors: Iterable[str | None], instead: str) -> None:
    """Log failures, each cause once: a training of a million steps must not fill the disk."""
    for error, count in Counter(error for error in errors if error).items():
        cause = (what, _NUMBER.sub("#", error))
        if cause in _reported:
            continue
        if len(_reported) >= CAUSES_KEPT:
            _reported.clear()  # bounded: better a line too many than memory without end
        _reported.add(cause)
        times = f" ({count} times)" if count > 1 else ""
        log.warning("%s failed%s, and %s: %s", what, times, instead, error)


def forget_reports() -> None:
    """Report every cause anew, as for a new run in the same process."""
    _reported.clear()


_NUMBER = re.compile(r"\d[\d.,]*")
_reported: set[tuple[str, str]] = set()
