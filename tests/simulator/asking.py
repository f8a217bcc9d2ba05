"""What the simulator's tests ask, and a server driven by hand."""

from __future__ import annotations

from hypothesis import settings

from plaudit.simulator import Latency, Scenario, SimulatedServer
from plaudit.simulator.ask import Ask, Outcome

QUICK = settings(max_examples=60, deadline=None, derandomize=True, database=None)
FIXED = Latency(mean_tokens=100.0, sigma=0.0, seconds_per_token=0.01, first_token=0.5, round_trip=0.1)
"""Every answer takes 1.5 s of service and 0.1 s on the wire."""


def chat(text: str, **fields: object) -> Ask:
    return Ask("chat", "simulated", ("user", text), **fields)  # type: ignore[arg-type]


class Log:
    """Submits to a server at chosen moments and writes down what came back when."""

    def __init__(self, scenario: Scenario) -> None:
        self.server = SimulatedServer(scenario)
        self.outcomes: dict[str, tuple[float, Outcome]] = {}

    def submit(self, text: str, *, at: float) -> None:
        self.run_until(at)

        def deliver(outcome: Outcome) -> None:
            self.outcomes[text] = (round(self._now, 9), outcome)

        self._now = at
        self.server.submit(chat(text), now=at, deliver=deliver)

    def run_until(self, end: float) -> None:
        """Deliver everything that is due before or at the end, each at its moment."""
        while (due := self.server.next_due()) is not None and due <= end:
            self._now = due
            self.server.deliver_due(due)

    def finish(self) -> dict[str, tuple[float, Outcome]]:
        self.run_until(float("inf"))
        return self.outcomes
