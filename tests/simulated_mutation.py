"""A query mutation task without models: which operator is right depends on the kind of question.

Its rewriter, target and judge are programs behind real engines, so everything but the models is the real
thing. For tests, for benchmarks, and to see whether a change to the trainer still learns.

    with SimulatedMutation() as practice:
        history = train(practice.task, Training(num_env_steps=20_000), Path("run"))
"""

from __future__ import annotations

import asyncio
import functools
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from types import TracebackType
from typing import Any

import msgspec
import numpy as np

from plaudit.config import Endpoint
from plaudit.engine import Engine
from plaudit.errors import EngineClosed, RequestRefused, Unreachable
from plaudit.judges.rubric import Rubric
from plaudit.mutation.async_env import Outcome, Work
from plaudit.mutation.encoders import Encoded
from plaudit.mutation.episode import Episode, Rules, advance
from plaudit.mutation.operators import Operator, builtin_operators
from plaudit.mutation.outage import OutageWatch
from plaudit.mutation.questions import Item, builtin_questions
from plaudit.mutation.task import DEFAULT_RULES, Models, MutationTask
from plaudit.types import ChatRequest, Reply, Request, Usage

RIGHT = {"fact": "keep", "arithmetic": "decompose", "definition": "simplify", "reasoning": "add_context"}
"""The operator that helps, by kind of question; the others do harm."""
HELP, HARM = 0.5, 0.1
JUDGE = Rubric("Is the answer correct?", scale=(0, 10))


class WordEncoder:
    """Texts as bags of hashed words: no model, and questions of a kind look alike where their words do."""

    def __init__(self, dim: int = 64) -> None:
        self.dim = dim

    def encode(self, texts: Sequence[str]) -> Encoded:
        """One row of length 1 for each text."""
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in re.findall(r"\w+", text.lower()):
                number = int.from_bytes(blake2b(word.encode(), digest_size=4).digest(), "big")
                row[number % self.dim] += 1.0 if number >> 31 else -1.0
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
        return Encoded(rows, (None,) * len(texts))

    async def aencode(self, texts: Sequence[str]) -> Encoded:
        """The same for callers with an event loop."""
        return self.encode(texts)


@dataclass(slots=True)
class Faults:
    """What goes wrong in the world. Mutable, so that a test can let a server die in the middle."""

    refused: float = 0.0
    """The share of requests that are refused whenever they are made."""
    is_down: bool = False
    """Whether no server listens."""


@dataclass(frozen=True, slots=True)
class ProgramTransport:
    """A transport whose model is a function from the request's messages to a text."""

    answer: Callable[[Sequence[str]], str]
    faults: Sequence[Faults]

    async def send(self, request: Request) -> Reply:
        assert isinstance(request, ChatRequest)
        messages = [message["content"] for message in request.messages]
        for one in self.faults:
            if one.is_down:
                raise Unreachable("no server listens")
            if _chance("\n".join(messages)) < one.refused:
                raise RequestRefused("the simulated server refuses this request")
        return Reply(self.answer(messages), model="practice", usage=Usage(1, 1))

    async def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True, slots=True)
class Programs:
    """What the programs know: a query is a question behind the names of the operators applied to it."""

    questions: Sequence[Item]
    operators: Sequence[Operator]

    def rewrite(self, messages: Sequence[str]) -> str:
        """The operator's name in front of the question."""
        system, shown = messages[0], messages[-1]
        name = next(one.name for one in self.operators if one.instruction and one.instruction in system)
        return f"{name}: {_between_tags(shown)}"

    def answer(self, messages: Sequence[str]) -> str:
        """An answer that says how good it is."""
        return f"An answer of quality {self.quality(messages[-1]):.1f}."

    def grade(self, messages: Sequence[str]) -> str:
        """The quality that the answer states."""
        found = re.search(r"An answer of quality ([\d.]+)\.", messages[-1])
        score = round(10 * float(found[1])) if found else 0
        return msgspec.json.encode({"reason": "as it says", "score": score}).decode()

    def quality(self, query: str) -> float:
        """How well the target answers a query."""
        names = "|".join(operator.name for operator in self.operators)
        found = re.match(rf"((?:(?:{names}): )*)(.*)", query, re.DOTALL)
        assert found is not None
        applied: list[str] = found[1].replace(":", "").split()
        question: str = found[2]
        kind = next((item.kind for item in self.questions if item.question == question), "")
        right = RIGHT.get(kind, "keep")
        wrong: int = sum(name != right for name in applied)
        value = 0.2 + round(2 * _chance(question)) / 10 - HARM * wrong
        if right in (*applied, "keep"):
            value += HELP
        return max(0.0, round(value, 1))


@dataclass(slots=True)
class SimulatedMutation:
    """The world with its engines; a context manager."""

    questions: Sequence[Item] = field(default_factory=builtin_questions)
    rules: Rules = DEFAULT_RULES
    faults: Faults = field(default_factory=Faults)
    """Of all three programs."""
    outage: OutageWatch = field(default_factory=OutageWatch)
    """Watches all three engines."""
    task: MutationTask = field(init=False)
    _faults: dict[str, Faults] = field(init=False, default_factory=dict)
    _engines: list[Engine] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        operators = builtin_operators()
        world = Programs(self.questions, operators)
        rewriter, target, grader = (
            self._engine(program) for program in (world.rewrite, world.answer, world.grade)
        )
        models = Models(rewriter, target, grader, JUDGE, WordEncoder())
        self.task = MutationTask(models, self.questions, operators, self.rules)

    def __enter__(self) -> SimulatedMutation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for engine in self._engines:
            engine.close()

    def break_down(self, program: str) -> None:
        """Let one of `rewrite`, `answer` and `grade` refuse everything from now on."""
        self._faults[program].refused = 1.0

    def _engine(self, program: Callable[[Sequence[str]], str]) -> Engine:
        own = self._faults[program.__name__] = Faults()
        transport = ProgramTransport(program, (self.faults, own))
        endpoint = Endpoint(f"http://{program.__name__}.invalid/v1", model="practice")
        engine = Engine(
            endpoints=[endpoint],
            cache="memory",
            transport=lambda _: transport,
            hedge=False,
            observers=[self.outage.observer()],
        )
        self._engines.append(engine)
        return engine


def _between_tags(shown: str) -> str:
    found = re.search(
        r"^<question-([A-Z]+)[^>]*>\n?(.*?)\n?</question-\1[^>]*>", shown, re.DOTALL | re.MULTILINE
    )
    assert found is not None, "the rewriter's prompt shows the question between tags"
    return found[2].strip()


def _chance(text: str) -> float:
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest(), "big") / 2.0**32


def optimum(task: MutationTask) -> float:
    """The best mean reward of an episode: for each question the best of one rewrite, or none."""

    async def best(item: Item) -> float:
        started = await task.start(item)
        assert started.after is not None
        episode = Episode(item, started.after, started.after)
        rewards = [0.0]
        for operator in task.operators:
            attempt = await task.follow(item, episode.now, operator)
            rewards.append(advance(episode, operator.name, attempt, task.rules, is_last=True).reward)
        return max(rewards)

    async def mean() -> float:
        found = [await best(item) for item in task.questions]
        return sum(found) / len(found)

    return asyncio.run(mean())


class LoopRunner:
    """Runs chains on a loop that turns only while `finished` waits: for virtual time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._tasks: set[asyncio.Task[Any]] = set()
        self._done: deque[tuple[int, Outcome]] = deque()
        self._interruption: asyncio.Future[None] = loop.create_future()

    def start(self, number: int, work: Work) -> None:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(functools.partial(self._end, number))

    def finished(self) -> tuple[int, Outcome]:
        while not self._done:
            if not self._tasks:
                raise EngineClosed("no chain is under way, so none will finish; start one first")
            waited = {*self._tasks, self._interruption}
            self.loop.run_until_complete(asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED))
            if self._interruption.done():
                self._interruption.result()
        return self._done.popleft()

    def interrupt(self, error: Exception) -> None:
        self.loop.call_soon_threadsafe(self._interruption.set_exception, error)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks and not self.loop.is_closed():
            self.loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))

    def _end(self, number: int, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._done.append((number, task))
