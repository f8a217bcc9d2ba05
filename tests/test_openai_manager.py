"""AsyncOpenAIManager: the notes' names over an engine, every one of them in force."""

from __future__ import annotations

import threading

import pytest
from complaints import about
from loopback import HANGING, INSTANT, JUDGE, loopback, samples, taking

from plaudit import AsyncOpenAIManager, AsyncOpenAIWorker, ConfigError, Source, Status
from plaudit.config import warn_unneeded
from plaudit.errors import EngineClosed


def test_submit_compute_on_collect() -> None:
    with loopback(INSTANT.replace(api_key="sk-right")) as server:
        manager = AsyncOpenAIManager(api_key="sk-right", model_name="m", api_endpoint=server.url)
        assert "plaudit" not in [
            thread.name for thread in threading.enumerate()
        ]  # starts with the first task
        task = manager.submit(samples(20), JUDGE)
        verdicts = manager.get_results(task)
        assert [verdict.status for verdict in verdicts] == [Status.OK] * 20
        assert {verdict.model for verdict in verdicts} == {"m"}
        again = manager.get_results(manager.submit(samples(20), JUDGE))
        assert {verdict.source for verdict in again} == {Source.CACHE}
        manager.shutdown()
        manager.shutdown_workers()
        assert "plaudit" not in [thread.name for thread in threading.enumerate()]
        with pytest.raises(EngineClosed):
            manager.submit(samples(1), JUDGE)


def test_the_ceiling_on_requests_is_never_crossed() -> None:
    with loopback(INSTANT.replace(latency=taking(0.005))) as server:
        with AsyncOpenAIManager(
            model_name="m", api_endpoint=server.url, max_concurrent_requests=3, cache=None
        ) as manager:
            manager.get_results(manager.submit(samples(30), JUDGE))
        assert server.stats.peak_in_flight == 3


def test_progress_goes_from_nothing_to_all() -> None:
    with loopback() as server, AsyncOpenAIManager(model_name="m", api_endpoint=server.url) as manager:
        task = manager.submit(samples(4), JUDGE)
        seen = [manager.progress(task) for _ in task.as_completed()]
        assert seen == sorted(seen)
        assert 0.0 < seen[0] <= seen[-1] == 100.0
        assert manager.progress(manager.submit([], JUDGE)) == 100.0


def test_after_the_time_limit_what_is_missing_says_so() -> None:
    with loopback(HANGING) as server, AsyncOpenAIManager(model_name="m", api_endpoint=server.url) as manager:
        task = manager.submit(samples(4), JUDGE)
        assert manager.progress(task) == 0.0
        verdicts = manager.get_results(task, timeout=0.05)
        assert {(verdict.status, verdict.score) for verdict in verdicts} == {(Status.DEADLINE, None)}


def test_endpoint_and_key_come_from_the_users_own_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, check=about("url")):
        AsyncOpenAIManager()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://somewhere/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    (endpoint,) = AsyncOpenAIManager().engine.endpoints
    assert endpoint.name == "http://somewhere/v1 deepseek-v3"
    assert endpoint.key == "sk-from-the-environment"


@pytest.mark.parametrize("written", ["http://host/v1", "http://host/v1/", "http://host/v1/chat/completions"])
def test_an_endpoint_may_be_written_with_its_route(written: str) -> None:
    (endpoint,) = AsyncOpenAIManager(api_endpoint=written).engine.endpoints
    assert endpoint.url == "http://host/v1"


def test_workers_are_accepted_and_the_log_says_once_why_none_are_needed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    warn_unneeded.cache_clear()
    for _ in range(2):
        AsyncOpenAIManager(api_endpoint="http://host/v1", num_async_workers=4)
    (record,) = caplog.records
    assert "num_async_workers" in record.getMessage()
    assert "max_concurrent_requests" in record.getMessage()


def test_a_worker_is_a_manager_that_says_so(caplog: pytest.LogCaptureFixture) -> None:
    warn_unneeded.cache_clear()
    worker = AsyncOpenAIWorker(api_endpoint="http://host/v1", max_concurrent_requests=3)
    assert isinstance(worker, AsyncOpenAIManager)
    (record,) = caplog.records
    assert "AsyncOpenAIWorker" in record.getMessage()
