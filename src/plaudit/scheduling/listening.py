"""A timed-out call that still listens, where requests a minute are limited: it hears a frozen server thaw.

What a silent server has not read yet counts against the minute (see `policy/arrival.py`), so that once the
allowance is used up nothing more is sent that could be answered. The newest call that timed out therefore
keeps its connection: its late answer says that the server reads again, and is as good as any.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from plaudit.errors import PlauditError
from plaudit.policy.arrival import Heard
from plaudit.scheduling.admission import Admission
from plaudit.scheduling.call import Call, heard_of
from plaudit.scheduling.lane import Flight, Lane
from plaudit.types import Reply


class Listening:
    """At most one late call a lane, and none that would cross a ceiling."""

    def __init__(
        self, admission: Admission, *, finish: Callable[[Call, Reply], None], pump: Callable[[], None]
    ) -> None:
        self._admission = admission
        self._finish = finish
        self._pump = pump
        self.late: dict[Lane, asyncio.Task[Reply]] = {}
        """The call that listens on each lane."""
        self._ending: set[asyncio.Task[Reply]] = set()
        """Cancelled, but not yet done: closing waits for them."""

    async def send(self, flight: Flight) -> Reply:
        """As the transport's. Cancelled because it took too long, it goes on listening."""
        loop = asyncio.get_running_loop()
        sending = loop.create_task(flight.lane.transport.send(flight.request))
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            if flight.is_overdue and sending.done() and not sending.cancelled():
                return sending.result()  # it came, or failed, in the moment in which it was given up
            if flight.is_overdue and not sending.done():
                self.stop(flight.lane)
                self.late[flight.lane] = sending
                sending.add_done_callback(lambda done: self._heard(flight, done))
            else:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
            raise

    def on_send(self, lane: Lane, *, room: float) -> None:
        """A newer call leaves by the lane, and listens from now on; `room`: for late ones elsewhere."""
        self.stop(lane)
        while len(self.late) > room:
            self.stop(next(iter(self.late)))

    def stop(self, lane: Lane) -> None:
        """The server answers, or another call listens: there is no need to."""
        if (late := self.late.pop(lane, None)) is not None:
            self._ending.add(late)
            late.add_done_callback(self._ending.discard)
            late.cancel()

    async def close(self) -> None:
        for lane in list(self.late):
            self.stop(lane)
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _heard(self, flight: Flight, done: asyncio.Task[Reply]) -> None:
        if done.cancelled():
            return
        error = done.exception()  # asked for before all else, or asyncio complains that nobody did
        if self.late.get(flight.lane) is not done:
            return
        del self.late[flight.lane]
        if error is None or (isinstance(error, PlauditError) and heard_of(error) is Heard.ANSWER):
            now = asyncio.get_running_loop().time()
            self._admission.on_sign_of_life(flight.lane, sent_at=flight.sent_at, now=now)
        if error is None and flight.call.streamed_by is None:
            self._finish(flight.call, done.result())
        self._pump()
