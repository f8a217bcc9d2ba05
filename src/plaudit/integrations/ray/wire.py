"""The way from a process to the actor with the engine, wherever in the cluster that is.

The actor is found by its name. Whoever does not find it starts it; if it has died, so does the next who needs
it. It belongs to the process that started it, and ends with that process or its training.
"""

from __future__ import annotations

import asyncio
import logging
import os
import uuid
from collections.abc import Sequence
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from plaudit.errors import ConfigError, PlauditError
from plaudit.events import Summary
from plaudit.integrations.ray.actor import NAMESPACE, EngineActor, Hello
from plaudit.integrations.ray.desk import PATIENCE
from plaudit.integrations.ray.parcel import Answers, Parcel
from plaudit.integrations.ray.terms import Terms

log = logging.getLogger("plaudit")

CONNECT_WITHIN = 120.0
"""Seconds in which the actor must have come up; Ray takes some of them to notice that a node has died."""
LOOK_AGAIN = 0.25
SILENT_AFTER = 30.0
"""Seconds past the due answer after which an actor that says nothing is taken for lost."""
STOP_WITHIN = 12.0
VISITORS = 100_000
"""Calls that the actor may have open at once: each waiting process has one."""
HEAD = "node:__internal_head__"


class EngineLost(PlauditError):
    """The actor died, or says nothing: what it has not answered has to be asked again."""


class RayWire:
    """The way from this process to the actor of that name."""

    def __init__(self, name: str, terms: Terms, *, node: str | None, is_detached: bool) -> None:
        self._name = name
        self._terms = terms
        self._node = node
        self._is_detached = is_detached
        self._me = uuid.uuid4().hex
        self._visitor = ""
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
            except ConfigError:
                raise
            except (EngineLost, ValueError) as error:
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
        # Another name each time: a call that still waits over there must not fetch what is for this one.
        self._visitor = uuid.uuid4().hex
        if hello.started_by != self._me:
            self._own = None

    async def send(self, parcels: Sequence[Parcel], *, is_all: bool) -> bool:
        return bool(await _answer(self._actor.receive.remote(self._visitor, parcels, is_all)))

    async def collect(self) -> Answers | None:
        answers: Answers | None = await _answer(self._actor.collect.remote(self._visitor), PATIENCE)
        return answers

    async def summary(self) -> Summary:
        found: Summary = await _answer(self._actor.summary.remote())
        return found

    async def stop(self, *, is_for_good: bool = True) -> None:
        """End the actor for everybody; what is finished is stored first."""
        if self._actor is None or not ray.is_initialized():
            return
        try:
            async with asyncio.timeout(STOP_WITHIN):
                await self._actor.stop.remote(is_for_good)
        except (RayError, TimeoutError) as error:
            log.warning("the shared engine did not stop by itself: %s", error)
        ray.kill(self._actor)
        self._actor = self._own = None  # not before: without its owner's handle, the actor dies at once

    async def close(self) -> None:
        if self._own is not None and not self._is_detached:
            await self.stop(is_for_good=False)
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
                    scheduling_strategy=NodeAffinitySchedulingStrategy(_place(self._node), soft=False),
                )
                .remote(self._name, self._terms, self._me)
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


def check_node(node: str | None) -> None:
    """Raise ConfigError where the cluster has no such node."""
    known = [one["NodeID"] for one in ray.nodes() if one["Alive"]] if node is not None else []
    if node is not None and node not in known:
        raise ConfigError(f"node={node!r} is no node of this cluster; it has {', '.join(known)}")


def default_name(share: str | None) -> str:
    """The actor's name: the training's own, unless it asked to share one."""
    if share is None:
        return f"engine-of-job-{ray.get_runtime_context().get_job_id()}"
    if not share.strip():
        raise ConfigError(f"share={share!r} is no name; give one that the trainings agree on, like 'judge'")
    return f"shared-{share}"


def _place(wanted: str | None) -> str:
    """The node to run on: the one that is wanted, while it lives; else the one that Ray itself depends on.

    Firmly: Ray takes a soft wish of an actor that needs no CPU for none at all. If the node dies, so does the
    actor for good, and who starts the next one chooses again.
    """
    nodes = [node for node in ray.nodes() if node["Alive"]]
    heads = [node["NodeID"] for node in nodes if HEAD in node["Resources"]]
    known = [node["NodeID"] for node in nodes]
    return str(wanted if wanted in known else [*heads, *known][0])


async def _answer(reference: Any, patience: float = 0.0) -> Any:
    try:
        async with asyncio.timeout(patience + SILENT_AFTER):
            return await reference
    except RayTaskError as error:
        if isinstance(error.cause, ConfigError):
            raise error.cause from None
        if isinstance(error.cause, PlauditError):
            raise EngineLost(str(error.cause)) from None
        raise EngineLost(f"a bug in the shared engine: {error.cause!r}") from error
    except (RayError, TimeoutError) as error:
        raise EngineLost(str(error) or f"no answer for {patience + SILENT_AFTER:g} s") from error


_was_forked_with_ray = False


def _note_fork() -> None:
    global _was_forked_with_ray  # noqa: PLW0603 - a fact about this process
    _was_forked_with_ray = _was_forked_with_ray or bool(ray.is_initialized())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)
