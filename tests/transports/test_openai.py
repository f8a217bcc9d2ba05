"""The OpenAI dialect: what is sent, and how replies of many servers are read."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from plaudit.config import Price
from plaudit.errors import RequestRefused
from plaudit.transports.complaint import Complaint
from plaudit.transports.dialect import BadReply, ErrorReply, Shape
from plaudit.transports.openai import OpenAI
from plaudit.types import (
    ChatRequest,
    EmbedRequest,
    GenerateRequest,
    LikelihoodRequest,
    RateHeaders,
    Reply,
    Request,
    TokenChoice,
    Usage,
)

ASK = ChatRequest(({"role": "user", "content": "hm?"},), max_tokens=64, temperature=0.5)
SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}}}


def sent(request: Request, dialect: OpenAI | None = None) -> tuple[str, Any]:
    path, body = (dialect or OpenAI("m")).encode(request)
    return path, json.loads(body)


def read(body: object, *, request: Request = ASK, price: Price | None = None) -> Reply:
    return OpenAI("m", price).decode(request, json.dumps(body).encode(), None)


def chat(**choice: object) -> dict[str, object]:
    return {"choices": [choice]}


def test_a_chat_request_carries_what_was_asked_and_nothing_else() -> None:
    assert sent(ASK) == (
        "/chat/completions",
        {"model": "m", "messages": list(ASK.messages), "max_tokens": 64, "temperature": 0.5},
    )


def test_a_server_with_one_model_is_sent_no_name() -> None:
    assert "model" not in sent(ASK, OpenAI())[1]


def test_a_schema_is_asked_for_strictly() -> None:
    _, body = sent(ChatRequest(ASK.messages, schema=SCHEMA))
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA},
    }


def test_logprobs_are_asked_for_only_when_wanted() -> None:
    _, body = sent(ChatRequest(ASK.messages, top_logprobs=5))
    assert (body["logprobs"], body["top_logprobs"]) == (True, 5)
    assert "logprobs" not in sent(ASK)[1]


def test_a_plain_text_goes_to_the_completions_route() -> None:
    path, body = sent(GenerateRequest("Once", max_tokens=9, temperature=1.0))
    assert path == "/completions"
    assert body == {"model": "m", "prompt": "Once", "max_tokens": 9, "temperature": 1.0}


TOWN = LikelihoodRequest("Capital?", " Paris.")
ECHO = {"tokens": ["Cap", "ital?", " Paris", ".", " It"], "token_logprobs": [None, -1.0, -0.5, -0.25, -3.0]}
FORCED = [
    {"token": " Paris", "logprob": -0.5},
    {"token": ".", "logprob": -0.25},
    {"token": "", "logprob": -1},
]


def test_the_likelihood_of_a_text_is_read_from_the_echo_of_a_prompt() -> None:
    path, body = sent(TOWN)
    assert path == "/completions"
    assert (body["prompt"], body["echo"], body["logprobs"]) == ("Capital? Paris.", True, 1)
    reply = read(chat(text="Capital? Paris. It", logprobs=ECHO), request=TOWN)
    assert reply.tokens == (TokenChoice(" Paris", -0.5), TokenChoice(".", -0.25))


def test_a_token_that_stretches_over_the_end_of_the_prompt_belongs_to_the_text() -> None:
    echo = {"tokens": ["Capital", "? Par", "is."], "token_logprobs": [None, -2.0, -0.5]}
    reply = read(chat(text="", logprobs=echo), request=TOWN)
    assert reply.tokens == (TokenChoice(" Par", -2.0), TokenChoice("is.", -0.5))


def test_a_server_without_echo_is_made_to_repeat_the_text_by_a_grammar() -> None:
    with pytest.raises(ErrorReply) as caught:
        read(chat(text="", logprobs={"content": FORCED}), request=TOWN)
    learned = OpenAI("m").adapted(caught.value.complaint)
    assert learned == OpenAI("m", shape=Shape(has_echo=False))
    _, body = sent(TOWN, learned)
    assert (body["prompt"], body["grammar"]) == ("Capital?", 'root ::= " Paris."')
    answer = json.dumps(chat(text=" Paris.", logprobs={"content": FORCED})).encode()
    tokens = OpenAI("m", shape=Shape(has_echo=False)).decode(TOWN, answer, None).tokens
    assert [token.logprob for token in tokens] == [-0.5, -0.25]


def test_a_server_that_writes_something_else_instead_cannot_tell_a_likelihood() -> None:
    dialect = OpenAI("m", shape=Shape(has_echo=False))
    with pytest.raises(ErrorReply) as caught:
        dialect.decode(TOWN, json.dumps(chat(text=" Rome.", logprobs={"content": []})).encode(), None)
    assert dialect.adapted(caught.value.complaint) is None


def test_texts_go_to_the_embeddings_route_in_one_call() -> None:
    assert sent(EmbedRequest(("a", "b"))) == ("/embeddings", {"model": "m", "input": ["a", "b"]})


def test_what_the_endpoint_does_not_know_is_left_out() -> None:
    shape = Shape("max_completion_tokens", has_schema=False, has_temperature=False, has_logprobs=False)
    request = ChatRequest(ASK.messages, max_tokens=7, schema=SCHEMA, top_logprobs=5)
    _, body = sent(request, OpenAI("m", shape=shape))
    assert body == {"model": "m", "messages": list(ASK.messages), "max_completion_tokens": 7}


def test_a_lesson_gives_a_new_dialect_and_no_lesson_gives_none() -> None:
    dialect = OpenAI("m")
    learned = dialect.adapted(Complaint("Unknown parameter: 'temperature'", param="temperature"))
    assert learned == OpenAI("m", shape=Shape(has_temperature=False))
    assert dialect.adapted(Complaint("something else")) is None


@pytest.mark.parametrize("schema", [{"a": object()}, {"a": "\ud800"}])
def test_what_has_no_json_form_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(RequestRefused):
        OpenAI("m").encode(ChatRequest(ASK.messages, schema=schema))


def test_a_whole_reply_is_read() -> None:
    body = {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m-2",
        "choices": [{"index": 0, "message": {"content": "yes"}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7, "cost": 0.01},
    }
    assert read(body) == Reply("yes", model="m-2", finish_reason="length", usage=Usage(5, 2, 0.01), rate=None)


@pytest.mark.parametrize(
    "body",
    [
        chat(message={"content": "yes"}),
        chat(message={"content": [{"type": "text", "text": "y"}, {"type": "text", "text": "es"}]}),
        chat(message={"content": "yes", "tool_calls": None}, finish_reason=None, logprobs=None)
        | {"usage": None, "model": None, "error": None},
    ],
)
def test_replies_with_less_or_more_in_them_are_read_too(body: object) -> None:
    assert read(body) == Reply("yes", model="m")


def test_no_content_is_an_empty_text_and_a_refusal_is_kept() -> None:
    assert read(chat(message={"content": None})).text == ""
    assert read(chat(message={"content": None, "refusal": "I will not"})).refusal == "I will not"


def test_tokens_come_with_their_alternatives() -> None:
    token = {
        "token": "yes",
        "logprob": -0.1,
        "bytes": [1],
        "top_logprobs": [{"token": "yes", "logprob": -0.1}, {"token": "no", "logprob": -2.5}],
    }
    found = read(chat(message={"content": "yes"}, logprobs={"content": [token, {"token": "."}]}))
    assert found.tokens == (
        TokenChoice("yes", -0.1, (("yes", -0.1), ("no", -2.5))),
        TokenChoice(".", 0.0),
    )


def test_an_alternative_whose_logprob_is_null_cannot_stand_there() -> None:
    top = [{"token": "yes", "logprob": -0.1}, {"token": "no", "logprob": None}]
    token = {"token": "yes", "logprob": -0.1, "top_logprobs": top}
    found = read(chat(message={"content": "yes"}, logprobs={"content": [token]}))
    assert found.tokens == (TokenChoice("yes", -0.1, (("yes", -0.1),)),)


def test_tokens_counted_as_floats_are_still_tokens() -> None:
    usage = read(chat(message={}) | {"usage": {"prompt_tokens": 5.0, "completion_tokens": None}}).usage
    assert usage == Usage(5, 0)


def test_the_price_tells_the_cost_where_the_reply_does_not() -> None:
    body = chat(message={}) | {"usage": {"prompt_tokens": 1000, "completion_tokens": 100}}
    price = Price(prompt=2.0, completion=10.0)
    assert read(body, price=price).usage.cost == pytest.approx(0.003)
    body["usage"] = {"prompt_tokens": 1000, "completion_tokens": 100, "cost": 0.5}
    assert read(body, price=price).usage.cost == 0.5


@pytest.mark.parametrize("count", [-3, -0.5, 10**18, 1e300, "many", "-7", "nan", True, [], {"a": 1}])
def test_a_count_that_is_none_counts_as_not_given(count: object) -> None:
    body = chat(message={"content": "x"}) | {"usage": {"prompt_tokens": count, "completion_tokens": 2}}
    assert read(body).usage == Usage(0, 2)


@pytest.mark.parametrize(("count", "read_as"), [("12", 12), (" 12 ", 12), ("12.0", 12), (12.0, 12)])
def test_counts_and_costs_in_texts_are_read(count: object, read_as: int) -> None:
    body = chat(message={"content": "x"}) | {
        "usage": {"prompt_tokens": count, "completion_tokens": "2", "cost": "0.01"}
    }
    assert read(body).usage == Usage(read_as, 2, 0.01)


@pytest.mark.parametrize("cost", [-0.5, "-1", 1e18, "free", 0, 0.0, [1], False])
def test_a_cost_that_cannot_be_is_not_believed_where_there_is_a_price(cost: object) -> None:
    body = chat(message={"content": "x"}) | {
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "cost": cost}
    }
    assert read(body, price=Price(prompt=2.0, completion=10.0)).usage.cost == pytest.approx(0.003)


@pytest.mark.parametrize("usage", [[], "none", 7, True, None, {}])
def test_a_usage_that_is_none_does_not_cost_the_reply(usage: object) -> None:
    assert read(chat(message={"content": "x"}) | {"usage": usage}) == Reply("x", model="m")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_numbers_that_json_does_not_have_do_not_cost_the_reply(number: str) -> None:
    usage = f'{{"prompt_tokens": 5, "completion_tokens": {number}, "cost": {number}}}'
    body = f'{{"choices": [{{"message": {{"content": "x"}}}}], "usage": {usage}}}'.encode()
    found = OpenAI("m", Price(1.0, 1.0)).decode(ASK, body, None)
    assert (found.text, found.usage.prompt_tokens, found.usage.completion_tokens) == ("x", 5, 0)


def test_rate_headers_are_passed_on() -> None:
    rate = RateHeaders(remaining_requests=3)
    found = OpenAI("m").decode(ASK, json.dumps(chat(message={"content": "x"})).encode(), rate)
    assert found.rate is rate


def test_embeddings_are_put_in_the_order_of_their_texts() -> None:
    body = {"data": [{"index": 1, "embedding": [2]}, {"index": 0, "embedding": [1, 0.5]}]}
    assert read(body, request=EmbedRequest(("a", "b"))).vectors == ((1.0, 0.5), (2.0,))


def test_embeddings_that_are_not_numbered_are_in_order() -> None:
    body = {"data": [{"embedding": [1]}, {"embedding": [2]}]}
    assert read(body, request=EmbedRequest(("a", "b"))).vectors == ((1.0,), (2.0,))


def test_a_missing_embedding_is_not_papered_over() -> None:
    with pytest.raises(BadReply, match="1 embeddings for 2 texts"):
        read({"data": [{"index": 0, "embedding": [1]}]}, request=EmbedRequest(("a", "b")))


@pytest.mark.parametrize("body", [{}, {"choices": []}, {"choices": None}, chat(), chat(message=None)])
def test_a_reply_without_an_answer_is_none(body: object) -> None:
    with pytest.raises(BadReply):
        read(body)


@pytest.mark.parametrize(
    "body", [{"error": {"message": "no"}}, {"error": "no"}, chat(error={"message": "no"}, message={})]
)
def test_an_error_in_the_body_is_an_error(body: object) -> None:
    with pytest.raises(ErrorReply, match="no"):
        read(body)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"object": "error", "message": "no such model", "type": "NotFoundError", "code": 404}, "404"),
        ({"message": "no such model", "status": 500}, "500"),
        ({"detail": "no such model"}, ""),
        ({"choices": None, "msg": "no such model"}, ""),
    ],
)
def test_an_error_that_is_the_whole_body_is_one_too(body: object, code: str) -> None:
    with pytest.raises(ErrorReply, match="no such model") as caught:
        read(body)
    assert code in caught.value.complaint.code.split() or not code


def test_options_are_fields_of_the_body_and_extra_ones_stand_beside_them() -> None:
    _, body = sent(
        ChatRequest(
            ASK.messages,
            top_p=0.9,
            seed=7,
            reasoning_effort="low",
            extra={"chat_template_kwargs": {"enable_thinking": False}},
        )
    )
    assert body["top_p"] == 0.9
    assert body["seed"] == 7
    assert body["reasoning_effort"] == "low"
    assert body["chat_template_kwargs"] == {"enable_thinking": False}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("max_tokens", "length"),
        ("MAX_TOKENS", "length"),
        ("model_length", "length"),
        ("SAFETY", "content_filter"),
        ("refusal", "content_filter"),
        ("tool_calls", "tool_calls"),
    ],
)
def test_reasons_to_finish_in_the_words_of_other_apis_are_understood(said: str, meant: str) -> None:
    assert read(chat(message={"content": "{"}, finish_reason=said)).finish_reason == meant


def test_an_empty_reply_that_took_all_its_tokens_was_cut_off_whatever_the_server_calls_it() -> None:
    body = chat(message={"content": ""}, finish_reason="stop")
    full, short = ({"usage": {"completion_tokens": tokens}} for tokens in (ASK.max_tokens, 3))
    assert read(body | full).finish_reason == "length"
    assert read(body | short).finish_reason == "stop"


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_is_read_apart_from_the_answer(name: str) -> None:
    body = {
        "choices": [{"message": {"content": None, name: "well..."}, "finish_reason": "length"}],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 50,
            "prompt_tokens_details": {"cached_tokens": 80},
            "completion_tokens_details": {"reasoning_tokens": 50},
        },
    }
    dialect = OpenAI("m", Price(2.0, 8.0, cached_prompt=0.5))
    reply = dialect.decode(ASK, msgspec.json.encode(body), None)
    assert (reply.text, reply.reasoning, reply.finish_reason) == ("", "well...", "length")
    assert (reply.usage.cached_tokens, reply.usage.reasoning_tokens) == (80, 50)
    assert reply.usage.cost == pytest.approx((20 * 2.0 + 80 * 0.5 + 50 * 8.0) / 1e6)
