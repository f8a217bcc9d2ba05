"""What a simulated server has seen, in numbers: the same in memory and at GET /stats."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from plaudit.simulator.ask import Ask


@dataclass(slots=True)
class Stats:
    """Counts since the start, or since the last reset."""

    requests: int = 0
    answered: int = 0
    """Replies with status 200, spoiled ones included."""
    rejects: Counter[int] = field(default_factory=Counter)
    """Replies with an error, by status."""
    over_capacity: int = 0
    """Those of them that came on top of what the capacity allows; the others are faults."""
    faults: Counter[str] = field(default_factory=Counter)
    withdrawn: int = 0
    """Requests whose client left before the reply."""
    in_flight: int = 0
    """Requests that came and have not been answered: in service, waiting, or on the wire."""
    peak_in_flight: int = 0
    peak_running: int = 0
    """Most requests in service at once; the scenario's capacity bounds it where it has one."""
    unique: int = 0
    """Different questions seen."""
    duplicates: int = 0
    """Requests accepted though the same question had been before: retries, hedges, money spent twice."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    arrivals: Counter[int] = field(default_factory=Counter)
    """Requests by whole second since the first."""
    _seen: set[bytes] = field(default_factory=set)

    def arrived(self, ask: Ask, *, second: int) -> None:
        self.requests += 1
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)
        self.arrivals[second] += 1
        if ask.key not in self._seen:
            self._seen.add(ask.key)
            self.unique += 1

    def reset(self) -> Stats:
        """Fresh counts for a server that is still at work."""
        return Stats(in_flight=self.in_flight, peak_in_flight=self.in_flight)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: plain names, plain numbers."""
        return {
            "requests": self.requests,
            "answered": self.answered,
            "rejected": sum(self.rejects.values()),
            "rejects": {str(status): count for status, count in sorted(self.rejects.items())},
            "over_capacity": self.over_capacity,
            "faults": dict(sorted(self.faults.items())),
            "withdrawn": self.withdrawn,
            "in_flight": self.in_flight,
            "peak_in_flight": self.peak_in_flight,
            "peak_running": self.peak_running,
            "unique": self.unique,
            "duplicates": self.duplicates,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "arrivals": {str(second): count for second, count in sorted(self.arrivals.items())},
        }
