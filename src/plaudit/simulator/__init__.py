"""The simulator: a judge's server with seeded behaviour, over HTTP or in memory.

scenario   what the server is like (plain data);  presets: scenarios by name
server     what happens, as a state machine without clock or I/O
memory     the server as a transport, under the loop's own time;  http: the server on a socket
ideal      the best makespan anybody could reach on it
"""

from plaudit.simulator.ideal import ideal_makespan, ideal_makespan_of, works_of
from plaudit.simulator.memory import SimulatedTransport
from plaudit.simulator.presets import PRESETS, load_scenario
from plaudit.simulator.scenario import (
    Fault,
    Knee,
    Latency,
    Queue,
    Rate,
    Reject,
    Scenario,
    Tenant,
    Unlimited,
)
from plaudit.simulator.server import SimulatedServer

__all__ = [
    "PRESETS",
    "Fault",
    "Knee",
    "Latency",
    "Queue",
    "Rate",
    "Reject",
    "Scenario",
    "SimulatedServer",
    "SimulatedTransport",
    "Tenant",
    "Unlimited",
    "ideal_makespan",
    "ideal_makespan_of",
    "load_scenario",
    "works_of",
]
