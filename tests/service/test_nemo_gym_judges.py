"""NeMo-Gym's judge, unchanged but for its model's URL, by way of its model server; and its /verify."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

import aiohttp
import pytest
import uvicorn
from judge_model import KEY, judged, saying
from nemo_gym import server_utils
from nemo_gym.base_resources_server import BaseVerifyResponse
from nemo_gym.config_types import BaseServerConfig
from nemo_gym.server_utils import GlobalAIOHTTPAsyncClientConfig, ServerClient, set_global_aiohttp_client
from omegaconf import OmegaConf
from resources_servers.equivalence_llm_judge.app import (
    LLMJudgeResourcesServer,
    LLMJudgeResourcesServerConfig,
    LLMJudgeVerifyRequest,
)
from responses_api_models.openai_model.app import SimpleModelServer, SimpleModelServerConfig

pytestmark = [pytest.mark.nemo_gym, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

PROMPT = str(files("resources_servers.equivalence_llm_judge") / "prompt_templates/equivalence_llm_judge.txt")


def client_of(port: int) -> ServerClient:
    model = {"responses_api_models": {"openai_model": {"host": "127.0.0.1", "port": port}}}
    return ServerClient(
        head_server_config=BaseServerConfig(host="127.0.0.1", port=1),
        global_config_dict=OmegaConf.create({"judge": model}),
    )


@asynccontextmanager
async def model_server(url: str) -> AsyncIterator[int]:
    """NeMo-Gym's server for a model behind the OpenAI API: its port."""
    config = SimpleModelServerConfig(
        host="127.0.0.1", port=0, entrypoint="", name="judge",
        openai_base_url=f"{url}/v1", openai_api_key=KEY, openai_model="m",
    )  # fmt: skip
    app = SimpleModelServer(config=config, server_client=client_of(0)).setup_webserver()
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    listening = socket.create_server(("127.0.0.1", 0))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    yield listening.getsockname()[1]
    server.should_exit = True
    await serving


def judge_server(port: int) -> Any:
    config = LLMJudgeResourcesServerConfig(
        host="127.0.0.1", port=0, entrypoint="",
        judge_model_server={"type": "responses_api_models", "name": "judge"},
        judge_responses_create_params={"input": []},
        judge_prompt_template_fpath=PROMPT, check_twice_swap=True,
    )  # fmt: skip
    return LLMJudgeResourcesServer(config=config, server_client=client_of(port))


def row(number: int) -> Any:
    said = {"type": "output_text", "text": f"It is {number}.", "annotations": []}
    message = {"type": "message", "id": "1", "role": "assistant", "status": "completed", "content": [said]}
    response = {
        "id": "r", "object": "response", "created_at": 1, "model": "m", "output": [message],
        "parallel_tool_calls": False, "tool_choice": "none", "tools": [],
    }  # fmt: skip
    asked = {"input": [{"role": "user", "content": f"What is {number}?"}]}
    return LLMJudgeVerifyRequest(
        responses_create_params=asked, response=response, expected_answer=f"{number}"
    )


@pytest.mark.parametrize(("verdict", "reward", "calls"), [("[[A=B]]", 1.0, 2), ("[[A!=B]]", 0.0, 1)])
def test_the_equivalence_judge(verdict: str, reward: float, calls: int) -> None:
    async def test(url: str) -> None:
        session = set_global_aiohttp_client(GlobalAIOHTTPAsyncClientConfig())
        try:
            async with model_server(url) as port:
                judge = judge_server(port)
                found = await asyncio.gather(*(judge.verify(row(number)) for number in range(12)))
        finally:
            await session.close()
            server_utils._GLOBAL_AIOHTTP_CLIENT = None  # it has no other way to be closed on its own loop
        assert [one.reward for one in found] == [reward] * 12
        assert all(len(one.judge_evaluations) == calls for one in found)

    judged(test, saying(verdict))


def test_our_verify_takes_and_gives_its_own_shapes() -> None:
    async def test(url: str) -> None:
        asked = row(7).model_dump(mode="json")
        async with aiohttp.ClientSession() as session, session.post(f"{url}/verify", json=asked) as reply:
            found = BaseVerifyResponse.model_validate(await reply.json())
        assert (reply.status, found.reward) == (200, 0.8)

    judged(test, saying('{"reason": "right", "score": 8}'))
