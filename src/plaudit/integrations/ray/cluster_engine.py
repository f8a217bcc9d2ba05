"""One engine for a whole Ray cluster, used from any of its processes like an Engine of one's own."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, TypeVar, Unpack, cast

import ray.cloudpickle

from plaudit.config import EngineConfig
from plaudit.engine import BaseEngine, Engine
from plaudit.events import Summary
from plaudit.integrations.ray.actor import ActorConnection, check_node, check_running, default_name
from plaudit.integrations.ray.engine_client import (
    EngineClient,
    PendingJoin,
    PickledJudge,
    pickle_judge,
    split_batch,
)
from plaudit.judges.base import Judge, Panel
from plaudit.pending import Pending
from plaudit.scheduling.batch import Batch
from plaudit.scheduling.panel import panel_batch
from plaudit.settings import ConfigOptions, engine_config, load
from plaudit.types import Sample

T = TypeVar("T")


class SharedEngine(BaseEngine):
    """Judges samples by the engine that all processes of a training share. A context manager; for any thread.

    It can be pickled: a copy in another process reaches the same engine. Or let every process make its own
    with the same settings; other settings under the same name are an error that says which. Closing one
    leaves the engine; in the process that started it, this ends it.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        share: str | None = None,
        node: str | None = None,
        detached: bool = False,
        **options: Unpack[ConfigOptions],
    ) -> None:
        """Resolve the settings in this process, into `config`, and connect to the engine that has them.

        Args:
            url: As for `plaudit.Engine`.
            share: A name by which several trainings share one engine; by default each has its own.
            node: The id of the Ray node to run on, if it is alive; by default the head node.
            detached: Whether the engine outlives the process that started it, until `stop`.
            options: As for `plaudit.Engine`; `cache` is a path, `memory` or None, and `observers` are import
                paths.

        Raises:
            ConfigError: Ray is not running, or the engine runs already with other settings.
        """
        self._join(engine_config(load({}), url, **options), share, node, detached)

    @classmethod
    def from_config(
        cls,
        config: EngineConfig,
        *,
        share: str | None = None,
        node: str | None = None,
        detached: bool = False,
    ) -> SharedEngine:
        """The shared engine with exactly this configuration; see `plaudit.Engine.from_config`."""
        engine = cls.__new__(cls)
        engine._join(config, share, node, detached)
        return engine

    def _join(self, config: EngineConfig, share: str | None, node: str | None, detached: bool) -> None:
        # Says here what the actor would say: it checks everything, starts nothing. Observers live there.
        Engine.from_config(replace(config, observers=()))
        check_running()
        check_node(node)
        self._set_up(default_name(share), config, node, detached)
        self._client_at_work().connect()

    def _set_up(self, name: str, config: EngineConfig, node: str | None, detached: bool) -> None:
        self.name = name
        self.config = config
        self.endpoints = config.endpoints
        self.model = config.model
        self._made_of = name, config, node, detached
        self._pickled_judge: PickledJudge | None = None

    def __repr__(self) -> str:
        return f"SharedEngine({', '.join(e.url for e in self.endpoints)}, model={self.model!r}, {self.name})"

    def __getstate__(self) -> tuple[Any, ...]:
        return self._made_of

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._set_up(*state)

    # -- scoring ------------------------------------------------------------------------------------------

    def _submit(
        self, samples: list[Sample], judge: Judge | Panel, *, deadline: float | None, job: str
    ) -> Pending:
        pack = self._pickled_judge
        if pack is None or pack.judge is not judge:
            pack = self._pickled_judge = pickle_judge(judge, dumps=ray.cloudpickle.dumps)
        if pack.is_panel:
            panel_batch(samples, cast(Panel, judge), model=self.model)  # says now what it would say there
        batch = Batch(samples, cast(Judge, judge), model=self.model, deadline=deadline, job=job)
        client = self._client_at_work()
        if samples:
            client.start(batch, split_batch(batch, pack))
        return Pending(batch, client)

    # -- meeting ------------------------------------------------------------------------------------------

    async def gather(self, group: str, member: str, payload: T, *, size: int, timeout: float) -> dict[str, T]:
        """What each member of the group brought, from all processes: as `Rendezvous.gather` says.

        If the engine cannot be reached, the answer after `timeout` seconds is the member alone.
        """
        joined = PendingJoin(group, member, ray.cloudpickle.dumps(payload), size=size, timeout=timeout)
        self._client_at_work().join(joined)
        return await asyncio.wrap_future(joined.found)

    # -- life ---------------------------------------------------------------------------------------------

    def summary(self) -> Summary:
        """What the engine has done for all processes since it started, in numbers."""
        return cast(Summary, self._client_at_work().call(ActorConnection.summary))

    def stop(self) -> None:
        """End the engine, even a detached one, once what is finished is stored.

        A process that still needs one starts another, which has a whole budget to spend.
        """
        self._client_at_work().call(ActorConnection.stop)
        self.close()

    def _client_at_work(self) -> EngineClient:
        check_running()
        return cast(EngineClient, self._at_work())

    def _open(self) -> EngineClient:
        return EngineClient(ActorConnection(*self._made_of))
