"""On its way through verl's reward loop a response is decoded, read, checked and rendered once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from counted_calls import counted_calls
from loopback import loopback
from verl_rows import Words, item

from plaudit.integrations.verl.batch_row import read_row
from plaudit.integrations.verl.reward_engine import judge_for, open_reward_engine, resolve
from plaudit.integrations.verl.reward_settings import read_settings
from plaudit.integrations.verl.row_reward import RowReward
from plaudit.integrations.verl.rule_score import RuleScorer

ROWS = 20
ONCE = ("settings.resolve", "setup.judges.judge_of")
FOR_EACH_ROW = (
    "rows.read_prompt",
    "rows.read_reference",
    "judges.prompt.check",
    "judges.rubric.render",
    "judges.rubric.parse",
    "judges.scale.unit_score",
)


class CountingWords(Words):
    """A tokenizer that remembers what it was asked to decode."""

    def __init__(self) -> None:
        self.decoded: Counter[tuple[int, ...]] = Counter()

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        self.decoded[tuple(ids)] += 1
        return super().decode(ids, skip_special_tokens=skip_special_tokens)


def test_nothing_is_done_twice_in_the_reward_loop() -> None:
    words = CountingWords()

    async def main(url: str) -> None:
        table = {"base_url": url, "model": "m", "cache": "off", "rubric": "Is it right?", "rule": "off"}
        settings = read_settings(table)
        plain = resolve(settings)
        engine = open_reward_engine(settings, plain)
        rule = RuleScorer(lambda **_: None, settings.rule_use)
        rewards = RowReward(settings, judge_for(settings, plain), engine, rule)
        rows = [read_row(item((5, number), uid=str(number)), words) for number in range(100, 100 + ROWS)]
        await asyncio.gather(*(rewards.score(row) for row in rows))
        engine.close()

    with loopback() as server, counted_calls() as calls:
        asyncio.run(main(server.url))
    assert words.decoded == {(5, number): 1 for number in range(100, 100 + ROWS)}
    assert {name: calls[name] for name in ONCE} == dict.fromkeys(ONCE, 1)
    assert {name: calls[name] for name in FOR_EACH_ROW} == dict.fromkeys(FOR_EACH_ROW, ROWS)
