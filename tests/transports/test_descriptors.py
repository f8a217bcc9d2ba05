"""Few file descriptors: fewer calls at once, and none of them fails for it."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest
from loopback import INSTANT, loopback, taking

from plaudit.transports.descriptors import RESERVE, is_out_of_files, room_within

SCRIPT = Path(__file__).parents[1] / "engine_scripts" / "few_files.py"


def test_the_rest_of_the_process_keeps_its_share() -> None:
    assert room_within(64, in_use=12) == 64 - 12 - RESERVE
    assert room_within(1024, in_use=24) == 1024 - 24 - 64
    assert room_within(16, in_use=12) == 1


def test_errors_for_want_of_files_are_known() -> None:
    assert is_out_of_files(OSError(errno.EMFILE, "Too many open files"))
    assert is_out_of_files(OSError("Multiple exceptions: [Errno 24] Too many open files, [Errno 24] ..."))
    assert not is_out_of_files(OSError(errno.ECONNREFUSED, "Connection refused"))


@pytest.mark.parametrize("client", ["aiohttp", "pyreqwest"])
@pytest.mark.parametrize("limit", [64, 256])
def test_a_process_with_few_files_scores_everything(limit: int, client: str, tmp_path: Path) -> None:
    with loopback(INSTANT.replace(latency=taking(0.05))) as server:
        command = [sys.executable, str(SCRIPT), server.url, str(limit), client, str(tmp_path / "v.db")]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == {"statuses": {"ok": 400}, "attempts": 1}
    assert server.stats.peak_in_flight < limit
