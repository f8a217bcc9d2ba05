"""Scored: a number for every row, from any thread and loop, and what a missing verdict becomes."""

from __future__ import annotations

import asyncio
import importlib
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from choosy import JUDGE, Choosy, Unhurried
from complaints import about
from loopback import INSTANT, loopback, reserved_port

from plaudit import Group, Reference, compute_score
from plaudit.errors import BatchFailed, ConfigError, NoVerdict
from plaudit.integrations.openrlhf import reward_function
from plaudit.integrations.scored import Scored, one_by_one, sample_of
from plaudit.rewards import advantages
from plaudit.rows import SOURCE
from plaudit.types import Reply, Request


def scored(judge: Choosy) -> Scored:
    return Scored(JUDGE, **judge.options)


def test_rewards_lie_between_0_and_1_in_the_order_of_the_rows() -> None:
    rows = [sample_of("Why?", f"worth {worth}") for worth in (7, 0, 10)]
    scores = scored(Choosy()).rewards(rows)
    assert scores == [0.7, 0.0, 1.0]
    assert all(score.valid for score in scores)


def test_a_missing_verdict_moves_nothing_in_its_group() -> None:
    rows = [sample_of("Why?", response) for response in ("worth 9", "lost", "worth 3", "worth 6")]
    scores = scored(Choosy()).rewards(rows)
    assert scores == pytest.approx([0.9, 0.6, 0.3, 0.6])
    assert [score.valid for score in scores] == [True, False, True, True]
    assert advantages(scores, [row.group for row in rows])[1] == pytest.approx(0.0)


def test_a_row_that_comes_alone_gets_the_mean_of_those_before_it() -> None:
    one = scored(Choosy())
    for worth in (2, 4):
        one.rewards([sample_of("Why?", f"worth {worth}")])
    one.rewards([sample_of("How?", "worth 9")])
    (of_its_group,) = one.rewards([sample_of("Why?", "lost")])
    (of_none,) = one.rewards([sample_of("When?", "lost")])
    assert of_its_group == pytest.approx(0.3)
    assert of_none == 0.0
    assert not of_its_group.valid
    assert of_its_group.status == "failed"


class Held(Choosy):
    """Answers nothing about `slow` responses before it is released, and declines to judge `rude` ones."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun, self.has_declined, self.released = (threading.Event() for _ in range(3))

    async def send(self, request: Request) -> Reply:
        reply = await super().send(request)
        if "rude" in self.asked[-1]:
            self.has_declined.set()
            return Reply("", refusal="I will not judge this.")
        if "slow" in self.asked[-1]:
            self.has_begun.set()
            await asyncio.to_thread(self.released.wait)
        return reply


def test_a_row_without_a_verdict_waits_for_all_siblings_that_are_being_judged() -> None:
    judge = Held()
    one = scored(judge)
    one.rewards([sample_of("easy?", "worth 9")])
    one.rewards([sample_of("hard?", "worth 7")])
    with ThreadPoolExecutor(2) as pool:
        sibling = pool.submit(one.rewards, [sample_of("hard?", "worth 1, slow")])
        judge.has_begun.wait()
        rude = pool.submit(one.rewards, [sample_of("hard?", "rude")])
        judge.has_declined.wait()
        judge.released.set()
        assert sibling.result() == [0.1]
        assert rude.result() == [pytest.approx(0.4)]
        assert not rude.result()[0].valid


def test_on_an_event_loop_it_waits_too_and_gives_up_where_all_siblings_fail() -> None:
    one = scored(Held())

    async def both() -> list[float]:
        found = await asyncio.gather(*(one.arewards([sample_of("hard?", f"rude {n}")]) for n in range(2)))
        return [float(score) for (score,) in found]

    one.rewards([sample_of("easy?", "worth 9")])
    assert asyncio.run(both()) == [0.0, 0.0]


def test_a_declined_answer_to_a_hard_prompt_earns_no_advantage_whenever_it_comes() -> None:
    for place in range(8):
        one = scored(Held())
        one.rewards([sample_of("easy?", "worth 9")])
        answers = [f"worth 0, answer {number}" for number in range(7)]
        answers.insert(place, "rude")
        scores = [one.rewards([sample_of("hard?", answer)])[0] for answer in answers]
        assert advantages(scores, ["hard?"] * 8)[place] == 0.0


def test_a_group_that_is_missing_whole_has_no_advantage_whatever_other_groups_earned() -> None:
    one = scored(Choosy())
    one.rewards([sample_of("Why?", "worth 8")])
    scores = one.rewards([sample_of("How?", f"lost {number}") for number in range(4)])
    assert advantages(scores, ["How?"] * 4) == [0.0] * 4
    assert not any(score.valid for score in scores)


def test_more_missing_than_a_fifth_of_the_last_200_raises() -> None:
    one = scored(Choosy())
    one.rewards([sample_of("Why?", f"worth 5, {number}") for number in range(200)])
    for number in range(40):
        one.rewards([sample_of("Why?", f"lost {number}")])
    with pytest.raises(BatchFailed, match=r"41 of the last 200 samples .* 20% .*PLAUDIT_MAX_FAILURE_RATE"):
        one.rewards([sample_of("Why?", "lost again")])
    patient = Scored(JUDGE, max_failure_rate=1.0, **Choosy().options)
    assert len(patient.rewards([sample_of("Why?", f"lost {number}") for number in range(250)])) == 250


def test_a_small_group_may_lose_a_row() -> None:
    scores = scored(Choosy()).rewards([sample_of("Why?", "lost"), sample_of("Why?", "worth 4")])
    assert [score.valid for score in scores] == [
        False,
        False,
    ]  # one of two says too little: see docs/rewards.md
    assert scores == [0.4, 0.4]


def test_every_call_may_come_from_a_new_event_loop() -> None:
    one = scored(Choosy())
    found = [asyncio.run(one.arewards([sample_of("Why?", f"worth {worth}")])) for worth in (1, 2, 3)]
    assert found == [[0.1], [0.2], [0.3]]


def test_many_threads_share_one_engine_and_one_call() -> None:
    judge = Choosy()
    one = scored(judge)
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(one.rewards, [[sample_of("Why?", "worth 7")]] * 64))
    assert found == [[0.7]] * 64
    assert len(judge.asked) == 1


def test_equal_judges_and_options_share_one_engine_and_others_with_the_same_options_too() -> None:
    with loopback(INSTANT) as server:
        options: dict[str, Any] = {"url": server.url, "model": "m", "max_concurrent": 1, "cache": "memory"}
        before = threading.active_count()
        judges = [JUDGE, replace(JUDGE), Reference()]  # the second is equal to the first
        made = [Scored(judge, **options) for judge in judges]
        made.append(pickle.loads(pickle.dumps(made[0])))
        for number, one in enumerate(made):
            one.rewards([sample_of("Why?", f"Because {number}.", "It scatters.")])
        one_engine = threading.active_count() - before
        Scored(JUDGE, **options).rewards([sample_of("Why?", "Because 0.")])
        assert threading.active_count() - before == one_engine <= 3


def test_a_group_that_is_complete_waits_for_no_other_and_never_gets_its_mean() -> None:
    async def main() -> None:
        transport = Unhurried()
        judge = scored(transport)
        other = asyncio.create_task(
            judge.agroup([sample_of("When?", "worth 9"), sample_of("When?", "worth 7")])
        )
        found = await judge.agroup([sample_of("Why?", "lost"), sample_of("How?", "lost")])
        assert not other.done()
        assert found == [0.0, 0.0]
        transport.released.set_result(None)
        assert await other == [0.9, 0.7]

    asyncio.run(main())


def test_without_arguments_it_is_the_judge_of_the_settings_and_the_engine_of_compute_score(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with loopback(INSTANT) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        (score,) = Scored().rewards([sample_of("Why?", "It scatters.", source="my/essays")])
        assert compute_score("It scatters.", None, "my/essays", {"question": "Why?"}) == score
        assert server.stats.answered == 1
        assert Scored().rewards([sample_of("6 * 7?", "#### 42", "42", source="openai/gsm8k")]) == [1.0]
        assert server.stats.answered == 1


def test_a_judge_that_was_chosen_judges_mathematics_too() -> None:
    judge = Choosy()
    assert scored(judge).rewards([sample_of("6 * 7?", "worth 3", "42", source="openai/gsm8k")]) == [0.3]
    assert len(judge.asked) == 1


def test_it_crosses_processes_as_its_arguments() -> None:
    with loopback(INSTANT) as server:
        one = Scored(JUDGE, url=server.url, model="m", max_failure_rate=0.5)
        before = one.rewards([sample_of("Why?", "It scatters.")])
        assert pickle.loads(pickle.dumps(one)).rewards([sample_of("Why?", "It scatters.")]) == before


# -- rows -------------------------------------------------------------------------------------------------


def test_equal_prompts_are_one_group_unless_the_framework_names_it() -> None:
    assert sample_of("Why?", "a").group == sample_of("Why?", "b").group != sample_of("How?", "a").group
    assert sample_of("Why?", "a", group=3).group == "3"


def test_the_end_of_a_text_is_no_part_of_it() -> None:
    assert sample_of("Why?", "It scatters.<|im_end|>\n<|endoftext|>").response == "It scatters."
    assert sample_of("Why?", "<answer>4</answer>").response == "<answer>4</answer>"
    assert sample_of("Why?", "It scatters. \n").response == "It scatters. \n"
    assert sample_of("Why?", "</s>").response == sample_of("Why?", None).response == ""
    assert sample_of("Why?", "a" + "\n" * 100_000 + "b").text.endswith("b")
    assert sample_of("Why?", "a" + "</s>\n" * 100_000).response == "a"


def test_a_row_keeps_its_reference_its_source_and_its_other_columns() -> None:
    sample = sample_of("Why?", "a", ["x", "y"], source="my/essays", extra={"level": 3})
    assert sample.reference == '["x", "y"]'
    assert sample.extra == {SOURCE: "my/essays", "level": 3}


def test_a_row_without_task_and_reference_is_not_asked_about() -> None:
    judge = Choosy()
    one = scored(judge)
    (score,) = one.rewards([sample_of(None, "worth 3")])
    assert not score.valid
    assert judge.asked == []


def test_who_can_leave_rows_out_gets_an_exception_that_crosses_processes() -> None:
    one = scored(Choosy())
    assert asyncio.run(one.areward(sample_of("Why?", "worth 3"))) == 0.3
    with pytest.raises(NoVerdict, match=r"no verdict \(failed\)") as raised:
        asyncio.run(one.areward(sample_of("Why?", "lost")))
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_a_judge_is_asked_at_once_where_a_framework_loads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback(INSTANT.replace(api_key="sk-right")) as server:
        with pytest.raises(BatchFailed, match=r"will never answer.*401"):
            Scored.checked(JUDGE, url=server.url, model="m", api_key="sk-wrong")
        Scored.checked(None)  # nothing is given, and the settings may not be needed
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong")
        monkeypatch.setenv("PLAUDIT_MODEL", "m")
        for _ in range(2):  # the settings' own, each time anew
            with pytest.raises(BatchFailed, match="OPENAI_API_KEY"):
                Scored().check()
        with pytest.raises(BatchFailed, match="OPENAI_API_KEY"):
            importlib.import_module("plaudit.integrations.openrlhf").reward_func  # noqa: B018
        with pytest.raises(BatchFailed, match="OPENAI_API_KEY"):
            from plaudit.integrations.atropos import score_group
        monkeypatch.setenv("OPENAI_API_KEY", "sk-right")
        asked = server.stats.requests
        from plaudit.integrations.atropos import score_group  # noqa: F401
        from plaudit.integrations.openrlhf import reward_func  # noqa: F401

        Scored().check()
        assert server.stats.requests == asked  # the list of models tells


def test_of_many_threads_one_asks_whether_the_judge_answers() -> None:
    with loopback(INSTANT) as server, ThreadPoolExecutor(16) as pool:
        one = Scored(JUDGE, url=server.url, model="m", cache=None, headers={"X-Team": "rl"})
        for done in [pool.submit(one.check) for _ in range(64)]:
            done.result()
        assert server.stats.requests == 1


def test_settings_without_a_server_or_with_one_that_is_away_hold_nothing_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Scored().check()
    with reserved_port() as port:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")
        Scored().check()
        Scored.checked(JUDGE, url=f"http://127.0.0.1:{port}/v1", model="m")


def test_a_judge_that_will_never_answer_ends_the_run_with_the_first_row() -> None:
    with loopback(INSTANT.replace(api_key="sk-right")) as server:
        for wrong in ({"model": "missing", "api_key": "sk-right"}, {"model": "m", "api_key": "sk-wrong"}):
            one = Scored(JUDGE, url=server.url, max_failure_rate=1.0, **wrong)
            with pytest.raises(BatchFailed, match="will never answer"):
                one.rewards([sample_of("Why?", "It scatters.")])


def test_a_row_without_the_column_that_a_judge_needs_ends_only_a_run_in_which_none_has_it() -> None:
    def judged(*references: str | None) -> list[bool]:
        one = Scored(Reference(), **Answering().options)
        return [one.rewards([sample_of("Why?", "worth 3", truth)])[0].valid for truth in references]

    assert judged("It scatters.", None, "It scatters.") == [True, False, True]
    with pytest.raises(ConfigError, check=about("reference")):
        judged(None, "It scatters.")


class Answering(Choosy):
    """The same for a judge that compares with a reference."""

    def verdict(self, worth: int) -> str:
        return f'{{"reason": "so it says", "equivalent": {"true" if worth > 4 else "false"}}}'


def test_a_judge_of_groups_is_refused_where_rows_come_one_at_a_time() -> None:
    assert one_by_one(None, "SkyRL") is None
    assert one_by_one(JUDGE, "SkyRL") is JUDGE
    with pytest.raises(ConfigError, check=about("judge", "SkyRL", "Group")):
        one_by_one(Group("Which is best?"), "SkyRL")
    with pytest.raises(ConfigError, check=about("judge", "OpenRLHF", "Group")):
        reward_function(Group("Which is best?"), url="http://localhost:8000/v1", model="m")


def test_a_misspelt_url_is_recognised() -> None:
    with pytest.raises(ConfigError, check=about("ulr", "did you mean url?")):
        Scored(JUDGE, ulr="http://localhost:8000/v1")


def test_a_judge_of_groups_judges_a_lone_row_by_its_criteria(caplog: pytest.LogCaptureFixture) -> None:
    """The only trajectory of a group whose rollout did not break, or a process's part of a group."""
    with loopback(INSTANT) as server:
        one = Scored(Group("Which is best?"), url=server.url, model="m", cache=None)
        rows = [sample_of(prompt, f"Answer {place}.") for place, prompt in enumerate("aab")]
        assert all(score.valid for score in one.rewards(rows))
        assert all(score.valid for score in one.rewards(rows[2:]))
        assert server.stats.requests == 3
    assert "Group compares" in caplog.text
