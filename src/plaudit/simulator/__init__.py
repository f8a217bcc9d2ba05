"""The simulator: a judge's server with seeded behaviour, over HTTP or in memory.

scenario   what the server is like (plain data);  presets: scenarios by name
server     what happens, as a state machine without clock or I/O
answer     what it says;  quality: how good it finds a response
simulated_transport   the server as a transport, under the loop's own time;  http_server: on a socket
ideal      the best makespan that is possible on it
random_servers   servers drawn at random, with the weather that every API has
"""

from plaudit.simulator.ideal import costs_of, ideal_makespan, ideal_makespan_of, works_of
from plaudit.simulator.presets import PRESETS, load_scenario
from plaudit.simulator.random_servers import Drawn, draw
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
    WrongHeaders,
)
from plaudit.simulator.server import SimulatedServer
from plaudit.simulator.simulated_transport import SimulatedTransport

__all__ = [
    "PRESETS",
    "Drawn",
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
    "WrongHeaders",
    "costs_of",
    "draw",
    "ideal_makespan",
    "ideal_makespan_of",
    "load_scenario",
    "works_of",
]
