"""What a simulated server has seen, in numbers: the same in memory and at GET /stats."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
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
        counts = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "_seen"}
        by_key = {
            name: {str(key): count for key, count in sorted(value.items())}
            for name, value in counts.items()
            if isinstance(value, Counter)
        }
        return {**counts, "rejected": self.rejects.total(), **by_key}
