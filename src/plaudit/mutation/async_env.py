"""One environment as coroutines, and the runners that drive many of them for callers without an event loop.

On a thread of its own an environment goes on while the trainer computes.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import queue
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from plaudit._loop_thread import LoopThread
from plaudit.errors import ConfigError
from plaudit.mutation.completion import CLOSE_WITHIN, call_off
from plaudit.mutation.episode import (
    Episode,
    Info,
    ScoredQuery,
    StepResult,
    Transition,
    Vector,
    advance,
    facts,
    observation,
)
from plaudit.mutation.questions import Item
from plaudit.mutation.task import MutationTask
from plaudit.scheduling.alarm import LOOK_UP
from plaudit.value_check import check_number

Work = Coroutine[Any, Any, Any]
Outcome = asyncio.Future[Any]


class AsyncEnv:
    """One environment: its own chance, its own episode."""

    def __init__(self, task: MutationTask, random: np.random.Generator, *, looks_ahead: bool = False) -> None:
        """`looks_ahead`: ask about the next question while the last step of this one is under way."""
        self.task = task
        self.random = random
        self.episode: Episode | None = None
        self._looks_ahead = looks_ahead
        self._ahead: tuple[Item, asyncio.Task[StepResult]] | None = None

    def reseed(self, random: np.random.Generator) -> None:
        self.random = random
        self._ahead = None  # it runs to its end, and its result is remembered by the task

    async def reset(self) -> tuple[Vector, Info]:
        """A new question, answered and judged as it stands: the observation and the facts."""
        (item, attempted), self._ahead = self._ahead or self._begun(), None
        attempt = await attempted
        start = attempt.after or ScoredQuery(item.question, np.zeros(self.task.dim, np.float32), None)
        self.episode = Episode(item, start, start, has_failed=attempt.after is None)
        info = facts(self.episode) | {"error": attempt.error, "failed_at": attempt.failed_at}
        return self.observe(), info

    async def step(self, action: int) -> Transition:
        """Apply an operator; the episode moves on."""
        episode, rules = self._current(), self.task.rules
        operator = self.task.operators[self.checked(action)]
        if self._looks_ahead and episode.step + 1 >= rules.max_steps:
            self._ahead = self._begun()
        if episode.now.quality is None:  # the calls failed when it began: nothing to compare with yet
            again = await self.task.start(episode.item)
            if again.after is not None:
                episode = replace(episode, start=again.after, now=again.after)
            attempt = again
        if episode.now.quality is not None:
            attempt = await self.task.follow(episode.item, episode.now, operator)
        moved = advance(episode, operator.name, attempt, rules, is_last=operator.is_keep)
        self.episode = moved.episode
        return moved

    def checked(self, action: int) -> int:
        """The action. Raises ConfigError where there is no such operator, or no episode to apply it to."""
        self._current()
        check_number("action", action, low=0, high=len(self.task.operators) - 1)
        return action

    def observe(self) -> Vector:
        return observation(self._current(), self.task.rules)

    def snapshot(self) -> dict[str, Any]:
        """Everything that the next steps depend on, as plain data."""
        episode = self._current()
        return {
            "random": self.random.bit_generator.state,
            "item": self.task.questions.index(episode.item),
            "start": _packed(episode.start),
            "now": _packed(episode.now),
            "step": episode.step,
            "has_failed": episode.has_failed,
            "total": episode.total,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        self._ahead = None
        self.random.bit_generator.state = saved["random"]
        self.episode = Episode(
            self.task.questions[saved["item"]],
            _unpacked(saved["start"]),
            _unpacked(saved["now"]),
            step=saved["step"],
            has_failed=saved["has_failed"],
            total=saved["total"],
        )

    def _current(self) -> Episode:
        if self.episode is None:
            raise ConfigError("the environment has no episode yet; call reset() first")
        return self.episode

    def _begun(self) -> tuple[Item, asyncio.Task[StepResult]]:
        """The next question, on its way to its answer and verdict."""
        item = self.task.questions[int(self.random.integers(len(self.task.questions)))]
        return item, asyncio.create_task(self.task.start(item))


def generator(seed: int | None) -> np.random.Generator:
    """A source of chance, as Gymnasium makes it from the same seed."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))


def _packed(scored: ScoredQuery) -> dict[str, Any]:
    embedding = base64.b64encode(scored.embedding.tobytes()).decode()
    return {"query": scored.query, "embedding": embedding, "quality": scored.quality}


def _unpacked(saved: dict[str, Any]) -> ScoredQuery:
    embedding = np.frombuffer(base64.b64decode(saved["embedding"]), dtype=np.float32)
    return ScoredQuery(saved["query"], embedding, saved["quality"])


class ChainRunner(Protocol):
    """Starts chains under a number, and hands their results back."""

    def start(self, number: int, work: Work) -> None:
        """Begin a chain; returns at once."""

    def finished(self) -> tuple[int, Outcome]:
        """Wait for the next chain to finish: its number, and the future that holds its result or error."""

    def interrupt(self, error: Exception) -> None:
        """Make `finished` raise this error. For any thread."""

    def close(self) -> None:
        """Call off what is under way. Safe to call twice."""


class ThreadRunner:
    """Runs chains on a thread of its own, which the first of them starts."""

    def __init__(self) -> None:
        self._thread: LoopThread | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._done: queue.SimpleQueue[tuple[int, Outcome] | Exception] = queue.SimpleQueue()

    def start(self, number: int, work: Work) -> None:
        if self._thread is None or not self._thread.is_alive:
            self._thread = LoopThread("plaudit-chains")
        self._thread.post(functools.partial(self._begin, number, work))

    def finished(self) -> tuple[int, Outcome]:
        while True:
            try:
                done = self._done.get(timeout=LOOK_UP)
            except queue.Empty:
                continue
            if isinstance(done, Exception):
                raise done
            return done

    def interrupt(self, error: Exception) -> None:
        self._done.put(error)

    def close(self) -> None:
        if self._thread is not None:
            self._thread.end(call_off, within=CLOSE_WITHIN)  # also what chains have begun ahead
            self._thread = None

    def _begin(self, number: int, work: Work) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(functools.partial(self._end, number))

    def _end(self, number: int, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._done.put((number, task))
