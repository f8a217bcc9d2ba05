"""Client and server: few calls, one outcome for each sample, and an engine that may die."""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from pathlib import Path

import pytest
from complaints import about
from held import GOOD, Held
from loopback import JUDGE, samples
from loopback_connection import LoopbackConnection, client_over, join, submit
from until import PATIENCE_S, until

from plaudit import ConfigError, Group, Rubric, Sample, Source, Status, Verdict
from plaudit.errors import EngineClosed
from plaudit.integrations.ray.engine_client import TOGETHER, pickle_judge, split_batch
from plaudit.integrations.ray.messages import Results
from plaudit.scheduling.batch import Batch
from plaudit.testing import ScriptedTransport


def test_many_small_requests_travel_in_few_calls() -> None:
    connection = LoopbackConnection(ScriptedTransport([GOOD]))
    with client_over(connection) as client:
        pendings = [submit(client, [sample], JUDGE) for sample in samples(400)]
        verdicts = [pending.result() for pending in pendings]
    assert {verdict.score for (verdict,) in verdicts} == {7.0}
    assert len(connection.score_requests) == 400
    assert len(connection.sent) < 40


def test_a_large_batch_travels_in_parts_and_comes_back_in_order() -> None:
    connection = LoopbackConnection(ScriptedTransport([GOOD]))
    with client_over(connection) as client:
        pending = submit(client, [*samples(600), Sample("What is the capital of France?", "")], JUDGE)
        verdicts = pending.result()
    assert [verdict.status for verdict in verdicts] == [Status.OK] * 600 + [Status.EMPTY]
    assert [len(ask.places) for ask in connection.score_requests] == [256, 256, 89]
    assert pending.summary.calls == 600


def test_a_slow_sample_holds_up_no_other() -> None:
    held = Held()
    connection = LoopbackConnection(held)
    with client_over(connection) as client:
        together = submit(client, samples(10), JUDGE)
        alone = submit(client, samples(1, "Rome"), JUDGE)
        held.some.update({"Rome", *(f"Paris {number}" for number in range(9))})
        assert alone.result()[0].score == 7.0
        stream = together.as_completed()
        assert sorted(next(stream)[0] for _ in range(9)) == list(range(9))
        assert together.remaining == 1
        held.all.set()
        assert next(stream)[0] == 9


def test_callers_that_ask_the_same_share_one_call() -> None:
    held = Held()
    connection = LoopbackConnection(held)
    with client_over(connection) as client:
        pendings = [submit(client, samples(1), JUDGE) for _ in range(8)]
        until(lambda: len(held.sent) == 1)
        held.all.set()
        found = [pending.result()[0] for pending in pendings]
    assert len(held.sent) == 1
    assert sorted(verdict.source for verdict in found) == [Source.CALL, *[Source.SHARED] * 7]


def test_an_engine_that_dies_costs_no_sample_and_pays_nothing_twice(tmp_path: Path) -> None:
    held = Held()
    connection = LoopbackConnection(held, cache=str(tmp_path / "verdicts.sqlite"))
    with client_over(connection) as client:
        pending = submit(client, samples(20), JUDGE)
        lone = submit(client, samples(1, "Rome"), JUDGE)
        held.some.update(f"Paris {number}" for number in range(8))
        until(lambda: pending.remaining <= 12)
        paid = 20 - pending.remaining
        connection.lose()
        until(lambda: connection.connects == 2)
        held.all.set()
        verdicts = pending.result() + lone.result()
    assert {verdict.status for verdict in verdicts} == {Status.OK}
    assert sum(len(ask.places) for ask in connection.score_requests) == 21 + 21 - paid
    for number in range(8):  # paid before the end: asked once
        assert sum(f"Paris {number}<" in text or f"Paris {number}\n" in text for text in held.sent) == 1


def test_an_engine_that_dies_while_it_hears_of_everything_is_lost_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    connection = LoopbackConnection(ScriptedTransport([GOOD]))
    connection.dies_at_send = 0
    with client_over(connection) as client:
        pendings = [submit(client, [sample], JUDGE) for sample in samples(2000)]  # eight calls
        assert {pending.result()[0].status for pending in pendings} == {Status.OK}
    assert connection.connects == 2
    assert caplog.text.count("the shared engine was lost") == 1
    assert sum(map(len, connection.sent)) <= 2000 + TOGETHER  # one call in vain, and nothing else sent twice


def test_nothing_is_kept_of_what_is_done() -> None:
    connection = LoopbackConnection(ScriptedTransport([GOOD]))
    with client_over(connection) as client:
        for pending in [submit(client, [sample], JUDGE) for sample in samples(50)]:
            pending.result()
        assert connection.submissions == 0


def test_an_engine_that_dies_again_and_again_is_given_up() -> None:
    connection = LoopbackConnection(Held())
    with client_over(connection) as client:
        pending = submit(client, samples(3), JUDGE)
        for losses in range(1, 7):
            until(lambda: connection.connects == losses and len(connection.sent) >= losses)  # noqa: B023
            connection.lose()
        verdicts = pending.result()
    assert {(verdict.status, verdict.score) for verdict in verdicts} == {(Status.FAILED, None)}
    assert "lost 6 times over this request: the engine died" in str(verdicts[0].error)


def test_an_engine_that_cannot_be_reached_fails_each_sample_with_the_reason() -> None:
    connection = LoopbackConnection(Held())
    connection.broken = ConfigError("rpm is 60 there and 30 here")
    with client_over(connection) as client:
        with pytest.raises(ConfigError, check=about("", "rpm", "60")):
            client.connect()
        verdicts = submit(client, samples(3), JUDGE).result()
        assert {verdict.status for verdict in verdicts} == {Status.FAILED}
        assert "cannot be reached: rpm is 60 there and 30 here" in str(verdicts[0].error)
        connection.broken = None  # and the next request finds it
        assert submit(client, samples(1), JUDGE, deadline=0.05).result()[0].status is Status.DEADLINE


@pytest.mark.parametrize("is_silent", [False, True])
def test_a_deadline_holds_whatever_the_engine_does(is_silent: bool) -> None:
    connection = LoopbackConnection(Held())
    connection.is_silent = is_silent
    with client_over(connection) as client:
        start = time.monotonic()
        verdicts = submit(client, samples(3), JUDGE, deadline=0.1).result()
        assert time.monotonic() - start < PATIENCE_S
    assert {verdict.status for verdict in verdicts} == {Status.DEADLINE}
    assert all(str(verdict.error).startswith("deadline") for verdict in verdicts)


def test_a_result_with_a_time_limit_marks_what_is_missing() -> None:
    held = Held()
    held.some.add("Paris 1")
    with client_over(LoopbackConnection(held)) as client:
        pending = submit(client, samples(3), JUDGE)
        until(lambda: pending.remaining == 2)
        verdicts = pending.result(timeout=0.02)
    assert [verdict.status for verdict in verdicts] == [Status.DEADLINE, Status.OK, Status.DEADLINE]


def test_what_is_called_off_is_not_sent() -> None:
    held = Held()
    connection = LoopbackConnection(held)
    with client_over(connection) as client:
        pending = submit(client, samples(200), JUDGE)
        until(lambda: len(held.sent) >= 30)
        pending.cancel()
        verdicts = pending.result()
        assert {verdict.error for verdict in verdicts} == {"cancelled"}
        until(lambda: len(connection.sent) == 2)  # the request, and that nobody wants it
        submit(client, [Sample("Q", "")], JUDGE).result()  # the engine has heard of it by then
        under_way = len(held.sent)
        held.all.set()
        assert submit(client, samples(1, "Rome"), JUDGE).result()[0].is_valid
    assert len(held.sent) <= under_way + 2


def test_a_process_taken_for_dead_asks_again_for_what_it_lacks() -> None:
    held = Held()
    connection = LoopbackConnection(held)
    with client_over(connection) as client:
        pending = submit(client, samples(2), JUDGE)
        until(lambda: len(held.sent) == 2)
        connection.forget()
        held.some.add("Rome")
        other = submit(client, samples(1, "Rome"), JUDGE)  # its answer ends the visit that was under way
        assert other.result()[0].is_valid
        held.all.set()
        assert {verdict.status for verdict in pending.result()} == {Status.OK}
    assert connection.connects == 2


class Stranger(Rubric):
    """A judge whose class the other side does not have."""

    def __reduce__(self) -> tuple[object, ...]:
        return pickle.loads, (b"cmissing_module\nJudge\n.",)


class Unpicklable(Rubric):
    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("cannot pickle '_thread.lock' object")


def test_a_judge_that_cannot_be_loaded_there_fails_its_own_samples() -> None:
    with client_over(LoopbackConnection(ScriptedTransport([GOOD]))) as client:
        strange = submit(client, samples(2), Stranger("x"))
        fine = submit(client, samples(2), JUDGE)
        assert {verdict.status for verdict in fine.result()} == {Status.OK}
        verdicts = strange.result()
    assert {verdict.status for verdict in verdicts} == {Status.FAILED}
    assert "cannot load the judge or a sample: ModuleNotFoundError" in str(verdicts[0].error)


def test_what_cannot_travel_is_told_before_anything_is_sent() -> None:
    with pytest.raises(ConfigError, check=about("", "judge", "TypeError", "plaudit.Engine")):
        pickle_judge(Unpicklable("x"), dumps=pickle.dumps)
    judge = pickle_judge(JUDGE, dumps=pickle.dumps)
    batch = Batch([Sample("Q", "A", extra={"lock": threading.Lock()})], JUDGE, model="m")
    with pytest.raises(ConfigError, check=about("", "sample", "_thread.lock")):
        split_batch(batch, judge)


def test_groups_of_two_callers_are_judged_apart() -> None:
    held = Held()
    connection = LoopbackConnection(held)
    panel = Group("Which is best?")
    with client_over(connection) as client:
        group = [Sample("Q", f"answer {number}", group="g") for number in range(3)]
        first = submit(client, group, panel)  # type: ignore[arg-type]
        second = submit(client, group, panel)  # type: ignore[arg-type]
        until(lambda: len(held.sent) == 1)
        held.some.add("Rome")
        assert submit(client, samples(1, "Rome"), JUDGE).result()[0].is_valid
        assert len(held.sent) == 2  # the same question: one call, and Rome's
        held.all.set()
        assert [verdict.status for verdict in first.result()] == [
            verdict.status for verdict in second.result()
        ]


# -- groups -----------------------------------------------------------------------------------------------


def test_members_meet_at_the_server() -> None:
    with client_over(LoopbackConnection(Held())) as client:
        members = [join(client, name, {"length": number}, size=3) for number, name in enumerate("abc")]
        found = [member.found.result() for member in members]
    assert found == [{"a": {"length": 0}, "b": {"length": 1}, "c": {"length": 2}}] * 3


def test_a_member_whose_answer_was_lost_meets_the_others_again() -> None:
    connection = LoopbackConnection(Held())

    def lose_one(answers: Results) -> Results:
        connection.on_answers = lambda answers: answers
        connection.lose()
        assert len(answers.groups) == 2
        return Results([], answers.groups[:1])

    with client_over(connection) as client:
        connection.on_answers = lose_one
        members = [join(client, name, name, size=2) for name in "ab"]
        found = [member.found.result() for member in members]
    assert found == [{"a": "a", "b": "b"}] * 2
    assert connection.connects == 2


def test_without_an_engine_a_member_stays_alone(caplog: pytest.LogCaptureFixture) -> None:
    connection = LoopbackConnection(Held())
    connection.broken = ConfigError("no Ray")
    with client_over(connection) as client:
        assert join(client, "a", 1, size=2).found.result() == {"a": 1}
    assert "group 'g' could not meet: no Ray" in caplog.text


def test_members_that_disagree_hear_of_it() -> None:
    with client_over(LoopbackConnection(Held())) as client:
        first, second = join(client, "a", 1, size=2, timeout=1.0), join(client, "b", 1, size=3)
        with pytest.raises(ConfigError, check=about("", "size=3", "2")):
            second.found.result()
        assert first.found.result() == {"a": 1}


# -- life -------------------------------------------------------------------------------------------------


def test_closing_fails_the_rest_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    connection = LoopbackConnection(Held())
    with client_over(connection) as client:
        pending = submit(client, samples(3), JUDGE)
        member = join(client, "a", 1, size=2)
        until(lambda: len(connection.sent) >= 1)
        client.close()
        verdicts = pending.result()
        with pytest.raises(EngineClosed):
            member.found.result()
        with pytest.raises(EngineClosed):
            submit(client, samples(1), JUDGE)
    assert {(verdict.status, verdict.error) for verdict in verdicts} == {
        (Status.FAILED, "the engine was closed")
    }
    assert set(threading.enumerate()) <= before


def test_a_pending_batch_can_be_awaited() -> None:
    async def main(pending: object) -> list[Verdict]:
        return await pending  # type: ignore[misc, no-any-return]

    with client_over(LoopbackConnection(ScriptedTransport([GOOD]))) as client:
        pending = submit(client, samples(3), JUDGE)
        assert [verdict.score for verdict in asyncio.run(main(pending))] == [7.0] * 3
