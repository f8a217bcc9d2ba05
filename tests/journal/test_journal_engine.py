"""What an engine puts into its journal."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from journals import GOOD, JUDGE, engine, read

from plaudit.config import Endpoint, Price
from plaudit.engine import Engine
from plaudit.errors import RateLimited, RequestRefused
from plaudit.judges.jury import Jury
from plaudit.testing import ScriptedTransport
from plaudit.types import Cause, Message, Reply, Sample, Usage


def test_a_verdict_is_kept_with_its_sample_request_and_raw_reply(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with engine(path, [GOOD], run="night") as one:
        one.score([Sample("1 + 1?", "2", reference="two", extra={"training_step": 40})], JUDGE)
    (record,) = read(path)
    assert (record["prompt"], record["response"], record["reference"]) == ("1 + 1?", "2", "two")
    assert (record["score"], record["unit"], record["status"]) == (8.0, pytest.approx(0.8), "ok")
    assert (record["run"], record["step"], record["model"]) == ("night", 40, "m-1")
    assert record["endpoint"] == "http://host/v1 m"
    assert "1 + 1?" in record["request"][-1]["content"]  # type: ignore[index]
    assert record["exchanges"][0]["reply"] == GOOD.text  # type: ignore[index]
    assert (record["prompt_tokens"], record["completion_tokens"]) == (50, 9)


def test_every_unreadable_reply_is_kept_not_only_the_last(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with engine(path, [Reply("hm"), Reply("well"), GOOD]) as one:
        one.score([Sample("q", "a")], JUDGE)
    (record,) = read(path)
    assert [exchange["reply"] for exchange in record["exchanges"]] == ["hm", "well", GOOD.text]  # type: ignore[attr-defined]


def test_what_the_judge_thought_is_kept_beside_its_reply(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with engine(path, [Reply(GOOD.text, "m-1", reasoning="two and two are four")]) as one:
        one.score([Sample("q", "a")], JUDGE)
    (record,) = read(path)
    assert record["exchanges"][0]["reasoning"] == "two and two are four"  # type: ignore[index]


def test_a_failure_is_kept_with_its_cause_and_no_score(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with engine(path, [RequestRefused("too long")]) as one:
        one.score([Sample("q", "a")], JUDGE)
    (record,) = read(path)
    assert (record["score"], record["status"], record["cause"]) == (None, "failed", "request_refused")
    assert "too long" in record["exchanges"][0]["error"]  # type: ignore[index]


def test_twins_and_rules_are_kept_too(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with engine(path, [GOOD]) as one:
        one.score([Sample("q", "a"), Sample("q", "a"), Sample("q", "")], JUDGE)
    assert sorted(str(record["source"]) for record in read(path)) == ["call", "rule", "shared"]


def test_a_panels_questions_are_kept_beside_its_verdict(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with engine(path, [GOOD]) as one:
        one.score([Sample("q", "a")], Jury([JUDGE, type(JUDGE)("Is it brief?", scale=(0, 10))]))
    records = read(path)
    panel = [record for record in records if not record["panel"]]
    assert len(panel) == 1 and str(panel[0]["judge"]).startswith("Jury")
    questions = [record for record in records if record["panel"]]
    assert [record["serves"] for record in questions] == [[0], [0]]
    assert {record["panel"] for record in questions} == {panel[0]["batch"]}


def test_the_journal_says_what_the_engine_was_doing_and_no_key(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with engine(path, [RateLimited("slow down", retry_after=0.0), GOOD]) as one:
        one.score([Sample("q", "a")], JUDGE)
    from plaudit.journal.index import JournalIndex

    with JournalIndex(path) as index:
        (session,) = index.sessions.values()
        assert session.settings["endpoints"][0]["api_key"] == "***"
        last = index.activity[-1]
    assert (last.verdicts, last.waiting, last.open_batches) == (1, 0, 0)
    assert last.endpoints["http://host/v1 m"].rate_limited == 1
    assert b"sk-secret" not in path.read_bytes()


def test_the_journal_says_what_is_left_of_the_budget(tmp_path: Path) -> None:
    from plaudit.journal.index import JournalIndex
    from plaudit.page.live_numbers import news

    path = tmp_path / "j"
    transport = ScriptedTransport([Reply(GOOD.text, usage=Usage(900_000, 100_000))])
    endpoint = Endpoint(
        "http://host/v1", "m", price=Price(2.0, 2.0), headers={"X-Key": "sk-secret"}, api_key="sk-secret"
    )
    with Engine(
        endpoints=[endpoint], cache=None, transport=lambda _: transport, journal=path, budget=10.0
    ) as one:
        one.score([Sample("q", "a")], JUDGE)
    with JournalIndex(path) as index:
        found = news(index, now=0.0)
    assert found["budget"] == {"limit": 10.0, "left": pytest.approx(8.0), "assumed": 0.0}
    assert "sk-secret" not in str(found["sessions"])
    assert found["sessions"][0]["settings"]["endpoints"][0]["headers"] == ["X-Key"]


def test_without_text_not_a_word_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with engine(path, [GOOD], journal_text=False) as one:
        one.score([Sample("a private question", "a private answer")], JUDGE)
    (record,) = read(path)
    assert record["score"] == 8.0 and record["response_chars"] == 16
    assert (record["prompt"], record["response"], record["request"], record["reason"]) == ("", "", None, "")
    assert record["exchanges"][0]["reply"] is None  # type: ignore[index]


def test_a_journal_that_cannot_be_written_costs_no_verdict(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "j"
    path.write_bytes(b"something else of the user's, and longer than a title")
    with caplog.at_level(logging.WARNING, "plaudit"), engine(path, [GOOD]) as one:
        (verdict,) = one.score([Sample("q", "a")], JUDGE)
    assert verdict.score == 8.0
    assert path.read_bytes().startswith(b"something else")
    assert any("journal" in record.message for record in caplog.records)


def test_the_turns_of_a_trajectory_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "j"
    turns: list[Message] = [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": {"name": "add"}}]},
        {"role": "tool", "content": "2", "tool_call_id": "1"},
    ]
    with engine(path, [GOOD]) as one:
        one.score([Sample("1 + 1?", turns)], JUDGE)
    (record,) = read(path)
    assert record["turns"] == turns
    assert "[tool]" in str(record["response"])


class Silent:
    """Never answers."""

    async def send(self, _: object) -> Reply:
        await asyncio.Event().wait()
        raise AssertionError("never comes here")

    async def close(self) -> None:
        """Nothing to free."""


def test_samples_that_were_not_judged_when_the_engine_closed_are_no_records(tmp_path: Path) -> None:
    path = tmp_path / "j"
    engine_ = Engine(
        endpoints=[Endpoint("http://host/v1", "m")], cache=None, transport=lambda _: Silent(), journal=path
    )
    pending = engine_.submit([Sample("q", "a"), Sample("q", " ")], JUDGE)
    next(iter(pending.as_completed()))  # the empty one, settled by rule
    engine_.close()
    assert pending.result()[0].cause is Cause.CLOSED
    assert [record["status"] for record in read(path)] == ["empty"]
