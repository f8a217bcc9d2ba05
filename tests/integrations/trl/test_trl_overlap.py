"""overlap() around a trainer in miniature: when the judge is asked, and with what."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from loopback import INSTANT, Loopback, loopback, reserved_port, taking
from until import until

from plaudit import Reference, Rubric
from plaudit.errors import BatchFailed
from plaudit.integrations.trl import overlap, reward_function

JUDGE = Rubric("Is it correct and brief?", scale=(0, 10))
PROMPTS = ["What is 7 x 8?"] * 4
GREETING = 1
"""The call that asks whether the judge answers at all, before the first generation."""


class Miniature:
    """A step as TRL goes about it: generate, log-probs, rewards."""

    args = None
    beta = 0.04
    num_generations = 4

    def __init__(self, reward: Any, server: Loopback, *, fields: dict[str, Any] | None = None) -> None:
        self.reward_funcs = [reward]
        self._server = server
        self._fields = fields or {}
        self.metrics: dict[str, float] = {}
        self.asked_before_rewards = 0

    def step(self, **columns: Any) -> list[float | None]:
        rows = [{"prompt": prompt, **columns} for prompt in PROMPTS]
        rewards: list[float | None] = self._generate_and_score_completions(rows)
        return rewards

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        prompts = [row["prompt"] for row in inputs]
        generated = self._generate(prompts)
        self._log_probs()
        for row, values in enumerate(zip(*self._fields.values(), strict=True)):
            inputs[row] |= dict(zip(self._fields, values, strict=True))
        return self._calculate_rewards(inputs, prompts, generated[3], generated[1])

    def _generate(self, prompts: Any) -> Any:
        completions = [f"It is {number}." for number in range(len(prompts))]
        ids = [[1, 2, 3]] * len(prompts)
        return ids, ids, None, completions, None, self._fields, None, None

    def _log_probs(self) -> None:
        until(lambda: self._server.stats.requests > GREETING)
        self.asked_before_rewards = self._server.stats.requests - GREETING

    def _calculate_rewards(
        self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any
    ) -> Any:
        columns = {name: [row[name] for row in inputs] for name in inputs[0] if name != "prompt"}
        return asyncio.run(
            self.reward_funcs[0](
                prompts=prompts,
                completions=completions,
                completion_ids=completion_ids_list,
                log_metric=self._log_metric,
                **columns,
            )
        )

    def _log_metric(self, name: str, value: float) -> None:
        self.metrics[name] = value


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback(INSTANT) as found:
        yield found


def test_the_judge_is_asked_before_the_rewards_are_due_and_only_once(
    server: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    reward = reward_function(JUDGE, url=server.url, model="m", cache=None)
    trainer = overlap(Miniature)(reward, server)
    rewards = trainer.step(level=3)
    assert trainer.asked_before_rewards >= 1
    assert server.stats.requests == GREETING + 4
    assert None not in rewards
    assert not caplog.records


def test_what_a_rollout_adds_to_its_rows_reaches_the_judge(
    server: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    reward = reward_function(Reference(), reference="truth", url=server.url, model="m", cache=None)
    trainer = overlap(Miniature)(reward, server, fields={"truth": ["56"] * 4})
    assert None not in trainer.step()
    assert trainer.asked_before_rewards >= 1
    assert server.stats.requests == GREETING + 4
    assert not caplog.records


def test_completions_that_change_after_generation_are_judged_as_they_are(
    server: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    class Trimming(Miniature):
        def _calculate_rewards(
            self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any
        ) -> Any:
            return super()._calculate_rewards(inputs, prompts, [""] * len(completions), completion_ids_list)

    reward = reward_function(JUDGE, url=server.url, model="m", cache=None)
    assert overlap(Trimming)(reward, server).step() == [0.0] * 4
    assert "it is judged anew" in caplog.text


def test_a_step_that_breaks_leaves_nothing_under_way(caplog: pytest.LogCaptureFixture) -> None:
    class Breaking(Miniature):
        def _log_probs(self) -> None:
            super()._log_probs()
            raise MemoryError("no room for log-probs")

    with loopback(INSTANT.replace(latency=taking(0.01))) as server:
        reward = reward_function(JUDGE, url=server.url, model="m", cache=None, max_concurrent=1)
        with pytest.raises(MemoryError):
            overlap(Breaking)(reward, server).step()
        asyncio.run(reward(["Another question?"], ["Yes."]))
        assert server.stats.requests < 5  # the four of the step come first, or not at all
    assert "judged anew" not in caplog.text


def test_a_trainer_that_keeps_its_completions_elsewhere_goes_on_without(
    server: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    class Changed(Miniature):
        def _generate(self, prompts: Any) -> Any:
            return {"completions": super()._generate(prompts)}

        def _calculate_rewards(
            self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any
        ) -> Any:
            return super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            prompts = [row["prompt"] for row in inputs]
            generated = self._generate(prompts)["completions"]
            return self._calculate_rewards(inputs, prompts, generated[3], generated[1])

    trainer = overlap(Changed)(reward_function(JUDGE, url=server.url, model="m", cache=None), server)
    assert [None in trainer.step() for _ in range(2)] == [False, False]
    assert caplog.text.count("Changed._generate gives other things") == 1


def test_without_a_judge_there_is_nothing_to_submit(
    server: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    async def brevity(completions: list[str], **_: Any) -> list[float]:
        return [1.0] * len(completions)

    class Impatient(Miniature):
        def _log_probs(self) -> None:
            """Nobody is asked."""

    assert overlap(Impatient)(brevity, server).step() == [1.0] * 4
    assert "finds no judge among reward_funcs" in caplog.text


def test_a_judge_that_will_never_answer_ends_the_training_before_the_first_generation(
    server: Loopback,
) -> None:
    class Generating(Miniature):
        def _generate(self, prompts: Any) -> Any:
            raise AssertionError("nothing is to be generated")

    with reserved_port() as port:
        reward = reward_function(JUDGE, url=f"http://127.0.0.1:{port}/v1", model="missing")
        trainer = overlap(Generating)(reward, server)
        with loopback(port=port), pytest.raises(BatchFailed, match="missing"):  # it came up meanwhile
            trainer.step()
