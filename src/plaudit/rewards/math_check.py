"""Whether a mathematical answer is right, by math-verify, in child processes that can be stopped.

An answer is hostile text, and a tower of powers keeps a computer algebra system busy for ever. math-verify
itself stops by a signal, which works on the main thread only, and never inside a long multiplication, and
trainers call from other threads. A child is simply killed, and the next one starts.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import json
import os
import queue
import selectors
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from plaudit.child_env import child_environment
from plaudit.errors import ConfigError
from plaudit.install_command import install_command
from plaudit.reasoning import without_reasoning

ANSWER_CHARS = 4_000
"""The end of a response is where its answer is; nothing before it is read."""
CHILD = Path(__file__).with_name("math_child.py")
START_SECONDS = 60.0
"""For a child to start and read its libraries, on a busy machine."""


class MathCheck:
    """Checks answers in a few child processes. Threads may share it; a forked child starts its own."""

    def __init__(self, *, timeout: float = 10.0, workers: int | None = None) -> None:
        """timeout: seconds for one answer, after which it counts as wrong."""
        self._timeout = timeout
        self._workers = workers or min(4, os.cpu_count() or 1)
        self._pid = 0
        self._free: queue.LifoQueue[_Child] = queue.LifoQueue()

    def check(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """1.0 or 0.0 for each (ground truth, response), in order; None where the truth cannot be read.

        Raises ConfigError where math-verify is not installed.
        """
        if importlib.util.find_spec("math_verify") is None:
            raise ConfigError(
                f"is not installed, and checks mathematical answers; run: {install_command('plaudit[math]')}",
                setting="math-verify",
            )
        self._open()
        if len(pairs) < 2:
            return [self._check(pair) for pair in pairs]
        with ThreadPoolExecutor(self._workers) as pool:
            return list(pool.map(self._check, pairs))

    def close(self) -> None:
        """Stop the children that are not at work."""
        if self._pid != os.getpid():
            return
        with contextlib.suppress(queue.Empty):
            while True:
                self._free.get_nowait().stop()
        self._pid = 0

    def _open(self) -> None:
        if self._pid != os.getpid():  # at the first call, and in a forked child, whose pipes are its parent's
            self._pid = os.getpid()
            self._free = queue.LifoQueue()
            for _ in range(self._workers):
                self._free.put(_Child())

    def _check(self, pair: tuple[str, str]) -> float | None:
        truth, response = pair
        child = self._free.get()
        try:
            answer = child.ask([truth, answer_part(response)], self._timeout)
        finally:
            self._free.put(child)
        return None if answer is None else float(answer)


def answer_part(response: str) -> str:
    """What follows the last `####`, as GSM8K writes answers; else the end of the response.

    Reasoning is no part of it: an answer that stands in `<think>` alone was not given.
    """
    return without_reasoning(response).rpartition("####")[2][-ANSWER_CHARS:]


class _Child:
    """One process, started by the first question and again after it had to be killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, question: list[str], timeout: float) -> bool | None:
        """The child's answer; False where it takes too long, or where two children die of it."""
        for _ in range(2):
            process = self._process
            if process is None or process.poll() is not None:
                process = self._process = self._start()
            assert process.stdin is not None
            try:
                process.stdin.write(json.dumps(question).encode() + b"\n")
                process.stdin.flush()
                line = self._read(process, timeout)
            except BrokenPipeError:
                line = b""
            if line is not None and line.endswith(b"\n"):
                answer: bool | None = json.loads(line)
                return answer
            self.stop()
            if line is None:
                break
        return False

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):  # it died with a question unread
                pipe.close()
        self._process.wait()
        self._process = None

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            # By its path: it needs nothing else of plaudit, and starts sooner.
            [sys.executable, "-P", str(CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=child_environment(),
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(["1", "$1$"]).encode() + b"\n")
        process.stdin.flush()
        if self._read(process, START_SECONDS) != b"true\n":
            self._process = process
            self.stop()
            raise ConfigError("math-verify does not work here; try: python -c 'import math_verify'")
        return process

    def _read(self, process: subprocess.Popen[bytes], timeout: float) -> bytes | None:
        """A line, what there is of it when the child ends, or None when time runs out."""
        assert process.stdout is not None
        line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(timeout):
                    return None
                piece = os.read(process.stdout.fileno(), 4096)
                if not piece:
                    break
                line += piece
        return line


@functools.cache
def shared_check() -> MathCheck:
    check = MathCheck()
    atexit.register(check.close)
    return check
