"""The adapter for verifiers, with its own tasks and traces (v1)."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import verifiers.v1 as vf
from choosy import JUDGE, Choosy
from complaints import about
from loopback import INSTANT, loopback
from refusing import refused_before_generating
from verifiers.v1.errors import TaskError
from verifiers.v1.graph import MessageNode

from plaudit import Checklist, Reply, Rubric
from plaudit.errors import BatchFailed, ConfigError, NoVerdict
from plaudit.integrations.verifiers import reward, rubric
from plaudit.simulator import Fault

pytestmark = pytest.mark.trainers

PATH = "plaudit.integrations.verifiers:judged"


class Question(vf.TaskData):  # type: ignore[misc]
    answer: str | None = None


class Rubricked(vf.TaskData):  # type: ignore[misc]
    rubric: list[dict[str, Any]]


class Asked(vf.Task[Question, vf.State, vf.TaskConfig]):  # type: ignore[misc]
    """A task without rewards of its own."""


def task(fn: str = PATH) -> Any:
    config = vf.TaskConfig(rewards={"judged": vf.RewardFunctionConfig(fn=fn, weight=2.0)})
    return Asked(Question(prompt="Why is the sky blue?", answer="It scatters."), config)


def trace(asked: Any, reply: str) -> Any:
    return vf.Trace[Question, vf.State, vf.AgentConfig](
        task=vf.TraceTask(type="Asked", data=asked.data),
        agent=vf.AgentInfo(config=vf.AgentConfig()),
        root_reply=reply,
    )


def test_a_task_takes_it_by_its_path_and_records_its_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAUDIT_RUBRIC", "Is it correct and brief?")
    asked = task()
    with loopback(INSTANT) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        traces = [trace(asked, f"Answer {number}.") for number in range(8)]

        async def main() -> None:
            await asyncio.gather(*(asked.score(one) for one in traces))

        asyncio.run(main())
        assert server.stats.answered == 8
    scores = [one.rewards["judged"].score for one in traces]
    assert all(0.0 <= score <= 1.0 for score in scores)
    assert len(set(scores)) > 1
    assert [one.reward for one in traces] == [2.0 * score for score in scores]


def test_a_missing_verdict_leaves_the_trace_without_a_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = task()
    one = trace(asked, "It scatters.")
    with loopback(INSTANT.replace(faults=(Fault("refusal"),))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with pytest.raises(TaskError, match="no verdict"):
            asyncio.run(asked.score(one))
    assert one.rewards["judged"] is None


def test_a_judge_of_ones_own_comes_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    with loopback(INSTANT) as server:
        file.write_text(
            "from plaudit import Rubric\n"
            "from plaudit.integrations.verifiers import reward\n"
            f"mine = reward(Rubric('Is it kind?'), url={server.url!r}, model='m')\n"
        )
        asked = task(f"{file}:mine")
        one = trace(asked, "It scatters.")
        asyncio.run(asked.score(one))
        assert server.stats.answered == 1
    assert one.rewards["judged"] is not None


def test_task_answer_and_reply_reach_the_judge() -> None:
    judge = Choosy()
    judged = reward(JUDGE, **judge.options)
    asked = task()
    assert asyncio.run(judged(asked.data, trace(asked, "worth 7"))) == 0.7
    assert all(text in judge.asked[0] for text in ("Why is the sky blue?", "It scatters.", "worth 7"))
    with pytest.raises(NoVerdict):
        asyncio.run(judged(task=asked.data, trace=trace(asked, "lost")))


def test_a_version_without_a_rubric_says_what_to_do_instead() -> None:
    with pytest.raises(ConfigError, check=about("", "Rubric", "judged")):
        rubric(JUDGE, **Choosy().options)


def test_a_judge_reads_the_task_s_other_fields_like_its_rubric() -> None:
    class Met(Choosy):
        async def send(self, request: Any) -> Reply:
            self.asked.append(request.messages[0]["content"])
            return Reply('{"c1": true, "c2": false}')

    transport = Met()
    judged = reward(Checklist(), **transport.options)
    data = Rubricked(prompt="Why?", rubric=[{"criterion": "Is kind", "points": 3}, {"criterion": "Is short"}])
    assert asyncio.run(judged(data, SimpleNamespace(messages=[], last_reply="Because."))) == 0.75
    assert "c1: Is kind" in transport.asked[0]


def test_a_trace_with_tools_is_judged_turn_by_turn() -> None:
    class Shown(Choosy):
        async def send(self, request: Any) -> Reply:
            self.asked.append(request.messages[-1]["content"])
            return Reply('{"reason": "right", "score": 10}')

    messages = [
        vf.UserMessage(content="What is 2 + 2?"),
        vf.AssistantMessage(content="", tool_calls=[vf.ToolCall(id="c1", name="add", arguments="[2, 2]")]),
        vf.ToolMessage(tool_call_id="c1", content="4"),
        vf.AssistantMessage(content="It is 4."),
    ]
    transport = Shown()
    judged = reward(Rubric("Is it right?"), **transport.options)
    asked = task()
    looped = trace(asked, "It is 4.").model_copy(update={
        "nodes": [
            MessageNode(message=one, parent=place - 1 if place else None, sampled=one.role == "assistant")
            for place, one in enumerate(messages)
        ]
    })  # fmt: skip
    assert asyncio.run(judged(asked.data, looped)) == 1.0
    (text,) = transport.asked
    assert re.search(r"<turn-[A-Z]+ assistant calls add, call 1>\n\[2, 2\]", text)
    assert re.search(r"<turn-[A-Z]+ tool add, result of call 1>\n4\n", text)


def plugged(folder: Path, server: Any, key: str) -> None:
    """A module of the user's with a judge that verifiers loads by the module's name."""
    (folder / f"my_judge_{key}.py").write_text(
        "from plaudit import Rubric\n"
        "from plaudit.integrations.verifiers import plugin\n"
        f"MyJudge = plugin(Rubric('Is it kind?'), url={server.url!r}, model='m', api_key='sk-{key}')\n"
        "__all__ = ['MyJudge']\n"
    )


def test_a_judge_that_is_a_plug_in_is_loaded_with_the_configuration_and_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    with loopback(INSTANT.replace(api_key="sk-right")) as server:
        plugged(tmp_path, server, "wrong")
        with pytest.raises(BatchFailed, match=r"will never answer: .* 401"):
            vf.TaskConfig(judges=[{"id": "my-judge-wrong"}])
        plugged(tmp_path, server, "right")
        with pytest.raises(ValueError, match="model of the entry is not used"):  # by pydantic
            vf.TaskConfig(judges=[{"id": "my-judge-right", "model": "another"}])
        config = vf.TaskConfig(judges=[{"id": "my-judge-right", "name": "kind", "weight": 0.5}])
        config = vf.TaskConfig.model_validate(config.model_dump())  # as it goes to other processes
        asked = Asked(Question(prompt="Why is the sky blue?"), config)
        one = trace(asked, "It scatters.")
        asyncio.run(asked.score(one))
        assert server.stats.answered == 1
    assert one.rewards["kind"].weight == 0.5
    assert 0.0 <= one.rewards["kind"].score <= 1.0


def test_a_reward_of_a_task_s_own_module_is_asked_about_when_the_module_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with refused_before_generating() as options:
        reward(JUDGE, **options)
    with loopback(INSTANT.replace(api_key="sk-right")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong")
        monkeypatch.setenv("PLAUDIT_MODEL", "m")
        with pytest.raises(BatchFailed, match=r"will never answer: .* 401"):
            from plaudit.integrations.verifiers import judged  # noqa: F401
