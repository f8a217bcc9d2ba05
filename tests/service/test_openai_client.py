"""OpenAI's own Python client, with its URL changed and nothing else."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import openai
import pytest
from loopback import INSTANT, taking
from service_client import Client, client_of

from plaudit.config import Secret
from plaudit.service.access import Access
from plaudit.simulator import Fault

ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "temperature": 0}


def asked(test: Callable[[openai.OpenAI, Client], object], **options: Any) -> None:
    """Run a test with a blocking client, on a thread of its own."""

    async def main() -> None:
        async with client_of(**options) as client:
            with openai.OpenAI(base_url=f"{client.url}/v1", api_key="sk-of-the-client-1234") as sync:
                await asyncio.to_thread(test, sync, client)
            _, text = await client.get("/metrics")
            sent = sum(int(count) for count in re.findall(r'route="/v1/[^m].*"} (\d+)', text))
            assert sent == 1  # whatever happened: the client never tried again

    asyncio.run(main())


def test_a_chat() -> None:
    def test(client: openai.OpenAI, _: Client) -> None:
        reply = client.chat.completions.create(**ASK)
        assert reply.model == "m" and reply.choices[0].message.content
        assert reply.usage is not None and reply.usage.prompt_tokens > 0
        assert reply._request_id is not None and reply._request_id.startswith("req_")
        assert [model.id for model in client.models.list()] == ["m"]

    asked(test)


def test_a_streamed_chat() -> None:
    def test(client: openai.OpenAI, _: Client) -> None:
        pieces = [
            event.choices[0].delta.content or ""
            for event in client.chat.completions.create(**ASK, stream=True)
        ]
        assert len(pieces) > 1 and "".join(pieces)

    asked(test)


def test_a_response() -> None:
    def test(client: openai.OpenAI, _: Client) -> None:
        assert client.responses.create(model="m", input="hi", temperature=0).output_text

    asked(test)


def test_embeddings_and_completions() -> None:
    def embed(client: openai.OpenAI, _: Client) -> None:
        assert len(client.embeddings.create(model="m", input=["a", "b"]).data) == 2

    def complete(client: openai.OpenAI, _: Client) -> None:
        assert client.completions.create(model="m", prompt="Once", temperature=0).choices[0].text

    asked(embed)
    asked(complete)


def test_the_async_client() -> None:
    async def main() -> None:
        async with client_of() as client:
            async with openai.AsyncOpenAI(base_url=f"{client.url}/v1", api_key="x") as asking:
                replies = await asyncio.gather(*(asking.chat.completions.create(**ASK) for _ in range(8)))
                assert len({reply.choices[0].message.content for reply in replies}) == 1
                stream = await asking.chat.completions.create(**ASK, stream=True)
                assert [event async for event in stream]
            assert client.judge.stats.requests == 2

    asyncio.run(main())


def test_faults_upstream_are_not_seen_by_it() -> None:
    def test(client: openai.OpenAI, _: Client) -> None:
        assert client.chat.completions.create(**ASK).choices

    asked(test, scenario=INSTANT.replace(faults=(Fault("error", 0.5, status=500), Fault("reset", 0.2))))


def test_an_unknown_model_is_its_not_found_error() -> None:
    def test(client: openai.OpenAI, _: Client) -> None:
        with pytest.raises(openai.NotFoundError) as caught:
            client.chat.completions.create(**{**ASK, "model": "other"})
        assert caught.value.code == "model_not_found"

    asked(test)


def test_a_wrong_token_is_its_authentication_error() -> None:
    def test(client: openai.OpenAI, _: Client) -> None:
        with pytest.raises(openai.AuthenticationError):
            client.chat.completions.create(**ASK)

    async def main() -> None:
        async with client_of(access=Access(token=Secret("correct-horse-battery"))) as client:
            with openai.OpenAI(base_url=f"{client.url}/v1", api_key="sk-wrong") as wrong:
                await asyncio.to_thread(test, wrong, client)
            with openai.OpenAI(base_url=f"{client.url}/v1", api_key="correct-horse-battery") as right:
                assert await asyncio.to_thread(lambda: right.chat.completions.create(**ASK).choices)

    asyncio.run(main())


def test_a_final_failure_is_an_error_at_once_and_not_tried_again() -> None:
    def test(client: openai.OpenAI, _: Client) -> None:
        with pytest.raises(openai.InternalServerError) as caught:
            client.with_options(timeout=4.0).chat.completions.create(**ASK)
        assert caught.value.code == "deadline"  # and not its own timeout, which it would try again

    asked(test, scenario=INSTANT.replace(latency=taking(30.0)))


def test_a_spent_budget_is_an_error_that_says_so() -> None:
    def test(client: openai.OpenAI, _: Client) -> None:
        with pytest.raises(openai.APIStatusError) as caught:
            client.chat.completions.create(**ASK)
        assert (caught.value.status_code, caught.value.code) == (402, "budget")

    asked(test, budget=1e-9)
