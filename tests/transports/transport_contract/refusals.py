"""What a transport promises about refusals: each says who acts, and none shows the key."""

from __future__ import annotations

import logging

from wire_server import WireServer, answer, hang_up, reply

from plaudit.errors import (
    EndpointRefused,
    KeyRefused,
    ModelNotFound,
    PlauditError,
    RateLimited,
    RequestRefused,
    SendAgain,
    TransportFailed,
)
from plaudit.types import ChatRequest
from transport_contract.subject import ASK, HALF, KEY, Subject, everything_in, outcome_of


async def each_status_says_who_acts(subject: Subject) -> None:
    meanings: dict[int, type[PlauditError]] = {
        400: RequestRefused,
        401: KeyRefused,
        402: EndpointRefused,
        403: KeyRefused,
        404: ModelNotFound,
        405: EndpointRefused,
        408: TransportFailed,
        413: RequestRefused,
        422: RequestRefused,
        429: RateLimited,
        500: TransportFailed,
        502: TransportFailed,
        503: RateLimited,
        529: RateLimited,
    }
    for status, meaning in meanings.items():
        found = await subject.outcome(answer(status, {"error": {"message": "the reason given"}}))
        assert type(found) is meaning, (status, found)
        assert "127.0.0.1" in str(found) and str(status) in str(found) and "the reason given" in str(found)


async def a_rejection_carries_the_wait_that_was_asked_for(subject: Subject) -> None:
    for status in (429, 503, 529):
        found = await subject.outcome(answer(status, {}, headers={"Retry-After": "2.5"}))
        assert isinstance(found, RateLimited)
        assert found.retry_after == 2.5
    silent = await subject.outcome(answer(429))
    assert isinstance(silent, RateLimited)
    assert silent.retry_after is None


async def an_error_inside_a_successful_reply_is_an_error(subject: Subject) -> None:
    for body, meaning in (
        ({"error": {"message": "upstream died"}}, TransportFailed),
        ({"error": {"message": "slow down", "code": 429}}, RateLimited),
        ({"error": "model runner has stopped"}, TransportFailed),
    ):
        assert type(await subject.outcome(answer(200, body))) is meaning


async def a_redirect_is_not_followed(subject: Subject) -> None:
    async with WireServer() as elsewhere:
        target = f"http://127.0.0.1:{elsewhere.port}/v1/chat/completions"
        for status in (301, 302, 303, 307, 308):
            found = await subject.outcome(answer(status, headers={"Location": target}))
            assert isinstance(found, EndpointRefused)
            assert f"127.0.0.1:{elsewhere.port}" in str(found)
        assert elsewhere.connections == 0


async def an_unknown_parameter_is_left_out_from_then_on(subject: Subject) -> None:
    ask = ChatRequest(ASK.messages, schema={"type": "object"})
    refusal = answer(400, {"error": {"message": "Unknown parameter: 'response_format'"}})
    async with WireServer(refusal, reply()) as server, subject.to(server.url(subject.kind)) as transport:
        try:
            raise AssertionError(await transport.send(ask))
        except SendAgain as found:
            assert found.is_answered and "response_format" in str(found)
        assert len(server.requests) == 1
        for _ in range(3):
            assert (await transport.send(ask)).text == "7"
        had_schema = ["format" in str(sorted(request.json())) for request in server.requests]
        assert had_schema == [True, False, False, False]


async def the_key_is_in_no_error_and_no_log(subject: Subject) -> None:
    log = _Kept()
    root = logging.getLogger()
    before = root.level
    root.addHandler(log)
    root.setLevel(logging.DEBUG)
    echo = {"error": {"message": f"bad key {KEY} in Authorization: Bearer {KEY}", "code": KEY, "param": KEY}}
    steps = [answer(status, echo) for status in (200, 302, 400, 401, 404, 418, 422, 429, 500)]
    steps += [hang_up(), hang_up(HALF), hang_up(b"nonsense\r\n\r\n"), answer(200, f"<{KEY}".encode())]
    try:
        for step in steps:
            found = await subject.outcome(step)
            assert isinstance(found, PlauditError)
            assert KEY not in everything_in(found), found
        async with subject.to("http://127.0.0.1:9") as transport:
            found = await outcome_of(transport)
            assert isinstance(found, PlauditError)
            assert KEY not in everything_in(found) + repr(transport)
    finally:
        root.removeHandler(log)
        root.setLevel(before)
    assert KEY not in "\n".join(log.lines)


class _Kept(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
