"""The Ollama dialect: its native routes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plaudit.config import Price
from plaudit.transports.complaint import Complaint
from plaudit.transports.dialect import BadReply, ErrorReply
from plaudit.transports.ollama import KEEP_ALIVE, Ollama
from plaudit.types import ChatRequest, EmbedRequest, GenerateRequest, Reply, Request, TokenChoice, Usage

ASK = ChatRequest(({"role": "user", "content": "hm?"},), max_tokens=64, temperature=0.5)


def sent(request: Request, dialect: Ollama | None = None) -> tuple[str, Any]:
    path, body = (dialect or Ollama("m")).encode(request)
    return path, json.loads(body)


def read(body: object, *, request: Request = ASK) -> Reply:
    return Ollama("m").decode(request, json.dumps(body).encode(), None)


def test_a_chat_is_not_streamed_and_leaves_the_context_size_alone() -> None:
    assert sent(ASK) == (
        "/api/chat",
        {
            "model": "m",
            "messages": list(ASK.messages),
            "stream": False,
            "options": {"num_predict": 64, "temperature": 0.5},
            "keep_alive": KEEP_ALIVE,
        },
    )


def test_a_schema_is_the_format_and_logprobs_are_asked_for_when_wanted() -> None:
    _, body = sent(ChatRequest(ASK.messages, schema={"type": "object"}, top_logprobs=3))
    assert (body["format"], body["logprobs"], body["top_logprobs"]) == ({"type": "object"}, True, 3)
    assert not {"format", "logprobs"} & set(sent(ASK)[1])


def test_a_plain_text_is_continued_without_a_template() -> None:
    path, body = sent(GenerateRequest("Once"))
    assert (path, body["prompt"], body["raw"], body["stream"]) == ("/api/generate", "Once", True, False)


def test_texts_are_embedded_in_one_call() -> None:
    assert sent(EmbedRequest(("a", "b"))) == (
        "/api/embed",
        {"model": "m", "input": ["a", "b"], "keep_alive": KEEP_ALIVE},
    )


def test_an_old_server_that_knows_no_schema_is_sent_none() -> None:
    said = "json: cannot unmarshal object into Go struct field ChatRequest.format of type string"
    learned = Ollama("m").adapted(Complaint(said))
    assert learned is not None
    assert "format" not in sent(ChatRequest(ASK.messages, schema={"type": "object"}), learned)[1]


def test_a_chat_reply_is_read() -> None:
    body = {
        "model": "m:latest",
        "created_at": "2026-11-15T00:00:00Z",
        "message": {"role": "assistant", "content": "yes", "thinking": "hm"},
        "done": True,
        "done_reason": "length",
        "total_duration": 1,
        "prompt_eval_count": 5,
        "eval_count": 2,
        "logprobs": [{"token": "yes", "logprob": -0.1, "top_logprobs": [{"token": "no", "logprob": -3.0}]}],
    }
    assert read(body) == Reply(
        "yes",
        reasoning="hm",
        model="m:latest",
        finish_reason="length",
        usage=Usage(5, 2),
        tokens=(TokenChoice("yes", -0.1, (("no", -3.0),)),),
    )


def test_what_is_missing_is_taken_as_read() -> None:
    assert read({"message": {"content": None}}) == Reply("", model="m")
    assert read({"response": "so on"}, request=GenerateRequest("Once")) == Reply("so on", model="m")


def test_a_price_applies_here_too() -> None:
    body = json.dumps({"response": "", "prompt_eval_count": 1_000_000}).encode()
    assert Ollama("m", Price(0.5, 1.0)).decode(GenerateRequest(""), body, None).usage.cost == 0.5


def test_embeddings_are_counted() -> None:
    request = EmbedRequest(("a", "b"))
    assert read({"embeddings": [[1], [2.5]]}, request=request).vectors == ((1.0,), (2.5,))
    with pytest.raises(BadReply):
        read({"embeddings": [[1]]}, request=request)


def test_neither_a_message_nor_a_response_is_no_reply() -> None:
    with pytest.raises(BadReply):
        read({"done": True})


def test_an_error_in_the_body_is_an_error() -> None:
    with pytest.raises(ErrorReply, match="runner has stopped"):
        read({"error": "model runner has stopped"})


def test_options_go_where_ollama_has_them() -> None:
    request = ChatRequest(
        ASK.messages,
        top_p=0.9,
        seed=7,
        reasoning_effort="high",
        extra={"options": {"top_k": 20}, "template": "t"},
    )
    _, body = sent(request)
    assert body["think"] == "high"
    assert body["template"] == "t"
    assert body["options"].items() >= {"top_p": 0.9, "seed": 7, "top_k": 20}.items()
