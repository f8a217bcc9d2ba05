"""Atropos' own environment, rollout server and trainer's arithmetic, with the adapter between them."""

from __future__ import annotations

import asyncio
import logging
import random
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from atroposlib.api.server import app
from atroposlib.envs.base import APIServerConfig, BaseEnv, BaseEnvConfig
from choosy import JUDGE, Choosy
from example_trainer.data import pad_data_to_good_offset
from served_app import served_app
from tiny_policy import save_tiny_tokenizer

from plaudit.errors import BatchFailed
from plaudit.integrations.atropos import group_scorer

pytestmark = pytest.mark.environments

SIZE = 4


@pytest.fixture
def rollout_server() -> Iterator[str]:
    """The URL of Atropos' own server."""
    with served_app(app) as url:
        yield url


def environment(url: str, folder: Path, score_group: Any, *, one_by_one: bool) -> Any:
    """An environment whose items are the responses that a policy would have given."""

    def row(env: Any, text: str) -> dict[str, Any]:
        messages = [
            {"role": "user", "content": "Why is the sky blue?"},
            {"role": "assistant", "content": text},
        ]
        tokens = env.tokenizer.apply_chat_template(messages, tokenize=True, return_dict=False)
        masks = [-100, *tokens[1:]]
        return {"tokens": tokens, "masks": masks, "messages": messages, "scores": 0.0}

    class Whole(BaseEnv):  # type: ignore[misc, unused-ignore]
        async def get_next_item(self) -> Any:
            raise AssertionError("items are given")

        async def evaluate(self, *_: Any, **__: Any) -> None:
            """Not here."""

        async def collect_trajectories(self, item: Any) -> Any:
            rows = [row(self, text) for text in item["texts"]]
            group = {name: [one[name] for one in rows] for name in ("tokens", "masks", "messages")}
            return await score_group(group, reference="It scatters."), []

    class OneByOne(Whole):
        collect_trajectories = BaseEnv.collect_trajectories

        async def collect_trajectory(self, item: Any) -> Any:
            return row(self, item["texts"].pop(0)), []

        async def postprocess_histories(self, trajectories: Any) -> Any:
            return await score_group(trajectories, reference="It scatters.")

    config = BaseEnvConfig(
        group_size=SIZE,
        tokenizer_name=save_tiny_tokenizer(folder),
        rollout_server_url=url,
        use_wandb=False,
        wandb_name="judged",
        include_messages=True,
        batch_size=SIZE,
    )
    servers = [APIServerConfig(model_name="m", base_url=f"{url}/v1", api_key="x", health_check=False)]
    return (OneByOne if one_by_one else Whole)(config, servers, testing=True)


async def batches_of(url: str, env: Any, groups: list[list[str]]) -> list[Any]:
    """What a trainer gets: it registers, the environment plays, and the batches are fetched."""
    run = {"wandb_group": "g", "wandb_project": "p", "batch_size": SIZE, "max_token_len": 512}
    more = {"checkpoint_dir": "", "save_checkpoint_interval": 0, "starting_step": 0, "num_steps": 10}
    async with aiohttp.ClientSession() as session:
        await session.get(f"{url}/reset_data")
        await session.post(f"{url}/register", json=run | more)
        await session.get(f"{url}/batch")  # the trainer is ready
        await env.register_env()
        await env.get_server_info()
        for number, texts in enumerate(groups):
            env.running_items[str(number)] = {"item": {"texts": list(texts)}}
        await asyncio.gather(*(env.handle_env(str(number)) for number in range(len(groups))))
        batches = []
        while (batch := (await (await session.get(f"{url}/batch")).json())["batch"]) is not None:
            batches.extend(batch)
        return batches


@pytest.mark.parametrize("one_by_one", [False, True], ids=["collect_trajectories", "collect_trajectory"])
def test_a_trainer_gets_whole_groups_with_the_advantages_that_the_page_names(
    rollout_server: str, tmp_path: Path, one_by_one: bool
) -> None:
    draw = random.Random(1)
    worths = [[draw.choice([*range(11), None]) for _ in range(SIZE)] for _ in range(12)]
    worths[0] = [3, None, None, None]  # nothing to compare
    texts = [["lost" if worth is None else f"worth {worth}" for worth in group] for group in worths]
    scorer = group_scorer(JUDGE, **Choosy().options, max_failure_rate=1.0)
    env = environment(rollout_server, tmp_path, scorer, one_by_one=one_by_one)
    batches = asyncio.run(batches_of(rollout_server, env, texts))
    by_texts = {tuple(turns[-1]["content"] for turns in one["messages"]): one for one in batches}
    for group, said in zip(worths, texts, strict=True):
        judged = [worth / 10 for worth in group if worth is not None]
        found = by_texts.get(tuple(said))
        if len(judged) < 2 or len(set(judged)) < 2:  # Atropos skips groups whose scores are the same
            assert found is None
            continue
        assert found is not None
        mean = sum(judged) / len(judged)
        filled = [mean if worth is None else worth / 10 for worth in group]
        assert found["scores"] == pytest.approx(filled)
        centred = [value - mean for value in filled]
        _, _, trained, *_ = pad_data_to_good_offset(
            {"batch": [{**found, "generation_params": None}]}, SIZE, extract_inference_logprobs=False
        )
        spread = statistics.pstdev(filled)
        assert trained[0].flatten().tolist() == pytest.approx([value / spread for value in centred], abs=1e-4)
    assert len(batches) > 6


def test_a_judge_that_never_answers_is_in_the_log_of_atropos_and_nothing_is_sent(
    rollout_server: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def never(group: Any, **_: Any) -> Any:
        raise BatchFailed("the judge will never answer")

    env = environment(rollout_server, tmp_path, never, one_by_one=False)
    with caplog.at_level(logging.ERROR):
        assert asyncio.run(batches_of(rollout_server, env, [["worth 1"] * SIZE])) == []
    assert "the judge will never answer" in caplog.text
