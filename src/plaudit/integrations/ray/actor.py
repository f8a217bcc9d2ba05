"""The Ray actor that holds the shared engine, and the connection by which any process reaches it.

The actor is found by its name. A process that does not find it starts it, as does the next one that needs it
after it has died. It belongs to the process that started it, and ends with that process or its training.
"""

from __future__ import annotations

import asyncio
import logging
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError
from ray.experimental import internal_kv
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from plaudit.config import EngineConfig
from plaudit.engine import Engine
from plaudit.errors import ConfigError, EngineClosed, PlauditError
from plaudit.events import Observer, Summary
from plaudit.integrations.ray.engine_server import LONG_POLL, EngineServer
from plaudit.integrations.ray.ledger import EVERY, Ledger
from plaudit.integrations.ray.messages import Message, Results

log = logging.getLogger("plaudit")
NAMESPACE = "plaudit"
CONNECT_WITHIN = 120.0
"""Seconds in which the actor must have come up; Ray takes some of them to notice that a node has died."""
LOOK_AGAIN = 0.25
SILENT_AFTER = 30.0
"""Seconds past the due reply after which an actor that does not reply is taken for lost."""
STOP_WITHIN = 12.0
MAX_CALLS = 100_000
"""Calls that the actor may have open at once: each waiting process has one."""
HEAD = "node:__internal_head__"


@dataclass(frozen=True, slots=True)
class ConnectReply:
    """The actor's reply to a process that connects."""

    differences: tuple[str, ...]
    started_by: str


class EngineActor:
    """The engine of all processes that know its name. A method that waits blocks no other."""

    def __init__(self, name: str, config: EngineConfig, started_by: str) -> None:
        self._name = name
        self._config = config
        self._started_by = started_by
        self._server: EngineServer | None = None
        self._ledger: Ledger | None = None
        self._writing: asyncio.Task[None] | None = None
        self._is_stopping = False

    def __repr__(self) -> str:
        return "plaudit"  # how Ray marks the lines this actor logs

    async def hello(self, config: EngineConfig, client_id: str) -> ConnectReply:
        """Admit a process whose configuration is the engine's. Raises what is wrong with the engine's own."""
        if self._is_stopping:
            raise EngineClosed("the shared engine is stopping")
        server, differences = self._opened(), tuple(self._config.differences(config))
        if not differences:
            server.admit(client_id)
        return ConnectReply(differences, self._started_by)

    async def config(self) -> EngineConfig:
        return self._opened().config

    async def receive(self, client_id: str, messages: Sequence[Message]) -> None:
        self._opened().receive(client_id, messages)

    async def collect(self, client_id: str) -> Results:
        return await self._opened().collect(client_id)

    async def summary(self) -> Summary:
        return self._opened().summary()

    async def stop(self, is_for_good: bool) -> None:
        """Store what is finished and free everything, before the process goes.

        For good: an engine that is started later under this name begins with a whole budget.
        """
        self._is_stopping = True
        if self._server is not None:
            await self._server.close()
        if self._writing is not None and self._ledger is not None:
            self._writing.cancel()
            await asyncio.to_thread(self._ledger.end if is_for_good else self._ledger.write)

    def _opened(self) -> EngineServer:
        if self._server is None:  # not in __init__, which has no event loop
            config = self._config
            if config.budget is None and not config.has_rates:
                self._server = EngineServer(lambda watch: Engine.from_config(config, observers=[watch]))
            else:
                ledger = self._ledger = Ledger(ClusterValue(self._name))
                hold = ledger.hold if config.has_rates else 0.0
                self._server = EngineServer(lambda watch: _open_engine(config, ledger, watch), hold=hold)
                self._writing = asyncio.get_running_loop().create_task(_write(ledger))
        return self._server


def _open_engine(config: EngineConfig, ledger: Ledger, watch: Observer) -> Engine:
    """An engine that goes on where the ledger says: what an earlier one has spent is gone."""
    if config.budget is not None:
        config = replace(config, budget=max(0.0, config.budget - ledger.entry.spent))
    return Engine.from_config(config, observers=[watch, ledger], ledger=ledger.reserve)


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
        try:
            await asyncio.to_thread(ledger.write)
        except Exception as error:  # noqa: BLE001 - Ray has many; the next entry says it all again
            log.warning("the amount spent could not be saved: %s", error)


class EngineLost(PlauditError):
    """The actor died or does not reply: what is open has to be sent again."""


class ActorConnection:
    """The connection from this process to the actor of that name."""

    def __init__(self, name: str, config: EngineConfig, node: str | None, is_detached: bool) -> None:
        self._name = name
        self._config = config
        self._node = node
        self._is_detached = is_detached
        self._me = uuid.uuid4().hex
        self._client_id = ""
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
                # A new id each time: a call that still waits there must not fetch the results of this one.
                self._client_id = uuid.uuid4().hex
                hello: ConnectReply = await _reply(actor.hello.remote(self._config, self._client_id))
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
        if hello.started_by != self._me:
            self._own = None

    async def send(self, messages: Sequence[Message]) -> None:
        await _reply(self._actor.receive.remote(self._client_id, messages))

    async def collect(self) -> Results:
        results: Results = await _reply(self._actor.collect.remote(self._client_id), LONG_POLL)
        return results

    async def summary(self) -> Summary:
        found: Summary = await _reply(self._actor.summary.remote())
        return found

    async def stop(self, *, is_for_good: bool = True) -> None:
        """End the actor for all processes; what is finished is stored first."""
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
                    get_if_exists=True,  # of several processes that start it at once, one does
                    lifetime="detached" if self._is_detached else None,
                    num_cpus=0,
                    max_restarts=-1,
                    max_concurrency=MAX_CALLS,
                    scheduling_strategy=NodeAffinitySchedulingStrategy(_node_for(self._node), soft=False),
                )
                .remote(self._name, self._config, self._me)
            )
            return self._own


def join_cluster() -> None:
    """Join the cluster that RAY_ADDRESS names, or begin one here, unless this process has one."""
    if ray.is_initialized():
        return
    try:
        ray.init(log_to_driver=False)
    except ConnectionError:
        address = os.environ.get("RAY_ADDRESS", "")
        raise ConfigError(
            f"there is no Ray cluster at RAY_ADDRESS={address}; start one with `ray start --head`, or unset "
            "the variable to start one here"
        ) from None


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
    known = [one["NodeID"] for one in ray.nodes() if one["Alive"]]
    if node is not None and node not in known:
        raise ConfigError(
            f"is not a node of this cluster; it has {', '.join(known)}", setting="node", value=node
        )


def default_name(share: str | None) -> str:
    """The actor's name: the training's own, unless it asked to share one."""
    if share is None:
        return f"engine-of-job-{ray.get_runtime_context().get_job_id()}"
    if not share.strip():
        raise ConfigError(
            "is not a name; give one that all trainings use, like 'judge'", setting="share", value=share
        )
    return f"shared-{share}"


def _node_for(wanted: str | None) -> str:
    """The node to run on: the one that is wanted, while it lives; else the head node.

    Not soft: Ray ignores a soft affinity of an actor that needs no CPU. If the node dies, so does the
    actor for good, and the process that starts the next one chooses again.
    """
    nodes = [node for node in ray.nodes() if node["Alive"]]
    heads = [node["NodeID"] for node in nodes if HEAD in node["Resources"]]
    known = [node["NodeID"] for node in nodes]
    return str(wanted if wanted in known else [*heads, *known][0])


async def _reply(reference: Any, wait: float = 0.0) -> Any:
    try:
        async with asyncio.timeout(wait + SILENT_AFTER):
            return await reference
    except RayTaskError as error:
        if isinstance(error.cause, ConfigError):
            raise error.cause from None
        if isinstance(error.cause, PlauditError):
            raise EngineLost(str(error.cause)) from None
        raise EngineLost(f"a bug in the shared engine: {error.cause!r}") from error
    except (RayError, TimeoutError) as error:
        raise EngineLost(str(error) or f"no answer for {wait + SILENT_AFTER:g} s") from error


_was_forked_with_ray = False


def _note_fork() -> None:
    global _was_forked_with_ray  # noqa: PLW0603 - a fact about this process
    _was_forked_with_ray = _was_forked_with_ray or bool(ray.is_initialized())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)
