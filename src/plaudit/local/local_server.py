"""A llama.cpp server of our own: started on a free port, and gone when we are."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import IO

from plaudit.child_env import child_environment
from plaudit.config import Endpoint, expanded
from plaudit.errors import ConfigError
from plaudit.local.child import IMPORT_FAILED
from plaudit.local.model import check_installed, check_model, model_name, notice
from plaudit.value_check import check_number

CHILD = Path(__file__).with_name("child.py")
MOST_THREADS = 16
TAIL_LINES = 8


class LocalServer:
    """Serves one GGUF model while the `with` block lasts.

    The server answers OpenAI's routes on 127.0.0.1, to holders of a key made up for this run. It stops when
    the block ends, and when this process dies, even if it is killed.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        slots: int = 4,
        context: int = 2048,
        threads: int | None = None,
        start_timeout: float = 120.0,
    ) -> None:
        """`slots` requests are answered at once, each of at most `context` tokens, reply included.

        `threads` is by default the number of usable processors; `start_timeout` is in seconds.
        """
        for name, value in (("slots", slots), ("context", context), ("threads", threads)):
            if value is not None:
                check_number(name, value, low=1)
        self.path = expanded(model)
        self._slots = slots
        self._context = context
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._threads = threads or min(usable, MOST_THREADS)
        self._start_timeout = start_timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._endpoint: Endpoint | None = None
        self._stderr: IO[bytes] | None = None
        self._owner = 0

    @property
    def endpoint(self) -> Endpoint:
        """Where the server answers."""
        if self._endpoint is None:
            raise ConfigError(
                "the embedded judge is not running; use its endpoint inside `with LocalServer(...)`"
            )
        return self._endpoint

    @property
    def notice(self) -> str:
        """What the output must say of the model that judged."""
        return notice(self.path)

    @property
    def pid(self) -> int | None:
        """The server's process, or None when there is none."""
        return self._process.pid if self._process else None

    @property
    def trouble(self) -> str | None:
        """Why the server died while it should be answering, or None if it did not."""
        if self._process is None or self._stderr is None or (status := self._process.poll()) is None:
            return None
        cause = _cause(status, _tail(self._stderr))
        return f"the embedded judge died while it served {self.path}: {cause}"

    def __enter__(self) -> LocalServer:
        check_model(self.path)
        check_installed()
        name, key = model_name(self.path), secrets.token_hex(16)
        self._owner = os.getpid()
        try:
            port = self._start(name, key)
        except BaseException:  # Ctrl-C above all: a half-started server must not stay behind
            self.close()
            raise
        self._endpoint = Endpoint(
            f"http://127.0.0.1:{port}/v1",
            model=name,
            api_key=key,
            kind="openai",
            max_concurrent=self._slots,
            is_direct=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the server and wait until it is gone. Safe to call twice, and harmless in a forked process."""
        process, self._process, self._endpoint = self._process, None, None
        if process is not None and os.getpid() == self._owner:
            process.kill()  # it has nothing to save
            process.wait()
        pipes = (process.stdin, process.stdout) if process is not None else ()
        for file in (*pipes, self._stderr):
            if file is not None:
                file.close()

    def _start(self, name: str, key: str) -> int:
        """Start the child process and give the port it answers on."""
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - read as long as the server runs
        numbers = [str(self._slots), str(self._context), str(self._threads)]
        process = self._process = subprocess.Popen(
            # By its path, not as a module: the child has no use for the rest of plaudit, and starts faster.
            [sys.executable, "-P", str(CHILD), str(self.path), name, *numbers],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=child_environment()
            | {"OMP_WAIT_POLICY": "passive"},  # its threads must not spin between requests
            start_new_session=True,  # Ctrl-C is for us alone: verdicts on their way are still wanted
            bufsize=0,
        )
        assert process.stdin is not None and process.stdout is not None
        timer = threading.Timer(self._start_timeout, process.kill)
        timer.daemon = True
        try:
            timer.start()
            process.stdin.write(f"{key}\n".encode())
            port = process.stdout.readline().strip()
        except BrokenPipeError:
            port = b""
        finally:
            is_late = not timer.is_alive()
            timer.cancel()
        if port:
            return int(port)
        cause = _cause(process.wait(), _tail(self._stderr))
        if is_late:
            limit = f"{self._start_timeout:g} s"
            cause = f"it was not ready after {limit}; use a smaller model, or raise start_timeout"
        raise ConfigError(f"could not be started: {cause}", setting="local_model", value=str(self.path))


def _cause(status: int, tail: str) -> str:
    """Put the end of a server process into words, with what to do about it."""
    cause = f"exit status {status}"
    if status == -signal.SIGKILL or "alloc" in tail:
        cause = "killed, most likely out of memory; use a smaller model, fewer slots or a shorter context"
    elif status == IMPORT_FAILED:
        remedy = "run: apt-get install libgomp1" if "libgomp" in tail else "install xllamacpp again"
        cause = f"llama.cpp cannot be loaded; {remedy}"
    elif status == 1:
        cause = "llama.cpp cannot load it; download the file again, or use a model that llama.cpp knows"
    return f"{cause}; it said:\n{tail}" if tail else cause


def _tail(stderr: IO[bytes]) -> str:
    stderr.seek(0)
    return b"\n".join(stderr.read().splitlines()[-TAIL_LINES:]).decode(errors="replace")
