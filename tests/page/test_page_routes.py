"""The page's routes, over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from journals import judged, write

from plaudit.cli.view import page_app
from plaudit.journal.index import JournalIndex
from plaudit.page.page_routes import Page
from plaudit.policy.fingerprint import sample_id


@contextlib.asynccontextmanager
async def served(path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    with JournalIndex(path) as index:
        runner = web.AppRunner(
            page_app(index), access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            async with aiohttp.ClientSession(f"http://127.0.0.1:{runner.addresses[0][1]}") as session:
                yield session
        finally:
            await runner.cleanup()


def answers(path: Path, *routes: str, **head: str) -> list[tuple[int, Any]]:
    """Status and body of each route."""

    async def ask() -> list[tuple[int, Any]]:
        found = []
        async with served(path) as session:
            for route in routes:
                async with session.get(route, headers=head) as answer:
                    is_json = answer.content_type == "application/json"
                    found.append((answer.status, await answer.json() if is_json else await answer.text()))
        return found

    return asyncio.run(ask())


def test_canaries_count_apart_and_can_be_listed(tmp_path: Path) -> None:
    canaries = [judged(n, score=s, extra={"canary": 5.0, "attack": "none"}) for n, s in ((1, 9.0), (2, 0.0))]
    write(tmp_path / "j", [judged(0, score=10.0), *canaries])
    (_, found), (_, listed) = answers(tmp_path / "j", "/page/api/overview", "/page/api/records?status=canary")
    assert (found["records"], found["score"]["mean"]) == (1, 1.0)
    assert found["canaries"] == found["judges"][0]["canaries"] == {"seen": 2, "passed": 1}
    assert {row["response"] for row in listed["rows"]} == {"answer 1", "answer 2"}


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "j"
    verdicts = [
        judged(
            n, score=n % 11, prompt=f"question {n // 4}", group=str(n // 4), extra={"training_step": n // 8}
        )
        for n in range(40)
    ]
    write(path, [*verdicts, judged(99, score=None)])
    return path


def test_the_page_runs_nothing_and_fetches_nothing_from_elsewhere(journal: Path) -> None:
    async def ask() -> tuple[str, str]:
        async with served(journal) as session, session.get("/page/") as answer:
            return answer.headers["Content-Security-Policy"], await answer.text()

    policy, text = asyncio.run(ask())
    assert policy.startswith("default-src 'none'; script-src 'self'") and "unsafe" not in policy
    assert "http" not in text.replace("http-equiv", "")


def test_records_are_filtered_sorted_and_paged(journal: Path) -> None:
    base = "/page/api/records?limit=3&order=unit&descending=1"
    (_, best), (_, missing), (_, step), (_, text) = answers(
        journal, base, base + "&status=missing", base + "&steps=2-3", base + "&text=answer%207"
    )
    assert [row["unit"] for row in best["rows"]] == pytest.approx([1.0, 1.0, 1.0]) and best["total"] == 41
    assert [row["cause"] for row in missing["rows"]] == ["unreadable"]
    ((_, of_a_cause),) = answers(journal, base + "&cause=unreadable")
    assert of_a_cause["rows"] == missing["rows"]
    assert step["total"] == 16
    assert [row["response"] for row in text["rows"]] == ["answer 7"]


def test_a_server_that_others_wait_for_searches_for_texts_as_they_stand(tmp_path: Path) -> None:
    write(tmp_path / "j", [judged(0, response="a" * 40 + "!"), judged(1, response="(a+)+$")])

    async def ask() -> list[str]:
        app = web.Application()
        Page(index, takes_patterns=False).add_routes(app)
        async with (
            TestClient(TestServer(app)) as client,
            client.get("/page/api/records", params={"text": "(a+)+$"}) as answer,
        ):
            return [row["response"] for row in (await answer.json())["rows"]]

    with JournalIndex(tmp_path / "j") as index:
        assert asyncio.run(ask()) == ["(a+)+$"]


def test_what_has_no_score_comes_last_whatever_the_order(journal: Path) -> None:
    for way in ("", "&descending=1"):
        ((_, found),) = answers(journal, f"/page/api/records?limit=100&order=unit{way}")
        assert found["rows"][-1]["unit"] is None


def test_a_record_comes_with_its_group(journal: Path) -> None:
    ((_, found),) = answers(journal, "/page/api/records?limit=1&order=time")
    (status, whole), (nothing, _) = answers(
        journal, f"/page/api/record/{found['rows'][0]['id']}", "/page/api/record/none.1"
    )
    assert (status, nothing) == (200, 404)
    assert [one["response"] for one in whole["group"]] == [f"answer {n}" for n in range(4)]
    assert whole["record"]["exchanges"][0]["reply"]


def test_the_overview_counts_flat_groups_and_follows_the_steps(tmp_path: Path) -> None:
    path = tmp_path / "j"
    write(
        path,
        [
            judged(
                n,
                score=5.0 if n < 4 else n,
                prompt=f"q{n // 4}",
                group=str(n // 4),
                extra={"training_step": 0},
            )
            for n in range(8)
        ],
    )
    ((_, found),) = answers(path, "/page/api/overview")
    (column,) = found["trend"]["columns"]
    assert (column["flat"], column["groups"], column["records"]) == (1, 2, 8)


@pytest.mark.parametrize(
    "route",
    [
        "/page/api/records?order=password",
        "/page/api/records?offset=-1",
        "/page/api/records?text=(",
        "/page/api/overview?steps=x",
    ],
)
def test_what_makes_no_sense_is_refused(journal: Path, route: str) -> None:
    assert [status for status, _ in answers(journal, route)] == [400]


@pytest.mark.parametrize(
    "name", ["../routes.py", "%2e%2e/routes.py", "static/app.js", "app.js%00", "..%2froutes.py"]
)
def test_no_other_file_is_served(journal: Path, name: str) -> None:
    assert [status for status, _ in answers(journal, f"/page/{name}")] == [404]


@pytest.mark.parametrize(
    "head", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}]
)
def test_other_sites_get_nothing(journal: Path, head: dict[str, str]) -> None:
    ((status, _),) = answers(journal, "/page/api/records", **head)
    assert status in (400, 403)


def test_who_looks_first_sees_what_was_written_since_the_server_started(tmp_path: Path) -> None:
    path = tmp_path / "j"
    write(path, [])

    async def look(route: str, number: int) -> Any:
        async with served(path) as session:
            write(path, [judged(number)])
            async with session.get(route) as answer:
                return await answer.json()

    assert asyncio.run(look("/page/api/overview", 0))["records"] == 1
    assert asyncio.run(look("/page/api/records", 1))["total"] == 2
    found = asyncio.run(look(f"/page/api/record/{sample_id(judged(2).sample)}", 2))
    assert found["record"]["response"] == judged(2).sample.response


def test_news_come_while_a_journal_is_written(journal: Path) -> None:
    async def follow() -> tuple[bytes, bytes]:
        async with served(journal) as session, session.get("/page/api/events") as answer:
            first = await answer.content.readuntil(b"\n\n")
            await asyncio.to_thread(write, journal, [judged(1)])
            return first, await answer.content.readuntil(b"\n\n")

    first, second = asyncio.run(follow())
    assert b'"records":41' in first and b'"records":42' in second
