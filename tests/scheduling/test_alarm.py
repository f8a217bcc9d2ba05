"""Replies that came while the process was stopped are read before any timer ends their calls."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from dispatching import FakeServer
from scoring import Desk, marks_of, samples
from until import PATIENCE_S, until

from plaudit.config import EngineConfig
from plaudit.scheduling.alarm import CATCH_UP, Alarm
from plaudit.testing import VirtualLoop
from plaudit.types import Reply, Request, Status


class StoppedLoop(VirtualLoop):
    """A loop on virtual time that can be stopped: its clock goes on, and it does not run."""

    skipped = 0.0

    def skip(self, seconds: float) -> None:
        self.skipped += seconds
        self._jumping.now += seconds


class Socket:
    """A transport whose replies lie in the socket until the loop looks there, a few turns after it runs."""

    TURNS = 5

    def __init__(self) -> None:
        self.sends = 0

    async def send(self, request: Request) -> Reply:
        self.sends += 1
        loop = asyncio.get_running_loop()
        assert isinstance(loop, StoppedLoop)
        while not loop.skipped:  # noqa: ASYNC110 - nobody tells a socket
            await asyncio.sleep(0.5)
        for _ in range(self.TURNS):
            await asyncio.sleep(0)
        return marks_of(str(request))

    async def close(self) -> None: ...


def run_stopped(main: Callable[[StoppedLoop], object]) -> None:
    with asyncio.Runner(loop_factory=StoppedLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, StoppedLoop)
        runner.run(main(loop))  # type: ignore[arg-type]


def stop(loop: StoppedLoop, seconds: float) -> None:
    loop.skip(seconds)


@pytest.mark.parametrize(("timeout", "deadline"), [(20.0, None), (1000.0, 20.0), (20.0, 20.0)])
def test_replies_that_came_while_the_process_was_stopped_are_used(
    timeout: float, deadline: float | None
) -> None:
    async def main(loop: StoppedLoop) -> None:
        transport = Socket()
        config = EngineConfig(timeout=timeout, hedge=False)
        async with Desk(transport, config=config) as desk:
            loop.call_later(3.0, stop, loop, 60.0)
            verdicts = await desk.score(samples(20), deadline=deadline)
            assert [verdict.status for verdict in verdicts] == [Status.OK] * 20
            assert transport.sends == 20

    run_stopped(main)


def test_a_deadline_that_passed_while_the_process_was_stopped_is_kept_soon_after() -> None:
    async def main(loop: StoppedLoop) -> None:
        server = FakeServer(lambda asked: (3600.0, marks_of(asked.text)))
        async with Desk(server, config=EngineConfig(hedge=False)) as desk:
            loop.call_later(3.0, stop, loop, 60.0)
            [verdict] = await desk.score(samples(1), deadline=20.0)
            assert verdict.status is Status.DEADLINE
            assert 63.0 <= loop.time() <= 64.0

    run_stopped(main)


def test_an_alarm_is_on_time_where_nothing_was_stopped_and_can_be_cancelled_at_any_time() -> None:
    async def main(loop: StoppedLoop) -> None:
        rung: list[float] = []
        Alarm(5.0, lambda: rung.append(loop.time()))
        cancelled = Alarm(7.0, lambda: rung.append(loop.time()))
        await asyncio.sleep(6.0)
        assert rung == [5.0]
        stop(loop, 60.0)
        await asyncio.sleep(CATCH_UP / 2)
        cancelled.cancel()
        await asyncio.sleep(10.0)
        assert rung == [5.0]

    run_stopped(main)


SCORE = """
    import sys
    from plaudit import Engine, Rubric, Sample
    with Engine(sys.argv[1], model="m", timeout=float(sys.argv[2]), hedge=False, cache=None) as engine:
        batch = [Sample("2+2?", f"{i}") for i in range(8)]
        pending = engine.submit(batch, Rubric("Is it right?"), deadline=float(sys.argv[3]))
        print(*(verdict.status.value for verdict in pending.result(timeout=float(sys.argv[4]))))
"""


class Judge:
    """A server that answers once all eight calls are there and the client is stopped."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/v1"
        self.asked: list[socket.socket] = []
        self.connections: list[socket.socket] = []
        self.all_asked = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection: socket.socket) -> None:
        self.connections.append(connection)
        connection.recv(1 << 16)
        self.asked.append(connection)
        if len(self.asked) == 8:
            self.all_asked.set()

    def answer(self) -> None:
        body = b'{"choices":[{"message":{"content":"{\\"reason\\":\\"\\",\\"score\\":7}"}}],"model":"m"}'
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        for connection in self.asked:
            connection.sendall(head.encode() + body)

    def close(self) -> None:
        self.socket.close()
        for connection in self.connections:
            connection.close()


@pytest.mark.parametrize(
    ("timeout", "deadline", "result"), [(2.0, 60.0, 60.0), (60.0, 2.0, 60.0), (60.0, 60.0, 2.0)]
)
def test_a_process_that_was_stopped_for_longer_than_its_time_uses_what_has_come(
    tmp_path: Path, timeout: float, deadline: float, result: float
) -> None:
    script = tmp_path / "score.py"
    script.write_text(textwrap.dedent(SCORE))
    judge = Judge()
    child = subprocess.Popen(
        [sys.executable, str(script), judge.url, str(timeout), str(deadline), str(result)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert judge.all_asked.wait(PATIENCE_S)
        os.kill(child.pid, signal.SIGSTOP)
        stopped = time.monotonic()
        judge.answer()
        until(lambda: time.monotonic() > stopped + 2.5)  # longer than the two seconds that it has
        os.kill(child.pid, signal.SIGCONT)
        said, _ = child.communicate(timeout=PATIENCE_S)
        assert said.split() == ["ok"] * 8
    finally:
        child.kill()
        child.wait()
        judge.close()
