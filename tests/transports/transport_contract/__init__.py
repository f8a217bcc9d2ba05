"""What every transport over HTTP promises, one sentence each, checked over real sockets.

@pytest.mark.parametrize("promise", CONTRACT, ids=lambda promise: promise.__name__)
def test_my_transport(promise):
    asyncio.run(promise(Subject("openai", open_my_transport)))
"""

from __future__ import annotations

from inspect import iscoroutinefunction

from transport_contract import connections, framing, networks, refusals, replies
from transport_contract.subject import Open, Promise, Subject

__all__ = ["CONTRACT", "Open", "Promise", "Subject"]

CONTRACT: tuple[Promise, ...] = tuple(
    found
    for module in (replies, refusals, framing, connections, networks)
    for name, found in vars(module).items()
    if iscoroutinefunction(found) and found.__module__ == module.__name__ and not name.startswith("_")
)
"""Every public coroutine of those files is a promise."""
