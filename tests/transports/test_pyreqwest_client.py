"""What is peculiar to the fast client."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import asyncio, os
from plaudit.config import Endpoint
from plaudit.errors import ConfigError, Unreachable
from plaudit.transports import open_transport
from plaudit.types import ChatRequest

async def outcome():
    transport = open_transport(Endpoint("http://127.0.0.1:9/v1"), "pyreqwest", environ={})
    try:
        await transport.send(ChatRequest(()))
    except (ConfigError, Unreachable) as error:
        return type(error).__name__, str(error)

print(asyncio.run(outcome())[0], flush=True)
if os.fork() == 0:
    print(*asyncio.run(outcome()), flush=True)
    os._exit(0)
os.wait()
"""


def test_after_a_fork_it_says_that_it_cannot_go_on_instead_of_hanging() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    before, after = done.stdout.splitlines()
    assert before == "Unreachable"
    assert after.startswith("ConfigError") and "use client 'aiohttp'" in after
