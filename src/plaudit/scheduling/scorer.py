"""Batches in, verdicts delivered: render, look up, coalesce, dispatch, parse, store, hand over.

Runs on one event loop. Memory stays flat however large a batch is: samples are rendered window by window, as
the dispatcher makes room.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

from plaudit.caches.base import Cache, Claim, LeasingCache
from plaudit.config import Sampling
from plaudit.errors import CacheError, JudgeError, PlauditError, UnreadableVerdict, cut_off
from plaudit.events import BatchFinished, BatchStarted, CacheTrouble, Event, VerdictsReady
from plaudit.journal.base import Exchange, Journal, Judged
from plaudit.policy.budget import Spending
from plaudit.scheduling import judging, record
from plaudit.scheduling.alarm import Alarm
from plaudit.scheduling.batch import Batch, SharedRequest, shared
from plaudit.scheduling.call import Call, Outcome
from plaudit.scheduling.dispatcher import Dispatcher
from plaudit.scheduling.fair_queue import FairQueue
from plaudit.scheduling.leasing import Leasing
from plaudit.types import Cause, ChatRequest, Reply, Request, Sample, Source, Status, Verdict

log = logging.getLogger("plaudit")

CHUNK = 256
"""Samples rendered and looked up together."""
CHUNK_CHARS = 1_000_000
"""Characters of responses rendered before other work gets its turn; a longer one makes a chunk of its own."""
WINDOW = 2048
"""Calls that may wait to leave before the next samples are rendered."""
GATHER = 0.01
"""Seconds, at the most, for which look-ups and writes gather while many questions are under way: one look-up
or write costs as much as many verdicts do."""
GATHER_SHARE = 0.1
"""Of what a call takes: no longer than that where no call waits to leave, or each would last longer."""
LATEST = 8
"""Calls, roughly, by which that is known."""
MANY = 16
"""Questions without a verdict from which on they gather; the last ones of a batch wait for none."""
READINGS = 3
"""How often a question is asked at the most, where its replies are unreadable."""
_Group = list[tuple[Batch, list[tuple[bytes, int, Request]]]]
"""Batches with some of their requests, each with its key and its sample's number."""


class Scorer:
    """Turns batches into verdicts over one dispatcher and one cache."""

    def __init__(
        self,
        dispatcher: Callable[[Callable[[], None]], Dispatcher],
        cache: Cache | None = None,
        *,
        sampling: Sampling | None = None,
        emit: Callable[[Event], None] | None = None,
        journal: Journal | None = None,
        on_finished: Callable[[], None] | None = None,
    ) -> None:
        self._sampling = None if sampling == Sampling() else sampling
        self._on_finished = on_finished
        self._loop = asyncio.get_running_loop()
        self._waiting: FairQueue[Batch] = FairQueue()
        """Batches whose next samples wait for room."""
        self._turns: dict[Batch, asyncio.Future[None]] = {}
        self._dispatcher = dispatcher(self._make_room)
        self._cache = cache
        self._emit = emit
        self._journal = journal
        self._asked: dict[bytes, SharedRequest] = {}
        self._leasing: Leasing | None = None
        if isinstance(cache, LeasingCache):
            self._leasing = Leasing(
                cache, self._asked, self._dispatcher, on_found=self._on_found, on_trouble=self._lose_cache
            )
        self._feeds: dict[asyncio.Task[None], list[Batch]] = {}
        """What takes samples in, and the batches that they are of."""
        self._group: _Group = []
        """Small chunks that are about to be looked up together."""
        self._in_group: list[Batch] = []
        self._looked_up = 0
        """Requests of such groups that are not enqueued yet."""
        self._call_s = 0.0
        """Seconds that a call takes, by the latest ones."""
        self._open: dict[Batch, None] = {}
        self._unsaved: list[tuple[bytes, SharedRequest, Verdict]] = []
        self._saving: asyncio.Task[None] | None = None

    def start(self, batch: Batch) -> None:
        """Take a batch on. Every sample of it gets exactly one verdict."""
        if self._emit is not None and batch.is_told:
            self._emit(BatchStarted(self._loop.time(), batch.id, len(batch.samples)))
        if batch.is_closed:
            self._finished(batch)
            return
        self._open[batch] = None
        if batch.deadline is not None:
            alarm = Alarm(batch.deadline, functools.partial(self.expire, batch))
            batch.when_done(alarm.cancel)
        if batch.settled:
            self._note(batch, batch.settled)
            self._hand_over(batch, batch.settled)
        if not batch.is_closed:
            for part in batch.inner or (batch,):
                self._take_in(self._feed(part), [part])

    def expire(self, batch: Batch) -> None:
        """The caller's time is over: what is missing is marked so; late replies still fill the cache."""
        self._expire(batch, Cause.DEADLINE, f"deadline, {self._dispatcher.delay}")

    def cancel(self, batch: Batch, *, abort: bool = False) -> None:
        """Send nothing more for this batch. What is under way still fills the cache, unless it is aborted."""
        self._expire(batch, Cause.CANCELLED, "cancelled")
        if abort:
            self._dispatcher.abort_unwanted()

    @property
    def spending(self) -> Spending:
        return self._dispatcher.spending

    async def close(self) -> None:
        """Stop: what is finished is stored and handed over, the rest fails with EngineClosed."""
        for task in list(self._feeds):
            task.cancel()
        await asyncio.gather(*self._feeds, return_exceptions=True)
        await self._dispatcher.close()
        while self._saving is not None:
            await self._saving
        if self._leasing is not None:
            await self._leasing.close()
        for batch in list(self._open):
            self._expire(batch, Cause.CLOSED, "the engine was closed")

    @property
    def open_batches(self) -> list[Batch]:
        """Those that wait for verdicts, the oldest first. Other threads may ask."""
        return list(self._open)

    # -- samples in ---------------------------------------------------------------------------------------

    def _take_in(self, work: Coroutine[Any, Any, None], batches: list[Batch]) -> None:
        task = self._loop.create_task(work)
        self._feeds[task] = batches
        task.add_done_callback(self._fed)

    async def _feed(self, batch: Batch) -> None:
        """Render, look up and enqueue a batch, a chunk at a time."""
        stop = 0
        while stop < len(batch.samples):
            await asyncio.sleep(0)  # a batch that needs no call must not hold up the others
            self._make_room()
            while self._room <= 0 and not batch.is_closed:
                self._waiting.append(batch)
                turn = self._turns[batch] = self._loop.create_future()
                await turn
            if batch.is_closed:
                return
            start, stop = stop, _end_of_chunk(batch.samples, stop)
            rendered = self._render(batch, range(start, stop))
            if stop < len(batch.samples) or len(rendered) >= MANY:
                await self._look_up([(batch, rendered)])
            elif rendered:
                if not self._group:
                    self._take_in(self._look_up_group(), self._in_group)
                self._group.append((batch, rendered))
                self._in_group.append(batch)
                self._looked_up += len(rendered)

    async def _look_up_group(self) -> None:
        """Look up what several batches have to ask, in one go."""
        await asyncio.sleep(self._gather_s)
        group, self._group, self._in_group = self._group, [], []
        try:
            await self._look_up(group)
        finally:
            self._looked_up -= sum(len(rendered) for _, rendered in group)

    @property
    def _gather_s(self) -> float:
        """Seconds to wait for company."""
        if self._cache is None or len(self._asked) < MANY:
            return 0.0
        return GATHER if self._dispatcher.backlog >= MANY else min(GATHER, GATHER_SHARE * self._call_s)

    @property
    def _room(self) -> int:
        """Calls that may still come to wait."""
        return WINDOW - self._dispatcher.backlog - self._looked_up

    def _make_room(self) -> None:
        """Let in as many batches as there is room for, not all that wait: there may be a hundred thousand."""
        room = self._room
        while room > 0 and self._waiting:
            batch = self._waiting.peek()
            self._waiting.take(batch)
            self._let_in(batch)
            room -= min(len(batch.samples), CHUNK)

    def _let_in(self, batch: Batch) -> None:
        turn = self._turns.pop(batch)
        if not turn.done():
            turn.set_result(None)

    def _render(self, batch: Batch, indices: range) -> list[tuple[bytes, int, Request]]:
        """Requests to be looked up; what needs no call or is already asked is settled on the way."""
        requests: list[tuple[bytes, int, Request]] = []
        settled: list[tuple[int, Verdict]] = []
        for index in indices:
            try:
                rendered = judging.render(batch, batch.samples[index])
                if isinstance(rendered, Verdict):
                    settled.append((index, rendered))
                    continue
                if self._sampling is not None and isinstance(rendered, ChatRequest) and not rendered.is_fixed:
                    rendered = self._sampling.applied(rendered)
                key = batch.fingerprint(rendered)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - user code: costs its own sample only
                judging.blame(batch, error, f"could not render sample {index}")
                failure = error.failure if isinstance(error, PlauditError) else Cause.CODE
                verdict = Verdict.failed(failure, f"the sample cannot be judged: {error}", source=Source.RULE)
                settled.append((index, verdict))
                continue
            asked = self._asked.get(key)
            first = batch.seen.setdefault(key, index)
            if asked is not None:
                asked.join(batch, index)
            elif first != index and (twin := batch.verdicts[first]) is not None and twin.is_valid:
                settled.append((index, shared(twin)))
            else:
                requests.append((key, index, rendered))
        if settled:
            self._note(batch, settled)
            self._hand_over(batch, settled)
        return requests

    async def _look_up(self, group: _Group) -> None:
        claim = await self._claim([key for _, rendered in group for key, _, _ in rendered])
        self._enqueue(group, claim)

    async def _claim(self, keys: list[bytes]) -> Claim:
        if self._cache is None or not keys:
            return Claim({})
        try:
            if self._leasing is not None:
                return await self._leasing.claim(keys)
            return Claim(await self._cache.get_many(keys))
        except Exception as error:  # noqa: BLE001 - not only CacheError: a cache may be the user's own
            self._lose_cache(error)
            return Claim({})

    def _enqueue(self, group: _Group, claim: Claim) -> None:
        calls: list[Call] = []
        waits: list[Call] = []
        on_done, is_wanted, now = self._on_done, self._is_wanted, self._loop.time()
        for batch, rendered in group:
            hits: list[tuple[int, Verdict]] = []
            for key, index, request in rendered:
                asked = self._asked.get(key)
                if asked is not None:  # asked by a twin, or by another batch, during the look-up
                    asked.join(batch, index)
                    continue
                data = claim.values.get(key)
                verdict = judging.recall(batch, data, batch.samples[index]) if data is not None else None
                if verdict is not None:
                    hits.append((index, verdict))
                    if self._journal is not None:
                        self._note(batch, [(index, verdict)], request)
                    continue
                self._asked[key] = SharedRequest(batch, index, request, now)
                call = Call(request, key=key, on_done=on_done, is_wanted=is_wanted, job=batch.job)
                (waits if key in claim.elsewhere else calls).append(call)
            if hits:
                self._hand_over(batch, hits)
        if self._leasing is not None and (calls or waits):
            self._leasing.watch(waits)
        if calls:
            self._dispatcher.enqueue(calls)

    def _on_found(self, values: Mapping[bytes, bytes]) -> set[bytes]:
        """Settle what another run has stored; the keys whose values are no verdicts are left to be asked."""
        bad: set[bytes] = set()
        for key, data in values.items():
            asked = self._asked[key]
            verdict = judging.recall(asked.batch, data, asked.batch.samples[asked.index])
            if verdict is None:
                bad.add(key)
            else:
                self._settle(key, asked, verdict)
        return bad

    def _is_wanted(self, call: Call) -> bool:
        asked = self._asked.get(call.key)  # none where it is settled, and a twin still on its way
        return asked is not None and asked.is_wanted

    # -- replies back -------------------------------------------------------------------------------------

    def _on_done(self, call: Call, outcome: Outcome) -> None:
        asked = self._asked[call.key]
        self._call_s += (call.latency - self._call_s) / LATEST
        verdict = self._read(call, asked, outcome)
        if verdict is None:
            return
        if verdict.status is Status.OK:
            self._unsaved.append((call.key, asked, verdict))
            if self._saving is None:
                self._saving = self._loop.create_task(self._save())
            return
        if self._leasing is not None:
            self._leasing.release([call.key])
        self._settle(call.key, asked, verdict)

    def _read(self, call: Call, asked: SharedRequest, outcome: Outcome) -> Verdict | None:
        """The verdict in an outcome; None when the question is asked again."""
        asked.count(call, outcome if isinstance(outcome, Reply) else None)
        if self._journal is not None:
            _keep(asked, call, outcome)
        if isinstance(outcome, PlauditError):
            verdict = Verdict.failed(outcome.failure, str(outcome))
            return replace(verdict, attempts=asked.attempts, usage=asked.usage)
        batch = asked.batch
        try:
            verdict = judging.read(batch, outcome, batch.samples[asked.index])
        except JudgeError as error:
            is_cut = isinstance(error, UnreadableVerdict) and _lacks_room(call, outcome)
            room = self._dispatcher.on_cut_off(call.answered_on) if is_cut else 1
            if is_cut:
                is_worth_asking = room > 1 and not call.has_more_room
            else:
                is_worth_asking = isinstance(error, UnreadableVerdict) and asked.readings < READINGS
            if is_worth_asking and asked.is_wanted:
                asked.asked_again(str(error))
                self._ask_again(call, room=room)
                return None
            if is_cut:
                error = cut_off(outcome.usage, max_tokens=call.token_bound[1])
            verdict = Verdict.failed(error.failure, str(error))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - as in _render: user code
            judging.blame(batch, error, "could not read a reply")
            verdict = Verdict.failed(Cause.CODE, f"the judge could not read the reply: {error!r}")
        return _with_facts(verdict, call, outcome, asked)

    def _ask_again(self, call: Call, *, room: int) -> None:
        again = Call(
            call.request, key=call.key, on_done=self._on_done, is_wanted=self._is_wanted, job=call.job
        )
        again.has_more_room, again.room = call.has_more_room, call.room
        again.grow(room)
        again.failed_on = call.answered_on
        self._dispatcher.enqueue([again])

    async def _save(self) -> None:
        """Store what is finished, in groups: while one group is written, the next one gathers."""
        try:
            while self._unsaved:
                group, self._unsaved = self._unsaved, []
                await self._store([(key, verdict) for key, _, verdict in group])
                by_batch: dict[Batch, list[tuple[int, Verdict]]] = {}
                noted: list[Judged] = []
                for key, asked, verdict in group:
                    del self._asked[key]
                    for batch, item in asked.shares(verdict):
                        by_batch.setdefault(batch, []).append(item)
                        if self._journal is not None:
                            noted.append(_judged(batch, item, asked.request, asked))
                if self._journal is not None:
                    self._journal.add(*noted)
                for batch, items in by_batch.items():
                    self._hand_over(batch, items)
                if gather_s := self._gather_s:
                    await asyncio.sleep(gather_s)
        finally:
            self._saving = None

    async def _store(self, verdicts: list[tuple[bytes, Verdict]]) -> None:
        if self._cache is None:
            return
        try:
            await self._cache.put_many([(key, record.encode(verdict)) for key, verdict in verdicts])
        except Exception as error:  # noqa: BLE001 - as in _look_up
            self._lose_cache(error)

    def _settle(self, key: bytes, asked: SharedRequest, verdict: Verdict) -> None:
        del self._asked[key]
        for batch, item in asked.shares(verdict):
            self._note(batch, [item], asked.request, asked)
            self._hand_over(batch, [item])

    def _hand_over(self, batch: Batch, items: list[tuple[int, Verdict]]) -> None:
        if batch.forward is not None:  # asked by a panel: only the panel's own verdicts are news to others
            batch, items = batch.forward(items)
            self._note(batch, items)
        news = batch.deliver(items)
        if self._emit is not None and news:
            self._emit(VerdictsReady(self._loop.time(), batch.id, tuple(news)))
        if not batch.remaining and batch in self._open:
            del self._open[batch]
            self._finished(batch)

    def _note(
        self,
        batch: Batch,
        items: list[tuple[int, Verdict]],
        request: Request | None = None,
        asked: SharedRequest | None = None,
    ) -> None:
        """Hand verdicts to the journal, if there is one, with what led to them."""
        if self._journal is None:
            return
        noted = [_judged(batch, item, request, asked) for item in items if item[1].cause is not Cause.CLOSED]
        # of one that is late without a call, no more is known than what its caller was told
        self._journal.add(*(one for one in noted if asked is not None or not one.is_late))

    # -- ends ---------------------------------------------------------------------------------------------

    def _expire(self, batch: Batch, cause: Cause, why: str) -> None:
        for part in batch.inner:  # what has come in may be enough for a panel
            self._expire(part, cause, why)
        if batch.remaining:
            batch.is_closed = True
            verdict = Verdict.failed(cause, why)
            missing = [(index, batch.with_unread(index, verdict)) for index in batch.missing()]
            self._note(batch, missing)
            self._hand_over(batch, missing)
            if batch in self._waiting:
                self._waiting.remove(batch)
                self._let_in(batch)
            self._dispatcher.pump()  # which drops the calls that nobody waits for any more

    def _fed(self, task: asyncio.Task[None]) -> None:
        batches = self._feeds.pop(task)
        self._make_room()  # where the cache knew all its samples, it took none
        if task.cancelled():
            return  # by close, which sees to what is missing once everything finished is stored
        if (bug := task.exception()) is not None:
            log.error("a bug while taking in samples", exc_info=bug)
            for batch in batches:
                self._expire(batch, Cause.CODE, f"a bug in plaudit: {bug!r}")

    def _finished(self, batch: Batch) -> None:
        if self._emit is not None and batch.is_told:
            self._emit(BatchFinished(self._loop.time(), batch.id, batch.summary()))
        if self._on_finished is not None:
            self._on_finished()

    def _lose_cache(self, error: Exception) -> None:
        """Go on without the cache, and say so once."""
        if self._cache is None:
            return
        self._cache = None
        if self._leasing is not None:
            self._leasing.give_up()
        is_known = isinstance(error, CacheError)
        message = f"{error if is_known else f'a bug in the cache: {error!r}'}; going on without the cache"
        log.warning("%s", message, exc_info=None if is_known else error)
        if self._emit is not None:
            self._emit(CacheTrouble(self._loop.time(), message))


def _lacks_room(call: Call, reply: Reply) -> bool:
    """Whether a reply ended at the limit that the request set, not at another one of the server's."""
    is_below = 0 < reply.usage.completion_tokens < call.token_bound[1]
    return reply.finish_reason == "length" and call.can_grow and not is_below


def _end_of_chunk(samples: Sequence[Sample], start: int) -> int:
    """Where the chunk ends that starts here: it has a sample, and no more of them or of text than allowed."""
    chars = 0
    for index in range(start, min(start + CHUNK, len(samples))):
        chars += _chars(samples[index])
        if chars > CHUNK_CHARS:
            return max(index, start + 1)
    return min(start + CHUNK, len(samples))


def _chars(sample: Sample) -> int:
    """Roughly how much text a judge has to go through to render the sample."""
    if not sample.extra and isinstance(sample.prompt, str) and isinstance(sample.response, str):
        return len(sample.prompt) + len(sample.response)
    shown = (sample.prompt, sample.response, *sample.extra.values())
    return sum(
        len(text) if isinstance(text, str) else sum(map(_part_chars, text))
        for text in shown
        if isinstance(text, (str, tuple, list))
    )


def _part_chars(part: object) -> int:
    """Of a turn, what is said in it."""
    text = part.get("content") if isinstance(part, Mapping) else part
    return len(text) if isinstance(text, str) else 0


def _judged(
    batch: Batch, item: tuple[int, Verdict], request: Request | None, asked: SharedRequest | None
) -> Judged:
    """A verdict for the journal, before its batch has it."""
    index, verdict = item
    return Judged(
        batch.samples[index],
        batch.judge,
        verdict,
        batch.id,
        index,
        request,
        asked.exchanges if asked is not None else (),
        asked.queued_s if asked is not None else 0.0,
        batch.verdicts[index] is not None,
        batch.panel,
        batch.serves[index] if batch.serves else (),
    )


def _keep(asked: SharedRequest, call: Call, outcome: Outcome) -> None:
    """Note what came back for a request, for the journal."""
    if not asked.exchanges and call.first_sent is not None:
        asked.queued_s = call.first_sent - asked.asked_at
    if isinstance(outcome, Reply):
        used = outcome.usage
        exchange = Exchange(
            call.answered_on or "",
            outcome.body.decode(errors="replace") if outcome.body else outcome.text,
            outcome.refusal,
            outcome.finish_reason,
            call.latency,
            call.sends,
            used.prompt_tokens,
            used.completion_tokens,
            used.cost,
            used.cached_tokens,
            used.reasoning_tokens,
            outcome.reasoning,
        )
    else:
        endpoint = call.answered_on or call.failed_on or ""
        exchange = Exchange(endpoint, None, str(outcome), "", call.latency, call.sends)
    asked.exchanges += (exchange,)


def _with_facts(verdict: Verdict, call: Call, reply: Reply, asked: SharedRequest) -> Verdict:
    """The judge's verdict with the facts of the call behind it."""
    return Verdict(
        verdict.score,
        verdict.status,
        verdict.reason,
        verdict.error,
        reply.model,
        asked.attempts,
        call.latency,
        Source.CALL,
        asked.usage,
        verdict.parts,
        verdict.failure,
    )
