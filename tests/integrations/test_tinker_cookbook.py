"""The adapter for Tinker's cookbook: a group is judged together, and a missing verdict gets its mean."""

from __future__ import annotations

import asyncio
import pickle
import random
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from choosy import JUDGE, Choosy, Unhurried
from complaints import about
from loopback import INSTANT, loopback
from refusing import refused_before_generating
from tinker_cookbook.completers import TokenCompleter, TokensWithLogprobs
from tinker_cookbook.renderers import get_renderer
from tinker_cookbook.rl.data_processing import assemble_training_data, compute_advantages
from tinker_cookbook.rl.rollouts import do_group_rollout
from tiny_policy import save_tiny_tokenizer, tiny_tokenizer
from transformers import AutoTokenizer

from plaudit import Checklist
from plaudit.errors import ConfigError
from plaudit.integrations.scored import Scored
from plaudit.integrations.tinker_cookbook import JudgedGroupBuilder

pytestmark = pytest.mark.environments

MESSAGES = [{"role": "user", "content": "Why is the sky blue?"}]


def builder(size: int, judge: Choosy | None = None, **fields: Any) -> Any:
    if judge is not None:
        fields["scored"] = Scored(JUDGE, max_failure_rate=1.0, **judge.options)
    renderer = get_renderer("role_colon", fields.pop("tokenizer", None) or tiny_tokenizer())
    return JudgedGroupBuilder(renderer, MESSAGES, size, **fields)


def policy(answers: Sequence[str]) -> Any:
    """A policy that gives these answers, one after another, whatever it is asked."""
    tokenizer, rest = tiny_tokenizer(), iter(answers)

    class Scripted(TokenCompleter):  # type: ignore[misc, unused-ignore]
        async def __call__(self, model_input: Any, stop: Any, *, max_tokens: int | None = None) -> Any:
            assert "Why is the sky blue?" in tokenizer.decode(model_input.to_ints())
            tokens = tokenizer.encode(f" {next(rest)}\n\nUser:")
            return TokensWithLogprobs(tokens, [0.0] * len(tokens))

    return Scripted()


def rolled_out(made: Any, *answers: str) -> Any:
    """What the cookbook makes of a group."""
    return asyncio.run(do_group_rollout(made, policy(answers)))


def test_a_group_gets_its_rewards() -> None:
    judge = Choosy()
    group = rolled_out(builder(2, judge, reference="It scatters."), "worth 9", "worth 3")
    assert group.get_total_rewards() == [0.9, 0.3]
    assert group.metrics_G == [{"judge_valid": 1.0}, {"judge_valid": 1.0}]
    assert all(text in judge.asked[0] for text in ("Why is the sky blue?", "It scatters."))
    assert not any("User:" in asked.split("worth", 1)[1].splitlines()[0] for asked in judge.asked)


def test_a_lost_row_has_no_advantage_and_moves_no_other() -> None:
    draw = random.Random(2)
    for _ in range(5):
        worths = [9, 1, *(draw.choice([*range(11), None]) for _ in range(draw.randrange(7)))]
        draw.shuffle(worths)
        said = ["lost" if worth is None else f"worth {worth}" for worth in worths]
        group = rolled_out(builder(len(said), Choosy()), *said)
        judged = [worth / 10 for worth in worths if worth is not None]
        if len(judged) < len(worths) / 2:
            continue  # too few are left to say anything about
        mean = sum(judged) / len(judged)
        (advantages,) = compute_advantages([group])
        wanted = [0.0 if worth is None else worth / 10 - mean for worth in worths]
        assert advantages.tolist() == pytest.approx(wanted, abs=1e-6)
        assert [one["judge_valid"] for one in group.metrics_G] == [worth is not None for worth in worths]
        rows, _ = assemble_training_data([group], [advantages])
        assert len(rows) == len(worths)


def test_a_group_that_was_lost_waits_for_no_other() -> None:
    """Other groups are always under way where rollouts are asynchronous."""

    async def main() -> list[Any]:
        judge = Unhurried()
        other = asyncio.create_task(do_group_rollout(builder(2, judge), policy(["worth 9", "worth 1"])))
        lost = await do_group_rollout(builder(2, judge), policy(["lost", "lost"]))
        assert not other.done()
        judge.released.set_result(None)
        return [lost, await other]

    lost, other = asyncio.run(main())
    assert lost.get_total_rewards() == [0.0, 0.0]  # and not the mean of another prompt's
    assert other.get_total_rewards() == [0.9, 0.1]


def test_a_row_brings_its_rubric_along() -> None:
    class Agreeing(Choosy):
        def verdict(self, worth: int) -> str:
            return '{"c1": true}'

    scored = Scored(Checklist(), **Agreeing().options)
    made = builder(2, scored=scored, columns={"rubric": ["It names scattering."]})
    assert rolled_out(made, "It scatters.", "It is.").get_total_rewards() == [1.0, 1.0]


def test_builders_that_were_pickled_share_one_engine(tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(save_tiny_tokenizer(tmp_path))
    with loopback(INSTANT) as server:
        scored = Scored(JUDGE, url=server.url, model="m")
        sent = [pickle.dumps(builder(2, scored=scored, tokenizer=tokenizer)) for _ in range(4)]
        before = threading.active_count()
        for number, one in enumerate(sent):
            group = rolled_out(pickle.loads(one), f"Because {number}.", "It scatters.")
            assert [metrics["judge_valid"] for metrics in group.metrics_G] == [1.0, 1.0]
        assert threading.active_count() - before <= 3


def test_a_key_that_is_refused_ends_the_run_before_the_first_generation() -> None:
    with refused_before_generating() as options:
        rolled_out(builder(2, scored=Scored(JUDGE, **options)))  # with no answer to give


@pytest.mark.parametrize(
    ("setting", "fields"),
    [
        ("messages", {"messages": "Why is the sky blue?"}),
        ("messages", {"renderer": MESSAGES, "messages": object()}),  # the wrong way round
        ("group_size", {"group_size": 0}),
        ("group_size", {"group_size": "8"}),
        ("scored", {"scored": JUDGE}),
        ("columns", {"columns": ["rubric"]}),
    ],
)
def test_what_a_builder_cannot_work_with_is_named_when_it_is_made(setting: str, fields: Any) -> None:
    given = {"renderer": object(), "messages": MESSAGES, "group_size": 8} | fields
    with pytest.raises(ConfigError, check=about(setting)):
        JudgedGroupBuilder(**given)
