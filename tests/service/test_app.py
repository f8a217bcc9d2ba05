"""The server over real sockets, in front of a simulated judge."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from loopback import INSTANT, loopback, taking
from service_client import CHAT, JUDGE, KEY, QUESTION, Client, ScriptedClient, scripted, served
from wire_server import Exchange, Step, answer, reply

from plaudit import Engine
from plaudit.config import Secret
from plaudit.observers.log import Log
from plaudit.service import app as service_server
from plaudit.service.access import Access
from plaudit.service.app import Service, Shared
from plaudit.service.connections import serving
from plaudit.service.prometheus import Prometheus
from plaudit.simulator import Fault

# -- OpenAI's wire ------------------------------------------------------------------------------------------


def test_a_reply_is_the_endpoints_own_to_the_last_byte() -> None:
    async def test(client: Client) -> None:
        _, headers, body = await client.post("/v1/chat/completions", QUESTION)
        async with client.session.post(f"{client.judge.url}/chat/completions", json=QUESTION) as direct:
            assert body == await direct.read()
        assert headers["x-plaudit-source"] == "call"
        assert float(headers["x-plaudit-cost"]) > 0
        assert headers["x-request-id"].startswith("req_")

    served(test)


def test_at_temperature_0_equal_requests_are_one_call_at_once_and_later() -> None:
    async def test(client: Client) -> None:
        replies = await asyncio.gather(*(client.post("/v1/chat/completions", QUESTION) for _ in range(8)))
        assert len({body for _, _, body in replies}) == 1
        _, headers, _ = await client.post("/v1/chat/completions", {**QUESTION, "user": "someone"})
        assert (headers["x-plaudit-source"], headers["x-plaudit-cost"]) == ("cache", "0.000000")
        assert client.judge.stats.requests == 1

    served(test, scenario=INSTANT.replace(latency=taking(0.1)))


def test_above_0_every_request_of_a_run_is_a_draw_and_another_run_replays_them() -> None:
    async def test(client: Client) -> None:
        for _ in range(3):
            await client.post("/run/one/v1/chat/completions", CHAT)
        assert client.judge.stats.requests == 3
        sources = [(await client.post("/run/two/v1/chat/completions", CHAT))[1] for _ in range(4)]
        assert [headers["x-plaudit-source"] for headers in sources] == ["cache"] * 3 + ["call"]
        by_header = await client.post("/v1/chat/completions", CHAT, **{"x-plaudit-run": "three"})
        assert by_header[1]["x-plaudit-source"] == "cache"

    served(test)


def test_a_stream_comes_as_it_was_and_is_replayed_byte_for_byte() -> None:
    async def test(client: Client) -> None:
        first = await client.post("/v1/chat/completions", {**QUESTION, "stream": True})
        again = await client.post("/v1/chat/completions", {**QUESTION, "stream": True})
        assert first[1]["Content-Type"] == "text/event-stream"
        assert first[2].rstrip().endswith(b"data: [DONE]")
        assert first[2] == again[2] and again[1]["x-plaudit-source"] == "cache"

    served(test)


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("completions", {"model": "m", "prompt": "Once", "temperature": 0}),
        ("embeddings", {"model": "m", "input": ["a", "b"]}),
        ("responses", {"model": "m", "input": "hi", "temperature": 0}),
    ],
)
def test_the_other_routes_pass_too(route: str, body: dict[str, Any]) -> None:
    async def test(client: Client) -> None:
        status, _, reply = await client.post(f"/v1/{route}", body)
        assert status == 200 and json.loads(reply)["model"] == "m"
        assert (await client.post(f"/v1/{route}", body))[1]["x-plaudit-source"] == "cache"

    served(test)


def test_the_models_are_listed() -> None:
    async def test(client: Client) -> None:
        _, text = await client.get("/v1/models")
        assert [model["id"] for model in json.loads(text)["data"]] == ["m"]

    served(test)


def test_one_model_can_be_asked_for() -> None:
    async def test(client: Client) -> None:
        status, text = await client.get("/v1/models/m")
        assert status == 200 and json.loads(text)["id"] == "m"
        assert (await client.get("/v1/models/org/other"))[0] == 404

    served(test)


def test_who_forgets_v1_is_told() -> None:
    async def test(client: Client) -> None:
        status, _, body = await client.post("/chat/completions", CHAT)
        assert status == 404 and b"/v1" in body

    served(test)


def test_faults_of_the_endpoint_are_dealt_with_here() -> None:
    flaky = INSTANT.replace(faults=(Fault("error", 0.2, status=500), Fault("reset", 0.1)))

    async def test(client: Client) -> None:
        asks = [{**QUESTION, "seed": number} for number in range(40)]
        replies = await asyncio.gather(*(client.post("/v1/chat/completions", ask) for ask in asks))
        assert {status for status, _, _ in replies} == {200}

    served(test, scenario=flaky)


def test_a_final_failure_is_an_openai_error_that_is_not_tried_again() -> None:
    async def test(client: Client) -> None:
        status, headers, body = await client.post(
            "/v1/chat/completions", QUESTION, **{"x-stainless-read-timeout": "0.2"}
        )
        assert (status, headers["x-should-retry"]) == (500, "false")
        assert json.loads(body)["error"]["code"] == "deadline"

    served(test, scenario=INSTANT.replace(latency=taking(30.0)))


def test_a_spent_budget_is_said() -> None:
    async def test(client: Client) -> None:
        status, _, body = await client.post("/v1/chat/completions", QUESTION)
        assert status == 402 and json.loads(body)["error"]["code"] == "budget"
        assert client.judge.stats.requests == 0

    served(test, budget=1e-9)


@pytest.mark.parametrize(
    ("crowd", "single"),
    [
        ({"path": "/run/crowd/v1/chat/completions"}, {}),
        ({"x-plaudit-run": "crowd"}, {"path": "/run/single/v1/chat/completions"}),
        ({"Authorization": "Bearer crowd"}, {"Authorization": "Bearer single"}),
    ],
)
def test_a_client_with_one_request_is_next_beside_one_with_many(
    crowd: dict[str, str], single: dict[str, str]
) -> None:
    go = asyncio.Event()

    async def held(exchange: Exchange) -> None:
        await go.wait()
        await reply()(exchange)

    async def test(client: ScriptedClient) -> None:
        asked = [client.asking({**CHAT, "seed": number}, **crowd) for number in range(20)]
        await client.until_waiting(20)
        asked.append(client.asking({**CHAT, "seed": 99}, **single))
        await client.until_waiting(21)
        await client.asking({"samples": [{"prompt": "?", "response": ""}]}, "/score")  # behind it, no call
        go.set()
        assert [status for status, _ in await asyncio.gather(*asked)] == [200] * 21
        assert 99 in [request.json()["seed"] for request in client.endpoint.requests[:3]]

    scripted(test, held, engine={"max_concurrent": 1, "cache": None})


# -- samples ------------------------------------------------------------------------------------------------

SAMPLES = [{"prompt": f"{number} + 1?", "response": f"{number + 1}", "group": "g"} for number in range(4)]


def test_samples_get_one_verdict_each_in_order() -> None:
    async def test(client: Client) -> None:
        status, _, body = await client.post(
            "/score", {"samples": [*SAMPLES, {"prompt": "?", "response": ""}]}
        )
        verdicts = json.loads(body)["verdicts"]
        assert status == 200
        assert [verdict["status"] for verdict in verdicts] == ["ok"] * 4 + ["empty"]
        assert all(0 <= verdict["score"] <= 10 for verdict in verdicts)

    served(test)


def test_verdicts_are_streamed_on_request() -> None:
    async def test(client: Client) -> None:
        _, _, body = await client.post("/score", {"samples": SAMPLES, "stream": True})
        lines = [json.loads(line) for line in body.splitlines()]
        assert sorted(line["index"] for line in lines) == [0, 1, 2, 3]
        assert all(line["status"] == "ok" for line in lines)

    served(test)


@pytest.mark.parametrize(
    "judge", ["yes", {"kind": "rubric", "criteria": "Is it brief?", "scale": [1, 5]}, None]
)
def test_a_judge_is_named_or_described_in_the_body(judge: object) -> None:
    async def test(client: Client) -> None:
        status, _, body = await client.post("/reward", {"samples": SAMPLES, "judge": judge})
        assert status == 200, body
        assert all(0.0 <= reward <= 1.0 for reward in json.loads(body)["rewards"])

    served(test)


def test_trainers_post_in_shapes_of_their_own() -> None:
    async def test(client: Client) -> None:
        openrlhf = {"query": ["1 + 1? 2", "2 + 2? 4"], "prompts": ["1 + 1?", "2 + 2?"], "labels": ["2", "4"]}
        _, _, body = await client.post("/get_reward", openrlhf)
        assert len(json.loads(body)["rewards"]) == 2
        _, _, body = await client.post("/remote_rm", {"prompt": "1 + 1?", "response": "2", "label": "2"})
        assert 0.0 <= json.loads(body) <= 1.0
        content = [{"type": "output_text", "text": "2"}]
        gym = {
            "responses_create_params": {"input": [{"role": "user", "content": "1 + 1?"}]},
            "response": {"output": [{"type": "message", "content": content}]},
            "expected_answer": "2",
        }
        plain = {**gym, "response": {"output": [{"type": "message", "content": "2"}]}}
        _, _, said = await client.post("/verify", plain)
        _, _, body = await client.post("/verify", gym)
        assert json.loads(said)["reward"] == json.loads(body)["reward"]
        answer = json.loads(body)
        assert 0.0 <= answer.pop("reward") <= 1.0 and answer == gym

    served(test)


@pytest.mark.parametrize(("on_failure", "expected"), [("raise", 500), (-1.0, 200)])
def test_a_missing_verdict_is_never_silently_a_number(on_failure: str | float, expected: int) -> None:
    async def test(client: Client) -> None:
        row = {"prompt": "1 + 1?", "response": "2"}
        status, _, body = await client.post("/remote_rm", row)
        assert status == expected
        assert json.loads(body) == -1.0 if expected == 200 else b"no_verdict" in body
        _, _, body = await client.post("/reward", {"samples": [row]})
        assert json.loads(body) == {"rewards": [None]}

    served(test, scenario=INSTANT.replace(faults=(Fault("refusal"),)), on_failure=on_failure)


# -- bad input, and closed doors ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/v1/chat/completions", b"{", 400),
        ("/v1/chat/completions", b"[]", 400),
        ("/v1/chat/completions", b"[" * 100_000, 400),
        ("/v1/chat/completions", b"\xff\xfe", 400),
        ("/v1/chat/completions", {**CHAT, "model": "other"}, 404),
        ("/v1/nothing", CHAT, 404),
        ("/score", {"samples": []}, 400),
        ("/score", {"samples": [{"prompt": "?"}]}, 400),
        ("/score", {"samples": SAMPLES, "judge": "/etc/passwd"}, 400),
        ("/score", {"samples": SAMPLES, "judge": {"kind": "rubric", "criteriä": 1}}, 400),
        ("/score", {"samples": SAMPLES, "deadline": -1}, 400),
        ("/score", {"samples": SAMPLES, "deadline": 10**400}, 400),
        ("/reward", {"samples": SAMPLES, "on_failure": {"a": 1}}, 400),
        ("/reward", {"samples": SAMPLES, "on_failure": "zero"}, 400),
        ("/get_reward", {"query": "text"}, 400),
        ("/remote_rm", {}, 400),
        ("/verify", {"response": 1}, 400),
        ("/verify", {"responses_create_params": {"input": "?"}, "response": {"output": 5}}, 400),
        (
            "/verify",
            {"responses_create_params": {"input": "?"}, "response": {"output": [{"content": 5}]}},
            400,
        ),
        ("/../../etc/passwd", CHAT, 404),
    ],
)
def test_bad_input_is_an_openai_error_and_nothing_is_spent(path: str, body: object, expected: int) -> None:
    async def test(client: Client) -> None:
        status, headers, reply = await client.post(path, body)
        assert status == expected
        assert json.loads(reply)["error"]["message"]
        assert headers["x-should-retry"] == "false"
        assert client.judge.stats.requests == 0

    served(test)


def test_half_a_surrogate_pair_is_passed_on_as_it_is() -> None:
    odd = {**QUESTION, "messages": [{"role": "user", "content": "a\ud800"}]}

    async def test(client: ScriptedClient) -> None:
        assert (await client.asking(odd))[0] == 200
        assert client.endpoint.requests[0].body == json.dumps(odd).encode()

    scripted(test, reply("7"))


def test_half_a_surrogate_pair_is_judged_like_any_text() -> None:
    async def test(client: Client) -> None:
        body = {"samples": [{"prompt": "1 + 1?", "response": "\udc00 2"}, {"prompt": "?", "response": "3"}]}
        for more in ({}, {"stream": True}):
            status, _, said = await client.post("/score", {**body, **more})
            assert status == 200 and said.count(b'"score"') == 2
        status, _, said = await client.post("/score", b'{"x": "\\ud800", }')
        assert status == 400 and b"not JSON" in said

    served(test)


def test_a_body_over_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_server, "MOST_BYTES", 1000)

    async def test(client: Client) -> None:
        status, _, _ = await client.post("/score", b'{"samples": "' + b"x" * 5000 + b'"}')
        assert status == 413

    served(test)


def test_a_body_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_server, "BODY_WITHIN", 0.05)

    async def test(client: Client) -> None:
        host, port = client.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            f"POST /score HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
            "Content-Length: 100\r\n\r\n{".encode()
        )
        assert b" 408 " in await reader.readline()
        writer.close()

    served(test)


@pytest.mark.parametrize("name", ["base_url", "api_base", "api_key", "endpoint", "url"])
def test_nothing_in_a_body_changes_where_a_request_goes_or_with_which_key(name: str) -> None:
    async def test(client: Client) -> None:
        status, _, _ = await client.post(
            "/v1/chat/completions", {**QUESTION, name: "http://evil.example"}, Authorization="Bearer sk-mine"
        )
        assert (status, client.judge.stats.requests) == (200, 1)

    served(test, scenario=INSTANT.replace(api_key=KEY))


def test_a_foreign_host_reaches_no_route() -> None:
    async def test(client: Client) -> None:
        for path in ("/metrics", "/health", "/v1/models", "/openapi.json", "/nowhere"):
            assert (await client.get(path, Host="evil.example"))[0] == 400
        status, headers, _ = await client.post("/score", {}, Origin="https://evil.example")
        assert status == 403
        assert not any(name.lower().startswith("access-control") for name in headers)

    served(test)


def test_a_token_is_asked_for_and_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    token = "correct-horse-battery"

    async def test(client: Client) -> None:
        assert (await client.get("/metrics"))[0] == 401
        assert (await client.post("/v1/chat/completions", QUESTION))[0] == 401
        allowed = {"Authorization": f"Bearer {token}"}
        status, headers, body = await client.post("/v1/chat/completions", QUESTION, **allowed)
        assert status == 200
        _, numbers = await client.get("/metrics", **allowed)
        said = f"{headers} {body!r} {numbers} {caplog.text}"
        assert token not in said and KEY not in said

    served(test, access=Access(token=Secret(token)))


# -- numbers ------------------------------------------------------------------------------------------------


def test_numbers_are_shown_without_a_word_of_a_prompt() -> None:
    async def test(client: Client) -> None:
        secret = "a-very-private-prompt"
        await client.post(
            "/v1/chat/completions", {**QUESTION, "messages": [{"role": "user", "content": secret}]}
        )
        await client.post("/score", {"samples": [{"prompt": secret, "response": "2"}]})
        _, text = await client.get("/metrics")
        assert 'plaudit_requests_total{route="/v1/chat/completions",status="200"} 1' in text
        assert "plaudit_score_count 1" in text
        assert 'outcome="ok"} 2' in text
        assert secret not in text

    served(test)


def test_routes_nobody_has_are_one_label() -> None:
    async def test(client: Client) -> None:
        for number in range(5):
            await client.get(f"/nothing-{number}")
        _, text = await client.get("/metrics")
        assert 'plaudit_requests_total{route="unknown",status="404"} 5' in text

    served(test)


def test_every_route_is_described() -> None:
    async def test(client: Client) -> None:
        _, text = await client.get("/openapi.json")
        assert {"/score", "/reward", "/get_reward", "/remote_rm", "/verify"} <= set(json.loads(text)["paths"])

    served(test)


def test_what_is_under_way_is_answered_before_the_end() -> None:
    async def ended() -> None:
        with loopback(INSTANT.replace(latency=taking(0.3))) as judge:
            numbers = Prometheus()
            with Engine(judge.url, model="m", observers=[numbers]) as engine:
                async with aiohttp.ClientSession() as session:
                    async with serving(
                        Service(Shared(engine, JUDGE), Access(), numbers), host="127.0.0.1", port=0
                    ) as url:
                        asked = asyncio.create_task(
                            Client(url, session, judge).post("/v1/chat/completions", QUESTION)
                        )
                        while not judge.stats.requests:  # noqa: ASYNC110
                            await asyncio.sleep(0)
                    status, _, _ = await asked
                    assert status == 200

    asyncio.run(ended())


# -- what the endpoint refuses ------------------------------------------------------------------------------

TOO_LONG = {"error": {"message": f"too long for {KEY}", "type": "x", "code": "context_length_exceeded"}}


def test_a_refusal_comes_back_in_the_endpoints_own_words_without_its_key() -> None:
    async def test(client: ScriptedClient) -> None:
        status, body = await client.asking(QUESTION)
        assert status == 400
        assert json.loads(body)["error"]["code"] == "context_length_exceeded"
        assert KEY.encode() not in body

    scripted(test, answer(400, TOO_LONG))


@pytest.mark.parametrize("status", [404, 405, 501])
def test_a_route_that_the_endpoint_has_not_costs_no_other_request(status: int) -> None:
    async def test(client: ScriptedClient) -> None:
        refused, _ = await client.asking({"model": "m", "input": "x"}, "/v1/embeddings")
        passed, _ = await client.asking(QUESTION)
        assert (refused < 500, passed) == (True, 200)

    scripted(test, answer(status, {"error": {"message": "no such route"}}), reply("7"))


def test_a_prompt_that_the_endpoint_forbids_costs_no_other_request() -> None:
    forbidden = {"error": {"message": "your input was flagged"}}

    async def test(client: ScriptedClient) -> None:
        assert (await client.asking(QUESTION))[0] == 200
        status, body = await client.asking({**QUESTION, "seed": 1})
        assert (status, json.loads(body)) == (403, forbidden)
        assert (await client.asking({**QUESTION, "seed": 2}))[0] == 200

    scripted(test, reply("7"), answer(403, forbidden), reply("7"))


def test_a_redirect_is_not_followed() -> None:
    async def test(client: ScriptedClient) -> None:
        status, _ = await client.asking(QUESTION)
        assert (status, len(client.endpoint.requests)) == (500, 1)

    scripted(test, answer(307, headers={"Location": "http://127.0.0.1:1/v1/chat/completions"}))


@pytest.mark.parametrize("end", ["response.completed", "response.incomplete"])
def test_a_stream_of_the_responses_route_is_whole_at_its_last_event(end: str) -> None:
    event = {"type": end, "response": {"model": "m", "usage": {"input_tokens": 3, "output_tokens": 2}}}
    stream = f"event: {end}\ndata: {json.dumps(event)}\n\n".encode()

    async def test(client: ScriptedClient) -> None:
        for _ in range(2):
            body = {"model": "m", "input": "x", "temperature": 0, "stream": True}
            assert await client.asking(body, "/v1/responses") == (200, stream)
        assert len(client.endpoint.requests) == 1

    scripted(test, answer(200, stream, headers={"Content-Type": "text/event-stream"}))


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_a_response_that_is_still_worked_on_is_handed_on_and_not_kept(status: str) -> None:
    def responding(status: str) -> Step:
        return answer(200, {"id": "resp_1", "object": "response", "status": status, "output": []})

    async def test(client: ScriptedClient) -> None:
        body = {"model": "m", "input": "hi", "temperature": 0}
        for expected in (status, "completed", "completed"):
            code, said = await client.asking(body, "/v1/responses")
            assert (code, json.loads(said)["status"]) == (200, expected)
        assert len(client.endpoint.requests) == 2

    scripted(test, responding(status), responding("completed"))


def test_a_bug_in_mid_reply_ends_the_connection_and_never_looks_like_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(client: Client) -> None:
        body = {"samples": [{"prompt": "1 + 1?", "response": "2"}], "stream": True}
        with pytest.raises(aiohttp.ClientError):
            await client.post("/score", body)
        assert (await client.get("/health"))[0] == 200

    def break_down(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(service_server.Service, "_count", break_down)
    served(test)


def test_a_request_that_is_passed_on_is_no_batch_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def test(client: Client) -> None:
        assert (await client.post("/v1/chat/completions", QUESTION))[0] == 200

    with caplog.at_level("INFO", logger="plaudit"):
        served(test, observers=[Log()])
    assert not [line for line in caplog.messages if "scored" in line]


@pytest.mark.parametrize(
    "bad", [b'{"choices": []}', b'{"choices": [{"text": "\xe9"}]}', b"[1]", b"", b"<html>"]
)
def test_a_reply_of_no_use_is_neither_handed_on_nor_kept(bad: bytes) -> None:
    async def test(client: ScriptedClient) -> None:
        for _ in range(2):
            status, body = await client.asking(QUESTION)
            assert (status, json.loads(body)["choices"][0]["message"]["content"]) == (200, "7")
        assert len(client.endpoint.requests) == 2

    scripted(test, answer(200, bad), reply("7"))


@pytest.mark.parametrize(
    "odd",
    [
        b'{"choices": [{"text": "\\ud800"}]}',
        b'{"choices": [{"logprob": -Infinity}], "usage": {"prompt_tokens": NaN}}',
        b' {"choices": [{}], "model": 5, "usage": {"prompt_tokens": "12"}}',
    ],
)
def test_what_python_servers_write_beyond_json_is_handed_on_as_it_came(odd: bytes) -> None:
    async def test(client: ScriptedClient) -> None:
        assert await client.asking(QUESTION) == (200, odd)
        assert await client.asking(QUESTION) == (200, odd)
        assert len(client.endpoint.requests) == 1

    scripted(test, answer(200, odd))


def test_an_account_without_credit_is_said_at_once() -> None:
    async def test(client: ScriptedClient) -> None:
        status, body = await client.asking(QUESTION)
        assert status == 500 and b"no credit" in body and len(client.endpoint.requests) == 1

    scripted(test, answer(429, {"error": {"message": "empty", "code": "credit_balance_exhausted"}}))
