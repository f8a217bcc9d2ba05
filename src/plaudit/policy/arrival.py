"""When a server read each of its requests, at the latest: known from what it answered, not from our sending.

A request that was sent is read at some time between its sending and its reply. Mostly that is at once; but a
server that is frozen (stopped, swapping, stalled by its network) reads nothing for a while, and then all that
has gathered together. What can be known from outside:

- A server that answers also reads. Whatever had been sent when an answer came is read by then, or within a
  moment.
- A reply takes at least the shortest time that replies have taken lately. So what was sent no later than the
  request it answers had been read that much before it came. (Not believed before another request, sent after
  the shortest was back, has taken about as long: one freeze and a slow model look the same.)
- A request whose connection the server closed, or never took, is read no more.
- Of one that timed out or was cancelled nothing is known until the server answers anything again.

While a server is silent its requests stay unread, for `GIVE_UP` seconds at the most.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from enum import Enum
from heapq import merge

GIVE_UP = 600.0
"""Seconds after which a request that a silent server may still hold is taken as lost."""
MOMENT = 0.25
"""Seconds within which a server that has answered one request has read the others that had come."""
LATELY = 128
"""Replies over which the shortest time is kept, twice."""
ALIKE = 1.5
"""How many times as long as another a time may be and still confirm it."""


class Heard(Enum):
    """What a request came to, as far as it tells what the server has read."""

    REPLY = "reply"
    ANSWER = "answer"
    """A refusal or an error: the server lives, but this took no service."""
    DROPPED = "dropped"
    """There is no connection any more, or there was none: this request is read by now, or never."""
    NOTHING = "nothing"
    """It timed out or was cancelled: the server may read it yet."""
    NOT_SENT = "not sent"


class Arrivals:
    """The requests sent to one server that may have been read within the last window."""

    def __init__(self, window: float) -> None:
        self._window = window
        self._unread: deque[float] = deque()
        """When each was sent."""
        self._read: deque[tuple[float, float, bool]] = deque()
        """(sent at, answer at, whether that answer was to a request no older), in the order of sending."""
        self._dropped: deque[float] = deque()
        self._shortest = self._shortest_before = float("inf")
        self._replies = 0
        self._shortest_at = 0.0
        self._is_sure = False

    def __len__(self) -> int:
        return len(self._unread) + len(self._read) + len(self._dropped)

    def may_yet_read(self, sent_at: float) -> bool:
        """Whether the server may still hold a request sent then, unread."""
        return bool(self._unread) and self._unread[0] <= sent_at

    def on_send(self, *, now: float) -> None:
        self._unread.append(now)

    def on_back(self, heard: Heard, *, now: float, sent_at: float) -> None:
        """Take in what a request that was sent at `sent_at` has come to."""
        if heard is Heard.REPLY or heard is Heard.ANSWER:
            while self._unread:
                sent = self._unread.popleft()
                self._read.append((sent, now, heard is Heard.REPLY and sent <= sent_at))
        if heard is Heard.REPLY:
            self._note(now - sent_at, now=now)
        elif heard is Heard.DROPPED and self.may_yet_read(sent_at):
            self._unread.remove(sent_at)
            self._dropped.append(now)
        elif heard is Heard.NOT_SENT:
            self._take_back(sent_at)

    def ends(self) -> Iterator[float]:
        """For each request, in order, when the window of its reading is over."""
        return merge(
            (self._latest(entry) + self._window for entry in self._read),
            (at + self._window for at in self._dropped),
            (sent + GIVE_UP for sent in self._unread),
        )

    def forget(self, *, now: float) -> None:
        """Leave out what was read more than a window ago."""
        while self._read and self._latest(self._read[0]) + self._window <= now:
            self._read.popleft()
        while self._dropped and self._dropped[0] + self._window <= now:
            self._dropped.popleft()
        while self._unread and self._unread[0] + GIVE_UP <= now:
            self._unread.popleft()

    def _latest(self, entry: tuple[float, float, bool]) -> float:
        sent, answered, is_kin = entry
        return max(sent, answered - self._service) if is_kin and self._is_sure else answered + MOMENT

    @property
    def _service(self) -> float:
        """Seconds that a reply takes at least."""
        return min(self._shortest, self._shortest_before)

    def _note(self, latency: float, *, now: float) -> None:
        known = self._service
        is_later = now - latency >= self._shortest_at
        if is_later and known <= ALIKE * latency and latency <= ALIKE * known:
            self._is_sure = True
        if latency < known:
            self._is_sure = self._is_sure and known <= ALIKE * latency
            self._shortest_at = now
        self._shortest = min(self._shortest, latency)
        self._replies += 1
        if self._replies % LATELY == 0:
            self._shortest_before, self._shortest = self._shortest, float("inf")

    def _take_back(self, sent_at: float) -> None:
        if self.may_yet_read(sent_at):
            self._unread.remove(sent_at)
            return
        for place, (sent, _, _) in enumerate(self._read):
            if sent == sent_at:
                del self._read[place]
                return
