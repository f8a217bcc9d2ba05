"""A rubric that comes with each row, through every way in: the same criteria, the same reward."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from choosy import Choosy

from plaudit import Checklist, Engine, Sample, SplitChecklist
from plaudit.compute_score import row_sample
from plaudit.errors import ConfigError
from plaudit.integrations.atropos import group_scorer
from plaudit.integrations.rendezvous import Rendezvous
from plaudit.integrations.scored import Scored, sample_of
from plaudit.integrations.slime import reward_model
from plaudit.integrations.trl import reward_function
from plaudit.integrations.verl.batch_row import read_row
from plaudit.integrations.verl.reward_settings import read_settings
from plaudit.integrations.verl.row_reward import RowReward
from plaudit.integrations.verl.rule_score import RuleScorer
from plaudit.judges import Judge, Panel
from plaudit.setup import json_lines
from plaudit.types import ChatRequest, Reply, Request

RUBRIC = [
    {"criterion": "Says 56", "points": 7},
    {"criterion": "Says please", "points": 5},
    {"criterion": "Says seven", "points": 10},
    {"criterion": "Says damn", "points": -6},
]
RESPONSE = "It is 56, seven times eight, damn it."
PROMPT = "What is 7 x 8?"
WORTH = 11 / 22


class Literal(Choosy):
    """A judge for criteria like `Says 56`: met where the response has the word."""

    async def send(self, request: Request) -> Reply:
        assert isinstance(request, ChatRequest)
        system, user = (message["content"] for message in request.messages)
        self.asked.append(system)
        response = user[user.index("<response-") : user.index("</response-")]
        words = re.findall(r"^(\w+): Says (\w+)$", system, re.M)
        return Reply(json.dumps({name: word in response for name, word in words}))


class Place(Rendezvous):
    """Where verl's rows are judged, in this process."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self.ascore = engine.ascore
        self.close = engine.close


class Tokenizer:
    def decode(self, _ids: Any, *, skip_special_tokens: bool) -> str:
        assert skip_special_tokens
        return RESPONSE


async def no_rule(**_: Any) -> float:
    raise NotImplementedError("no such data source")


def through_the_engine(judge: Judge | Panel, transport: Literal, rubric: Any) -> float | None:
    with Engine(**transport.options) as engine:
        return engine.score([Sample(PROMPT, RESPONSE, extra={"rubric": rubric})], judge)[0].score


def through_lines(judge: Judge | Panel, transport: Literal, rubric: Any) -> float | None:
    raw = json.dumps({"prompt": PROMPT, "response": RESPONSE, "rubric": rubric}).encode()
    line = json_lines.parse(1, raw)
    assert isinstance(line, json_lines.Line)
    with Engine(**transport.options) as engine:
        return engine.score([line.sample], judge)[0].score


def through_scored(judge: Judge | Panel, transport: Literal, rubric: Any) -> float:
    sample = sample_of(PROMPT, RESPONSE, extra={"rubric": rubric})
    return float(Scored(judge, **transport.options).rewards([sample])[0])


def through_compute_score(judge: Judge | Panel, transport: Literal, rubric: Any) -> float:
    sample = row_sample("own", RESPONSE, None, {"question": PROMPT, "rubric": rubric})
    return float(Scored(judge, **transport.options).rewards([sample])[0])


def through_slime(judge: Judge | Panel, transport: Literal, rubric: Any) -> float:
    row = SimpleNamespace(
        prompt=PROMPT, response=RESPONSE, label=None, group_index=0, metadata={"rubric": rubric}
    )
    model = reward_model(judge, **transport.options)
    return float(asyncio.run(model(SimpleNamespace(reward_key=None), row)))


def through_atropos(judge: Judge | Panel, transport: Literal, rubric: Any) -> float:
    turns = [{"role": "user", "content": PROMPT}, {"role": "assistant", "content": RESPONSE}]
    scorer = group_scorer(judge, **transport.options)
    group = asyncio.run(scorer({"tokens": [[1]], "masks": [[1]], "messages": [turns]}, rubric=rubric))
    assert group is not None
    return float(group["scores"][0])


def through_trl(judge: Judge | Panel, transport: Literal, rubric: Any) -> float | None:
    function = reward_function(judge, **transport.options)
    return asyncio.run(function([PROMPT], [RESPONSE], rubric=[rubric]))[0]


def through_verl(judge: Judge | Panel, transport: Literal, rubric: Any) -> float:
    ids = np.array([1, 2])
    columns = {"raw_prompt": np.array([{"role": "user", "content": PROMPT}], dtype=object), "uid": "u"}
    columns["rubric"] = np.array(rubric, dtype=object)
    item = SimpleNamespace(
        batch={"prompts": ids, "responses": ids, "attention_mask": np.ones(4, dtype=int)},
        non_tensor_batch=columns,
    )
    settings = read_settings({}, rollouts=1)
    with Engine(**transport.options) as engine:
        reward = RowReward(settings, judge, Place(engine), RuleScorer(no_rule, settings.rule_use))
        return asyncio.run(reward.score(read_row(item, Tokenizer(), is_validation=False)))[0]


Way = Callable[[Judge | Panel, Literal, Any], float | None]
WAYS: list[Way] = [
    through_the_engine,
    through_lines,
    through_scored,
    through_compute_score,
    through_slime,
    through_atropos,
    through_trl,
    through_verl,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize(
    ("judge", "calls"),
    [
        (Checklist(total="points", clip=True), 1),
        (SplitChecklist(total="points", clip=True, per_call=3), 2),
        (SplitChecklist(total="points", clip=True), 4),
    ],
    ids=["one call", "three a call", "one each"],
)
def test_a_row_earns_by_its_own_rubric(judge: Judge | Panel, calls: int, way: Way) -> None:
    transport = Literal()
    assert way(judge, transport, RUBRIC) == pytest.approx(WORTH)
    assert len(transport.asked) == calls


SHAPES: dict[str, tuple[Any, float]] = {
    "plain": (["Says 56", "Says please"], 1 / 2),
    "rubrics as rewards": (
        [
            {"title": "Right", "description": "Says 56", "weight": 3},
            {"title": "Pitfall", "description": "Says damn", "weight": -1},
        ],
        3 / 4,
    ),
    "open-instruct": (
        {
            "query": PROMPT,
            "rubrics": [{"description": "Says 56", "weight": 1}, {"description": "Says no", "weight": 3}],
        },
        1 / 4,
    ),
    "a tree": (
        {
            "requirements": "The paper is reproduced.",
            "weight": 1,
            "sub_tasks": [
                {"requirements": "Says 56", "weight": 2, "sub_tasks": []},
                {
                    "requirements": "It is polite.",
                    "weight": 1,
                    "sub_tasks": [
                        {"requirements": "Says please", "weight": 3},
                        {"requirements": "Says seven", "weight": 1},
                    ],
                },
            ],
        },
        (2 * 1 + 1 * 1 / 4) / 3,
    ),
    "JSON text": ('["Says 56", "Says please", "Says seven"]', 2 / 3),
}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_rubric_means_the_same_everywhere(shape: str, way: Way) -> None:
    rubric, worth = SHAPES[shape]
    assert way(Checklist(), Literal(), rubric) == pytest.approx(worth)


@pytest.mark.parametrize(
    "way", [way for way in WAYS if way is not through_verl], ids=lambda way: way.__name__
)
def test_a_rubric_of_the_wrong_shape_stops_the_batch_before_the_first_call(way: Way) -> None:
    transport = Literal()
    with pytest.raises(ConfigError, check=lambda error: "rubric[1].points='many'" in str(error)):
        way(Checklist(), transport, [RUBRIC[0], {"criterion": "Says please", "points": "many"}])
    assert transport.asked == []


def test_in_verl_it_costs_its_own_row(caplog: pytest.LogCaptureFixture) -> None:
    transport = Literal()
    through_verl(Checklist(), transport, [{"criterion": "Says please", "points": "many"}])
    assert "rubric[0].points='many'" in caplog.text
    assert transport.asked == []


def test_a_label_of_open_instruct_is_the_rubric_and_not_shown_as_the_reference() -> None:
    label = {"query": PROMPT, "rubrics": [{"description": "Says 56", "weight": 1.0}]}
    transport = Literal()
    sample = sample_of(PROMPT, RESPONSE, json.dumps(label))
    scored = Scored(Checklist(column="reference"), **transport.options)
    assert float(scored.rewards([sample])[0]) == 1.0
    assert "rubrics" not in transport.asked[0]


def test_two_rows_that_differ_in_their_points_alone_share_no_verdict_in_the_cache() -> None:
    transport = Literal()
    lighter = [{**entry, "points": 1} for entry in RUBRIC]
    with Engine(**transport.options) as engine:
        rows = [Sample(PROMPT, RESPONSE, extra={"rubric": rubric}) for rubric in (RUBRIC, lighter, RUBRIC)]
        scores = [verdict.score for verdict in engine.score(rows, Checklist(total="points"))]
    assert scores == [11 / 22, 3 / 4, 11 / 22]
    assert len(transport.asked) == 2


def test_calls_about_criteria_one_by_one_serve_rubrics_with_other_points() -> None:
    transport = Literal()
    lighter = [{**entry, "points": 1} for entry in RUBRIC]
    with Engine(**transport.options) as engine:
        rows = [Sample(PROMPT, RESPONSE, extra={"rubric": rubric}) for rubric in (RUBRIC, lighter)]
        scores = [verdict.score for verdict in engine.score(rows, SplitChecklist(total="points"))]
    assert scores == [11 / 22, 3 / 4]
    assert len(transport.asked) == 4


def test_a_line_without_a_rubric_is_named_by_its_number() -> None:
    raw = json.dumps({"prompt": PROMPT, "response": RESPONSE, "checks": RUBRIC}).encode()
    bad = json_lines.parse(7, raw, Checklist().check)
    assert isinstance(bad, json_lines.BadLine)
    assert str(bad).startswith("line 7: rubric is missing")
    assert "there are: checks" in bad.reason
    assert isinstance(json_lines.parse(7, raw, Checklist(column="checks").check), json_lines.Line)
