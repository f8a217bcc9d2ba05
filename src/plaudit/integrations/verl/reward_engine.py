"""From settings to a judge and an engine: the cluster's where Ray runs, else this process's own."""

from __future__ import annotations

import asyncio
import logging
import os
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec

from plaudit.config import Endpoint, EngineConfig, Price, Secret
from plaudit.engine import Engine
from plaudit.errors import ConfigError, PlauditError, spelling
from plaudit.integrations.rendezvous import Rendezvous
from plaudit.integrations.verl.reward_settings import (
    PLACE,
    EndpointTable,
    RewardSettings,
    as_key,
    settings_from,
)
from plaudit.integrations.verl.row_reward import RewardEngine
from plaudit.judges.base import Judge, Panel
from plaudit.judges.registry import build
from plaudit.settings import Settings, endpoints_of, engine_config, load
from plaudit.setup.endpoints import judge_endpoints
from plaudit.setup.judges import judge_of
from plaudit.setup.preflight import GREETING_SECONDS, Greeting, check_answers, greeting
from plaudit.types import Cause, Sample, Verdict

log = logging.getLogger("plaudit")
T = TypeVar("T")
OWN = ("api_key_env", "price", "cached_price")
"""What an endpoint's table has in a form of its own."""


@spelling(as_key)
def resolve(settings: RewardSettings) -> Settings:
    """Plaudit's settings, as the configuration and this process's environment say."""
    given = dict(settings.general)
    if isinstance(settings.judge, str):
        given["judge"] = settings.judge
    return load(given)


@spelling(as_key)
def judge_for(settings: RewardSettings, plain: Settings) -> Judge | Panel:
    if isinstance(settings.judge, dict):
        options = dict(settings.judge)
        with spelling(lambda option, value: as_key(f"judge.{option}", value)):
            return build(options.pop("kind", "rubric"), options)
    return judge_of(plain)


@spelling(as_key)
def open_reward_engine(settings: RewardSettings, plain: Settings) -> RewardEngine:
    """The engine that all workers share. Without Ray, one of this process, whose limits hold here only."""
    config = config_for(settings, plain)
    if _is_ray_running():
        from plaudit.integrations.ray import SharedEngine

        return SharedEngine.from_config(config, share=settings.share)
    log.warning(
        "Ray is not running here, so %s.rpm, .tpm, .max_concurrent, .budget and groups hold in this process "
        "only; call ray.init() first to share one engine between processes",
        PLACE,
    )
    with spelling(plain.spelled):
        return LocalEngine(Engine.from_config(config))


def start_cluster_engine(config: Any, settings: RewardSettings) -> RewardEngine:
    """Start the engine of all workers from verl's driver, with what the workers' environment says.

    One that a worker started would end with that worker, and with it the minute of its limits.
    """
    import ray

    from plaudit.integrations.ray import SharedEngine

    try:
        found = ray.get(ray.remote(num_cpus=0)(_config_there).remote(config))
    except ray.exceptions.RayTaskError as error:
        raise error.cause if isinstance(error.cause, PlauditError) else error from None
    return SharedEngine.from_config(found, share=settings.share)


def _config_there(config: Any) -> EngineConfig:
    """The engine's configuration, in a process that has the workers' environment."""
    settings = settings_from(config)
    return config_for(settings, resolve(settings))


def check_judge_answers(engine: RewardEngine, judge: Judge | Panel | None = None) -> None:
    """Ask the judge for a word. Raises BatchFailed where it will never answer; else it only warns."""
    with ThreadPoolExecutor(1) as aside:  # the caller may be on an event loop
        asked = engine.ascore([greeting(_run_name())], Greeting.like(judge), deadline=GREETING_SECONDS)
        (verdict,) = aside.submit(asyncio.run, asked).result()
    check_answers([verdict], has_begun=False)
    if not verdict.is_valid and verdict.cause is not Cause.UNREADABLE and verdict.cause is not Cause.CUT_OFF:
        log.warning("the judge does not answer yet (%s): %s", verdict.status, verdict.error)


def _run_name() -> str:
    """The same for the processes of a run on one node, another for each run."""
    if not _is_ray_running():
        return uuid.uuid4().hex
    import ray

    context = ray.get_runtime_context()
    return f"{context.get_node_id()} {context.get_job_id()}"


@spelling(as_key)
def config_for(settings: RewardSettings, plain: Settings) -> EngineConfig:
    """What the engine is opened with, wherever it runs."""
    return engine_config(plain, endpoints=judge_endpoints(plain, _given_endpoints(settings, plain)))


@spelling(as_key)
def endpoints_for(settings: RewardSettings, plain: Settings) -> tuple[Endpoint, ...]:
    """The servers that the settings name, as they stand: nothing is asked."""
    return _given_endpoints(settings, plain) or endpoints_of(plain)


class LocalEngine:
    """An engine of this process alone, and its groups."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._rendezvous = Rendezvous()

    async def ascore(
        self, samples: Sequence[Sample], judge: Judge | Panel, *, deadline: float | None = None
    ) -> list[Verdict]:
        return await self.engine.ascore(samples, judge, deadline=deadline)

    async def gather(self, group: str, member: str, payload: T, *, size: int, timeout: float) -> dict[str, T]:
        return await self._rendezvous.gather(group, member, payload, size=size, timeout=timeout)

    def close(self) -> None:
        self.engine.close()


def _given_endpoints(settings: RewardSettings, plain: Settings) -> tuple[Endpoint, ...]:
    def endpoint(number: int, table: EndpointTable) -> Endpoint:
        with spelling(lambda name, value: as_key(f"endpoints[{number}].{name}", value)):
            return _endpoint(table, plain)

    return tuple(endpoint(number, table) for number, table in enumerate(settings.endpoints))


def _endpoint(table: EndpointTable, plain: Settings) -> Endpoint:
    key = plain.api_key
    if table.api_key_env:
        value = os.environ.get(table.api_key_env, "").strip()
        if not value:
            raise ConfigError(
                f"of {table.url} is not set where this worker runs; "
                f"export {table.api_key_env}=... before ray start",
                setting="api_key_env",
                value=table.api_key_env,
            )
        key = Secret(value, origin=table.api_key_env)
    given = {name: value for name, value in msgspec.structs.asdict(table).items() if name not in OWN}
    price = Price(*table.price, table.cached_price) if table.price else None
    return Endpoint(**given, api_key=key, price=price)


def _is_ray_running() -> bool:
    try:
        from ray import is_initialized
    except ImportError:
        return False
    return bool(is_initialized())
