"""The task that environments set: questions, operators, rules, and the models behind a step.

A step rewrites the query, has it answered and has the answer judged. Every environment awaits its own chain
of calls, so none waits for the slowest of a stage: one is judged while another is still rewritten.
A call that fails ends the chain, which says at which stage and why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from plaudit.engine import Engine
from plaudit.errors import ConfigError
from plaudit.judges.base import Judge, Panel
from plaudit.judges.check import check_judge
from plaudit.judges.scale import unit_score
from plaudit.mutation.batch_functions import (
    DEADLINE,
    TargetAnswer,
    abatch_encode_queries,
    abatch_mutate_queries,
    abatch_query_target_model,
)
from plaudit.mutation.completion import explain, report
from plaudit.mutation.encoders import Encoder
from plaudit.mutation.episode import FACTS, REJECTED, Rules, ScoredQuery, StepResult, bound
from plaudit.mutation.operators import Operator, builtin_operators, check_operators
from plaudit.mutation.questions import Item, builtin_questions
from plaudit.types import Sample

DEFAULT_RULES = Rules()


@dataclass(frozen=True, slots=True)
class Models:
    """Who rewrites, who answers, who judges and who embeds. One engine may do the first three."""

    rewriter: Engine
    target: Engine
    grader: Engine
    """Through which the judge asks."""
    judge: Judge | Panel
    encoder: Encoder
    rewrite_tokens: int = 256
    answer_tokens: int = 512
    deadline: float | None = DEADLINE
    """Seconds for one stage of one chain, after which it counts as failed."""


@dataclass(frozen=True, slots=True)
class MutationTask:
    """What is to be rewritten, by which operators and rules, with which models. Environments share one.

    MutationTask(Models(engine, engine, engine, judge=Reference(), encoder=StaticEncoder()))
    """

    models: Models
    questions: Sequence[Item] = field(default_factory=builtin_questions)
    operators: Sequence[Operator] = field(default_factory=builtin_operators)
    rules: Rules = DEFAULT_RULES
    dim: int = field(init=False)
    """Numbers in an embedding."""
    _starts: dict[Item, ScoredQuery] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        if not self.questions:
            raise ConfigError("are empty; use builtin_questions(), or your own file", setting="questions")
        check_operators(self.operators)
        check_judge(self.models.judge, for_rewards=True)
        object.__setattr__(self, "dim", self.models.encoder.dim)

    def __deepcopy__(self, memo: object) -> MutationTask:
        """Itself: Gymnasium copies the arguments of environments, and engines cannot be copied."""
        return self

    @property
    def size(self) -> int:
        """Numbers in an observation."""
        return self.dim + FACTS

    @property
    def bound(self) -> float:
        """The largest of them."""
        return bound(self.dim)

    # -- the calls behind a step, which any number of environments may await at once ----------------------

    async def start(self, item: Item) -> StepResult:
        """How well the question is answered as it stands: asked once, then remembered."""
        known = self._starts.get(item)
        if known is not None:
            return StepResult(known)
        attempt = await self._scored(item, item.question)
        if attempt.after is not None:
            self._starts[item] = attempt.after
        return attempt

    async def follow(self, item: Item, now: ScoredQuery, operator: Operator) -> StepResult:
        """Rewrite the present query, and see how well the target answers it then."""
        if operator.is_keep:
            return StepResult(now)
        models = self.models
        [mutated] = await abatch_mutate_queries(
            [now.query],
            operator,
            models.rewriter,
            references=[item.reference],
            max_tokens=models.rewrite_tokens,
            deadline=models.deadline,
        )
        if mutated.is_fallback:
            stage = REJECTED if mutated.is_rejected else "mutate"
            return StepResult(None, failed_at=stage, error=mutated.error or "")
        written = len(now.query) + len(mutated.query)
        if mutated.query == now.query:
            return StepResult(now, characters=written)
        return await self._scored(item, mutated.query, written=written)

    async def _scored(self, item: Item, query: str, *, written: int = 0) -> StepResult:
        """Answer, then judge; the embedding is made meanwhile."""
        encoding = asyncio.ensure_future(abatch_encode_queries([query], self.models.encoder))
        try:
            [answer] = await abatch_query_target_model(
                [query],
                self.models.target,
                max_tokens=self.models.answer_tokens,
                deadline=self.models.deadline,
            )
            if answer.is_fallback:
                return StepResult(None, failed_at="answer", error=answer.error or "")
            quality, error = await self._judged(item, answer)
            if error is not None:
                return StepResult(None, failed_at="judge", error=error)
            encoded = await encoding
        finally:
            encoding.cancel()
        if encoded.errors[0] is not None:
            return StepResult(None, failed_at="encode", error=encoded.errors[0])
        embedding = np.ascontiguousarray(encoded.vectors[0], dtype=np.float32)
        return StepResult(
            ScoredQuery(query, embedding, quality), characters=written + len(query) + len(answer.text)
        )

    async def _judged(self, item: Item, answer: TargetAnswer) -> tuple[float, str | None]:
        """The quality of an answer to the original question, however it was rewritten."""
        sample = Sample(item.question, answer.text, reference=item.reference)
        deadline = self.models.deadline
        (verdict,) = await self.models.grader.ascore([sample], self.models.judge, deadline=deadline)
        score = unit_score(verdict, self.models.judge)
        if score is None:
            error = explain(verdict, deadline) or f"no verdict ({verdict.status})"
            report("judging", [error], "the step earns nothing")
            return 0.0, error
        return score, None
