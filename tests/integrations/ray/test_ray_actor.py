"""The process that holds the shared engine: it runs with what was agreed on, and with nothing else."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from plaudit.config import Endpoint, EngineConfig

pytestmark = pytest.mark.trainers

URL = "http://localhost:8000/v1"
ACTOR = """
import asyncio, pickle, sys
from plaudit.integrations.ray.actor import EngineActor

agreed = pickle.load(sys.stdin.buffer)

async def main():
    actor = EngineActor("engine", agreed, "the driver")
    reply = await actor.hello(agreed, "a process")
    config = await actor.config()
    await actor.stop(False)
    return reply.differences, config

sys.stdout.buffer.write(pickle.dumps(asyncio.run(main())))
"""


def config_in_the_actor(agreed: EngineConfig, **environment: str) -> EngineConfig:
    """What the engine of an actor's process runs with, in that environment."""
    ended = subprocess.run(
        [sys.executable, "-c", ACTOR],
        input=pickle.dumps(agreed),
        env={**os.environ, **environment},
        capture_output=True,
        check=True,
    )
    differences, config = pickle.loads(ended.stdout)
    assert differences == ()
    assert isinstance(config, EngineConfig)
    return config


def test_the_environment_of_the_actor_changes_nothing_that_was_agreed_on(tmp_path: Path) -> None:
    agreed = EngineConfig(endpoints=(Endpoint(URL, model="m", api_key="sk-agreed"),), cache="memory")
    elsewhere = tmp_path / "plaudit.toml"
    elsewhere.write_text("rpm = 8\ntimeout = 8\n", encoding="utf-8")
    found = config_in_the_actor(
        agreed,
        PLAUDIT_RPM="7",
        PLAUDIT_TPM="7",
        PLAUDIT_MAX_CONCURRENT="7",
        PLAUDIT_BUDGET="7",
        PLAUDIT_TIMEOUT="7",
        PLAUDIT_HEDGE="false",
        PLAUDIT_CACHE="off",
        PLAUDIT_CLIENT="aiohttp",
        PLAUDIT_CONFIG=str(elsewhere),
        OPENAI_API_KEY="sk-of-the-actor",
        OPENAI_BASE_URL="http://elsewhere/v1",
    )
    assert found == agreed
    assert (found.rpm, found.tpm, found.max_concurrent) == (None, None, None)
