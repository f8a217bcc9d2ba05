"""The simulated server as a transport: no sockets, the loop's own time, the same behaviour as over HTTP."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

from plaudit.errors import EngineClosed, PlauditError, RateLimited, TransportFailed, Unreachable
from plaudit.policy.headers import retry_after
from plaudit.policy.status import QUOTA, error_for
from plaudit.simulator.ask import BROKEN, Outcome, ask_of
from plaudit.simulator.live import LiveServer
from plaudit.simulator.routes import ROUTES, rate_headers
from plaudit.simulator.scenario import Scenario
from plaudit.simulator.server import SimulatedServer
from plaudit.types import LikelihoodRequest, RawRequest, Reply, Request


class SimulatedTransport:
    """Sends requests to a server in memory. Several transports may share one server, on one loop."""

    def __init__(
        self, server: SimulatedServer | Scenario, *, model: str = "simulated", api_key: str | None = None
    ) -> None:
        self.server = SimulatedServer(server) if isinstance(server, Scenario) else server
        self._live = LiveServer(self.server)
        self._model = model
        self._api_key = api_key
        self._is_closed = False

    async def send(self, request: Request) -> Reply:
        if self._is_closed:
            raise EngineClosed("this simulated transport is closed")
        if isinstance(request, RawRequest):
            return await self._raw(request)
        ask = ask_of(request, model=self._model)
        reply = reply_or_error(await self._live.answer(ask, api_key=self._api_key))
        return _of_text(request, reply) if isinstance(request, LikelihoodRequest) else reply

    async def _raw(self, request: RawRequest) -> Reply:
        route = ROUTES[f"/v1{request.route}"]
        body = route.decoder.decode(request.body)
        reply = reply_or_error(await self._live.answer(body.ask(), api_key=self._api_key))
        write = route.write_stream if body.stream and route.write_stream else route.write
        return Reply("", model=reply.model, usage=reply.usage, rate=reply.rate, body=write(reply))

    def become(self, scenario: Scenario) -> None:
        """Have the server follow another scenario from now on, its time zero being the next request."""
        self._live.become(scenario)

    async def close(self) -> None:
        """Leave the server, with every call that is under way."""
        self._is_closed = True
        self._live.end(EngineClosed("this simulated transport is closed"))


def _of_text(request: LikelihoodRequest, reply: Reply) -> Reply:
    """An echo without the tokens of the prompt, as a transport gives it."""
    ends = accumulate(len(choice.token) for choice in reply.tokens)
    kept = (choice for choice, end in zip(reply.tokens, ends, strict=True) if end > len(request.prompt))
    return replace(reply, tokens=tuple(kept))


def reply_or_error(outcome: Outcome) -> Reply:
    """The reply, or the error that a transport over HTTP would raise in its place."""
    if outcome.fault == "down":
        raise Unreachable("simulated fault: connection refused")
    if outcome.fault in BROKEN:
        raise TransportFailed(f"simulated fault: {outcome.fault}")
    if outcome.reply is not None:
        return outcome.reply
    raise _error(outcome)


def _error(outcome: Outcome) -> PlauditError:
    kind, message = error_for(outcome.status), f"{outcome.status}: {outcome.message}"
    if kind is RateLimited:
        is_quota = outcome.status == QUOTA
        return RateLimited(message, retry_after=_wait(outcome), rate=outcome.rate, is_quota=is_quota)
    return TransportFailed(message, retry_after=_wait(outcome)) if kind is TransportFailed else kind(message)


def _wait(outcome: Outcome) -> float | None:
    """Seconds to wait, as a client reads them out of the headers."""
    if outcome.retry_after is not None or outcome.rate is None:
        return outcome.retry_after
    return retry_after(dict(rate_headers(outcome)), now=0.0)
