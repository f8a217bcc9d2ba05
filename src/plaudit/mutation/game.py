"""The game that environments play: the questions, the operators, the rules, and one player's turns."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from plaudit.errors import ConfigError
from plaudit.mutation.chain import Chain, Models
from plaudit.mutation.episode import (
    FACTS,
    Attempt,
    Episode,
    Info,
    Rules,
    Scored,
    Transition,
    Vector,
    advance,
    bound,
    facts,
    observation,
)
from plaudit.mutation.operators import Operator, builtin_operators, check_operators
from plaudit.mutation.questions import Item, builtin_questions

DEFAULT_RULES = Rules()


@dataclass(frozen=True, slots=True)
class Game:
    """What is played, and with which models. Environments share one.

    Game(Models(rewriter=engine, target=engine, grader=engine, judge=Reference(), encoder=StaticEncoder()))
    """

    models: Models
    questions: Sequence[Item] = field(default_factory=builtin_questions)
    operators: Sequence[Operator] = field(default_factory=builtin_operators)
    rules: Rules = DEFAULT_RULES
    chain: Chain = field(init=False, repr=False, compare=False)
    dim: int = field(init=False)
    """Numbers in an embedding."""

    def __post_init__(self) -> None:
        if not self.questions:
            raise ConfigError(
                "there is no question to rewrite; use builtin_questions(), or a file of your own"
            )
        check_operators(self.operators)
        object.__setattr__(self, "chain", Chain(self.models))
        object.__setattr__(self, "dim", self.models.encoder.dim)

    def __deepcopy__(self, memo: object) -> Game:
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


class Player:
    """One environment: its own chance, its own episode."""

    def __init__(self, game: Game, random: np.random.Generator, *, looks_ahead: bool = False) -> None:
        """`looks_ahead`: ask about the next question while the last step of this one is under way."""
        self.game = game
        self.random = random
        self.episode: Episode | None = None
        self._looks_ahead = looks_ahead
        self._next: Item | None = None
        self._ahead: asyncio.Task[Attempt] | None = None

    def reseed(self, random: np.random.Generator) -> None:
        """Begin anew with another source of chance."""
        self.random = random
        self._forget()

    async def reset(self) -> tuple[Vector, Info]:
        """A new question, answered and judged as it stands: the observation and the facts."""
        item = self._next or self._draw()
        ahead = self._ahead or asyncio.ensure_future(self.game.chain.start(item))
        self._next = self._ahead = None
        attempt = await ahead
        start = attempt.after or Scored(item.question, np.zeros(self.game.dim, np.float32), None)
        self.episode = Episode(item, start, start, has_failed=attempt.after is None)
        info = facts(self.episode) | {"error": attempt.error, "failed_at": attempt.failed_at}
        return self.observe(), info

    async def step(self, action: int) -> Transition:
        """Apply an operator; the episode moves on."""
        episode, rules = self._playing(), self.game.rules
        if not 0 <= action < len(self.game.operators):
            raise ConfigError(f"there is no action {action}; use 0 to {len(self.game.operators) - 1}")
        operator = self.game.operators[action]
        if self._looks_ahead and episode.step + 1 >= rules.max_steps:
            self._next = self._draw()
            self._ahead = asyncio.ensure_future(self.game.chain.start(self._next))
        if episode.now.quality is None:  # the calls failed when it began: nothing to compare with yet
            again = await self.game.chain.start(episode.item)
            if again.after is not None:
                episode = replace(episode, start=again.after, now=again.after)
            attempt = again
        if episode.now.quality is not None:
            attempt = await self.game.chain.follow(episode.item, episode.now, operator)
        moved = advance(episode, operator.name, attempt, rules, is_last=operator.is_keep)
        self.episode = moved.episode
        return moved

    def observe(self) -> Vector:
        """What the policy sees now."""
        return observation(self._playing(), self.game.rules)

    def snapshot(self) -> dict[str, Any]:
        """Everything that the next steps depend on, as plain data."""
        episode = self._playing()
        return {
            "random": self.random.bit_generator.state,
            "item": self.game.questions.index(episode.item),
            "start": _packed(episode.start),
            "now": _packed(episode.now),
            "step": episode.step,
            "has_failed": episode.has_failed,
            "total": episode.total,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on where a snapshot was taken."""
        self._forget()
        self.random.bit_generator.state = saved["random"]
        self.episode = Episode(
            self.game.questions[saved["item"]],
            _unpacked(saved["start"]),
            _unpacked(saved["now"]),
            step=saved["step"],
            has_failed=saved["has_failed"],
            total=saved["total"],
        )

    def _playing(self) -> Episode:
        if self.episode is None:
            raise ConfigError("the environment has no episode yet; call reset() first")
        return self.episode

    def _draw(self) -> Item:
        return self.game.questions[int(self.random.integers(len(self.game.questions)))]

    def _forget(self) -> None:
        self._next = None
        if self._ahead is not None:
            self._ahead = None  # it runs to its end, and its result is remembered by the chain


def generator(seed: int | None) -> np.random.Generator:
    """A source of chance, as Gymnasium makes it from the same seed."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))


def _packed(scored: Scored) -> dict[str, Any]:
    embedding = base64.b64encode(scored.embedding.tobytes()).decode()
    return {"query": scored.query, "embedding": embedding, "quality": scored.quality}


def _unpacked(saved: dict[str, Any]) -> Scored:
    embedding = np.frombuffer(base64.b64decode(saved["embedding"]), dtype=np.float32)
    return Scored(saved["query"], embedding, saved["quality"])
