"""Both ends of the wire, as Ray has them: the actor that holds the one engine, and the way to it.

The actor is found by its name, wherever it runs. Whoever does not find it starts it; if it dies, so does the
next who needs it. It belongs to the process that started it, and ends with that process's training.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import ray
from ray.exceptions import RayActorError
from ray.experimental import internal_kv
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from plaudit.errors import ConfigError, PlauditError
from plaudit.events import Summary
from plaudit.integrations.ray.desk import PATIENCE, Desk
from plaudit.integrations.ray.ledger import EVERY, Ledger
from plaudit.integrations.ray.parcel import Answers, Parcel
from plaudit.integrations.ray.terms import Terms

log = logging.getLogger("plaudit")
T = TypeVar("T")

NAMESPACE = "plaudit"
CONNECT_WITHIN = 120.0
"""Seconds in which the actor must have come up; Ray takes some of them to notice that a node has died."""
LOOK_AGAIN = 0.25
SILENT_AFTER = 30.0
"""Seconds past the due answer after which an actor that says nothing is taken for lost."""
STOP_WITHIN = 12.0
VISITORS = 100_000
"""Calls that the actor may have open at once: each waiting process has one."""
HEAD = "node:__internal_head__"


@dataclass(frozen=True, slots=True)
class Hello:
    """How the actor introduces itself."""

    differences: tuple[str, ...]
    started_by: str


class EngineActor:
    """One engine for all who know its name. Every method is quick, or waits without holding others up."""

    def __init__(self, name: str, terms: Terms, started_by: str) -> None:
        self._name = name
        self._terms = terms
        self._started_by = started_by
        self._desk: Desk | None = None
        self._ledger: Ledger | None = None
        self._writing: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return "plaudit"  # how Ray marks the lines this actor logs

    async def hello(self, terms: Terms) -> Hello:
        """Whether these terms are those the engine runs on."""
        return Hello(tuple(self._terms.differences(terms)), self._started_by)

    async def receive(self, visitor: str, parcels: Sequence[Parcel], is_all: bool) -> bool:
        return self._opened().receive(visitor, parcels, is_all=is_all)

    async def collect(self, visitor: str) -> Answers | None:
        return await self._opened().collect(visitor)

    async def summary(self) -> Summary:
        return self._opened().summary()

    async def stop(self) -> None:
        """Store what is finished and free everything, before the process goes."""
        if self._desk is not None:
            await self._desk.close()
        if self._writing is not None and self._ledger is not None:
            self._writing.cancel()
            self._ledger.end()

    def _opened(self) -> Desk:
        if self._desk is None:  # not in __init__, which has no event loop
            terms = self._terms
            if terms.budget is None and not terms.is_limited:
                self._desk = Desk(terms.open)
            else:
                ledger = self._ledger = Ledger(ClusterValue(self._name))
                open_engine = functools.partial(terms.open, ledger, spent=ledger.entry.spent)
                self._desk = Desk(open_engine, hold=ledger.hold if terms.is_limited else 0.0)
                self._writing = asyncio.get_running_loop().create_task(_write(ledger))
        return self._desk


class ClusterValue:
    """A value that Ray keeps on the head node, under the actor's name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def get(self) -> bytes | None:
        found: bytes | None = internal_kv._internal_kv_get(self._name, namespace=NAMESPACE)
        return found

    def put(self, value: bytes) -> None:
        internal_kv._internal_kv_put(self._name, value, overwrite=True, namespace=NAMESPACE)

    def delete(self) -> None:
        internal_kv._internal_kv_del(self._name, namespace=NAMESPACE)


async def _write(ledger: Ledger) -> None:
    while True:
        await asyncio.sleep(EVERY)
        ledger.write()


class RayWire:
    """The way from this process to the actor of that name."""

    def __init__(self, name: str, terms: Terms, *, node: str | None, is_detached: bool) -> None:
        self._name = name
        self._terms = terms
        self._node = node
        self._is_detached = is_detached
        self._visitor = uuid.uuid4().hex
        self._actor: Any = None
        self._own: Any = None
        """The handle of an actor that this process started: the actor lives no longer than that."""

    async def connect(self) -> None:
        loop = asyncio.get_running_loop()
        give_up = loop.time() + CONNECT_WITHIN
        while True:
            check_running()
            try:
                actor = self._find()
                hello: Hello = await _answer(actor.hello.remote(self._terms))
                break
            except (RayActorError, TimeoutError, ValueError) as error:
                # Starting, restarting, dying, or its name not free yet: it will be one or the other soon.
                if loop.time() > give_up:
                    raise PlauditError(
                        f"the actor {self._name!r} did not come up within {CONNECT_WITHIN:g} s ({error}); "
                        "see `ray status` and `ray list actors`"
                    ) from error
            await asyncio.sleep(LOOK_AGAIN)
        if hello.differences:
            raise ConfigError(
                f"the shared engine {self._name!r} runs with other settings: {'; '.join(hello.differences)}. "
                "Use the same settings everywhere, give this training another name (share=...), or stop the "
                "one that runs (SharedEngine.stop())"
            )
        self._actor = actor
        if hello.started_by != self._visitor:
            self._own = None

    async def send(self, parcels: Sequence[Parcel], *, is_all: bool) -> bool:
        return bool(await _answer(self._actor.receive.remote(self._visitor, parcels, is_all)))

    async def collect(self) -> Answers | None:
        answers: Answers | None = await _answer(self._actor.collect.remote(self._visitor), PATIENCE)
        return answers

    async def summary(self) -> Summary:
        found: Summary = await _answer(self._actor.summary.remote())
        return found

    async def stop(self) -> None:
        """End the actor for everybody; what is finished is stored first."""
        if self._actor is None or not ray.is_initialized():
            return
        try:
            async with asyncio.timeout(STOP_WITHIN):
                await self._actor.stop.remote()
        except (RayActorError, TimeoutError) as error:
            log.warning("the shared engine did not stop by itself: %s", error)
        ray.kill(self._actor)
        self._actor = self._own = None  # not before: without its owner's handle, the actor dies at once

    async def close(self) -> None:
        if self._own is not None and not self._is_detached:
            await self.stop()
        self._actor = self._own = None

    def _find(self) -> Any:
        try:
            return ray.get_actor(self._name, namespace=NAMESPACE)
        except ValueError:
            self._own = (
                ray.remote(EngineActor)
                .options(
                    name=self._name,
                    namespace=NAMESPACE,
                    get_if_exists=True,  # of several that start it at once, one does
                    lifetime="detached" if self._is_detached else None,
                    num_cpus=0,
                    max_restarts=-1,
                    max_concurrency=VISITORS,
                    scheduling_strategy=NodeAffinitySchedulingStrategy(self._node or _head(), soft=True),
                )
                .remote(self._name, self._terms, self._visitor)
            )
            return self._own


def check_running() -> None:
    """Raise ConfigError, with the remedy, where this process has no Ray."""
    if _was_forked_with_ray:
        raise ConfigError(
            "this process was forked from one that uses Ray, and Ray does not survive a fork; "
            "start it as a Ray task or actor, or with multiprocessing's 'spawn'"
        )
    if not ray.is_initialized():
        raise ConfigError(
            "Ray is not running in this process: call ray.init() (or ray.init(address='auto') on a cluster) "
            "before SharedEngine(...); for one process, plaudit.Engine does the same without Ray"
        )


def default_name(share: str | None) -> str:
    """The actor's name: the training's own, unless it asked to share one."""
    if share is None:
        return f"engine-of-job-{ray.get_runtime_context().get_job_id()}"
    if not share.strip():
        raise ConfigError(f"share={share!r} is no name; give one that the trainings agree on, like 'judge'")
    return f"shared-{share}"


def _head() -> str:
    """The node that a cluster cannot lose anyway."""
    nodes = [node for node in ray.nodes() if node["Alive"]]
    heads = [node["NodeID"] for node in nodes if HEAD in node["Resources"]]
    return str(heads[0] if heads else nodes[0]["NodeID"])


async def _answer(reference: Any, patience: float = 0.0) -> Any:
    async with asyncio.timeout(patience + SILENT_AFTER):
        return await reference


_was_forked_with_ray = False


def _note_fork() -> None:
    global _was_forked_with_ray  # noqa: PLW0603 - a fact about this process
    _was_forked_with_ray = _was_forked_with_ray or bool(ray.is_initialized())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)
