"""The engine's side: takes the messages of many processes, submits to one engine, returns each its results.

Runs on one event loop and knows nothing of Ray. A process fetches its results with a call that waits until
there are some (long polling): a slow sample delays no other, and quick ones come back in few calls.
"""

from __future__ import annotations

import asyncio
import logging
import math
import pickle
from collections.abc import Callable, Sequence
from itertools import islice

from plaudit.config import EngineConfig
from plaudit.engine import Engine
from plaudit.errors import EngineClosed, PlauditError
from plaudit.events import Event, Observer, Summary, VerdictsReady
from plaudit.integrations.ray.messages import CancelRequest, JoinRequest, Message, Results, ScoreRequest
from plaudit.integrations.rendezvous import Rendezvous
from plaudit.judges.base import Judge, Panel, is_panel
from plaudit.observers.tally import Tally
from plaudit.pending import Pending
from plaudit.types import Cause, Sample, Source, Verdict

log = logging.getLogger("plaudit")

LONG_POLL = 10.0
"""Seconds after which a call that waits for results returns without any."""
GATHER = 0.005
"""Seconds for which verdicts are gathered once there is one, which saves many calls."""
GONE_AFTER = 60.0
"""Seconds without a call after which a process is taken for dead, and its requests are cancelled."""
JUDGES_KEPT = 64

_Key = tuple[bytes, float | None, int, str]


class EngineServer:
    """One engine, and one place for groups to meet, for every process."""

    def __init__(self, open_engine: Callable[[Observer], Engine], *, hold: float = 0.0) -> None:
        """`hold`: seconds from now before which nothing is sent."""
        self._loop = asyncio.get_running_loop()
        self._opens_at = self._loop.time() + hold
        self._tally = Tally()
        self._began = self._loop.time()
        self._engine = open_engine(self._on_event)
        self._meeting = Rendezvous()
        self._clients: dict[str, ClientState] = {}
        self._judges: dict[bytes, Judge | Panel] = {}
        self._is_publish_due = False
        self._is_closing = False

    @property
    def config(self) -> EngineConfig:
        return self._engine.config

    # -- what the processes call --------------------------------------------------------------------------

    def admit(self, client_id: str) -> None:
        """Expect calls of this process from now on."""
        self._clients[client_id] = ClientState()
        self._expect_call(client_id)

    def receive(self, client_id: str, messages: Sequence[Message]) -> None:
        """Take messages on. What is wrong with one fails that one alone."""
        if self._is_closing:
            raise EngineClosed("the shared engine is closing")
        client = self._known(client_id)
        self._expect_call(client_id)
        submissions: dict[_Key, Submission] = {}
        for message in messages:
            match message:
                case ScoreRequest():
                    self._take(client, message, submissions)
                case JoinRequest():
                    client.keep(self._loop.create_task(self._join(client, message)))
                case CancelRequest():
                    for submission in client.submissions:
                        submission.cancel_request(message.id)
        for (_, deadline, *_), submission in submissions.items():
            self._submit(submission, deadline)

    async def collect(self, client_id: str) -> Results:
        """Wait for what has become final since the last call."""
        client = self._known(client_id)
        client.calls += 1
        try:
            async with asyncio.timeout(LONG_POLL):
                await client.has_results.wait()
        except TimeoutError:
            self._publish()
        finally:
            client.calls -= 1
            self._expect_call(client_id)
        return client.take()

    def forget(self, client_id: str) -> None:
        """Take a process for dead, and cancel its requests."""
        self._clients.pop(client_id).abandon()

    @property
    def submissions(self) -> int:
        """Batches at the engine that a process waits for."""
        return sum(len(client.submissions) for client in self._clients.values())

    def summary(self) -> Summary:
        """What was done for all processes together."""
        return self._tally.summary(self._loop.time() - self._began)

    async def close(self) -> None:
        """Store what is finished, free everything. Processes that still wait find another engine."""
        self._publish()
        self._is_closing = True
        await asyncio.to_thread(self._engine.close)

    # -- at work ------------------------------------------------------------------------------------------

    def _known(self, client_id: str) -> ClientState:
        """The process. Raises EngineClosed where it has to connect again, and to send all that is open."""
        if client_id not in self._clients:
            raise EngineClosed("this process was silent for so long that it was taken for dead")
        return self._clients[client_id]

    def _take(self, client: ClientState, request: ScoreRequest, submissions: dict[_Key, Submission]) -> None:
        """Read a request, and put it with those that can go to the engine in the same submission."""
        try:
            judge = self._judge(request.judge)
            samples = pickle.loads(request.samples)  # noqa: S301 - from the training itself
        except Exception as error:  # noqa: BLE001 - a class that is not installed here, or worse
            client.fail(request, f"the engine's process cannot load the judge or a sample: {error!r}")
            return
        deadline = request.deadline
        if deadline is not None:
            deadline = max(math.ceil(deadline * 10) / 10, 0.1)  # so that most go together
        # A panel must not mix groups of two callers.
        key = (request.judge, deadline, request.id if is_panel(judge) else 0, request.job)
        if key not in submissions:
            submissions[key] = Submission(client, judge, job=request.job)
        submissions[key].add(request, samples)

    def _judge(self, pickled: bytes) -> Judge | Panel:
        """The judge in these bytes, read once, as long as it is in use."""
        judge = self._judges.pop(pickled, None) or pickle.loads(pickled)  # noqa: S301 - as above
        self._judges[pickled] = judge
        if len(self._judges) > JUDGES_KEPT:
            del self._judges[next(iter(self._judges))]
        return judge

    def _submit(self, submission: Submission, deadline: float | None) -> None:
        if (wait := self._opens_at - self._loop.time()) > 0:
            if deadline is None or deadline > wait:
                left = None if deadline is None else deadline - wait
                self._loop.call_later(wait, self._submit, submission, left)
            else:
                submission.cancel()  # over before anything may be sent, as the caller's clock will find
            return
        if not submission.requests:
            return
        try:
            submission.start(
                self._engine.submit_checked(  # the client has checked them
                    submission.samples, submission.judge, deadline=deadline, job=submission.job
                )
            )
        except Exception as error:  # noqa: BLE001 - judges are user code; the failure belongs to its samples
            is_known = isinstance(error, PlauditError)
            submission.fail(str(error) if is_known else f"the judge cannot be used: {error!r}")

    async def _join(self, client: ClientState, join: JoinRequest) -> None:
        found: dict[str, bytes] | str
        try:
            found = await self._meeting.gather(
                join.group, join.member, join.payload, size=join.size, timeout=join.timeout
            )
        except PlauditError as error:
            found = str(error)
        client.add_group(join.id, found)

    def _on_event(self, event: Event) -> None:
        """On the engine's thread: schedule one publication, however many verdicts there are."""
        self._tally(event)
        if isinstance(event, VerdictsReady) and not self._is_publish_due:
            self._is_publish_due = True
            self._loop.call_soon_threadsafe(self._loop.call_later, GATHER, self._publish)

    def _publish(self) -> None:
        self._is_publish_due = False
        if self._is_closing:
            return
        for client in self._clients.values():
            client.publish()

    def _expect_call(self, client_id: str) -> None:
        """Start the time within which a process has to call again."""
        client = self._clients.get(client_id)
        if client is None:
            return
        if client.alarm is not None:
            client.alarm.cancel()
        client.alarm = self._loop.call_later(GONE_AFTER, self._forget_if_gone, client_id)

    def _forget_if_gone(self, client_id: str) -> None:
        if self._clients[client_id].calls:
            self._expect_call(client_id)
        else:
            self.forget(client_id)


class ClientState:
    """One process: its open requests, and the results that are ready for it."""

    def __init__(self) -> None:
        self.has_results = asyncio.Event()
        self.alarm: asyncio.TimerHandle | None = None
        self.calls = 0
        """Calls that wait for results."""
        self.submissions: list[Submission] = []
        self._joins: set[asyncio.Task[None]] = set()
        self._results = Results([], [])

    def keep(self, task: asyncio.Task[None]) -> None:
        self._joins.add(task)
        task.add_done_callback(self._joins.discard)

    def publish(self) -> None:
        is_over = False
        for submission in self.submissions:
            self.add(submission.fresh_verdicts())
            is_over = is_over or submission.is_over
        if is_over:
            self.submissions = [submission for submission in self.submissions if not submission.is_over]

    def add(self, verdicts: list[tuple[int, int, Verdict]]) -> None:
        if verdicts:
            self._results.verdicts.extend(verdicts)
            self.has_results.set()

    def add_group(self, join: int, found: dict[str, bytes] | str) -> None:
        self._results.groups.append((join, found))
        self.has_results.set()

    def fail(self, request: ScoreRequest, error: str) -> None:
        verdict = Verdict.failed(Cause.CODE, error, source=Source.RULE)
        self.add([(request.id, place, verdict) for place in request.places])

    def take(self) -> Results:
        taken, self._results = self._results, Results([], [])
        self.has_results.clear()
        return taken

    def abandon(self) -> None:
        """Cancel everything; calls under way still fill the cache."""
        if self.alarm is not None:
            self.alarm.cancel()
        for task in self._joins:
            task.cancel()
        for submission in self.submissions:
            submission.cancel()
        self.has_results.set()  # in case a call waits after all


class Submission:
    """What goes to the engine together: the samples of one or more requests with one judge."""

    def __init__(self, client: ClientState, judge: Judge | Panel, *, job: str) -> None:
        self.judge = judge
        self.job = job
        self.samples: list[Sample] = []
        self.is_over = False
        self._client = client
        self.requests: dict[int, ScoreRequest] = {}
        """Those that are still wanted."""
        self._pending: Pending | None = None
        self._places: list[tuple[int, int]] = []
        client.submissions.append(self)

    def add(self, request: ScoreRequest, samples: Sequence[Sample]) -> None:
        self.samples.extend(samples)
        self.requests[request.id] = request
        self._places.extend((request.id, place) for place in request.places)

    def start(self, pending: Pending) -> None:
        self._pending = pending
        self._stream = pending.as_completed()
        self._taken = 0

    def fail(self, error: str) -> None:
        self.is_over = True
        for request in self.requests.values():
            self._client.fail(request, error)

    def fresh_verdicts(self) -> list[tuple[int, int, Verdict]]:
        """Verdicts that have become final since the last call. Never waits."""
        if self._pending is None:
            return []
        ready = len(self._pending) - self._pending.remaining - self._taken
        self._taken += ready
        self.is_over = self._taken == len(self._pending)
        return [(*self._places[index], verdict) for index, verdict in islice(self._stream, ready)]

    def cancel_request(self, request: int) -> None:
        """Cancel one request; once all are, nothing more is sent."""
        if self.requests.pop(request, None) is not None and not self.requests:
            self.cancel()

    def cancel(self) -> None:
        self.requests.clear()
        if self._pending is None:
            self.is_over = True
        else:
            self._pending.cancel()
