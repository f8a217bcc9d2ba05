"""One engine for several processes of a real Ray cluster of several nodes, some of which die."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from complaints import about
from loopback import INSTANT, JUDGE, Loopback, loopback, samples, taking
from ray.cluster_utils import Cluster
from until import until

from plaudit import ConfigError, Endpoint, Price, Sample, Source, Status, Verdict
from plaudit.errors import EngineClosed
from plaudit.integrations.ray import SharedEngine
from plaudit.simulator import Fault, Latency
from plaudit.types import Cause

pytestmark = pytest.mark.trainers

KEY = "sk-never-to-be-seen-4711"
SLOW = INSTANT.replace(latency=taking(0.05))
STORE = 80 * 1024 * 1024
PRICE = Price(prompt=0.0, completion=1000.0)
"""A call is promised at 512 completion tokens, half a dollar, and costs a few cents."""
MIXED = (Fault("error", 0.04, status=400), Fault("refusal", 0.04), Fault("filtered", 0.04))
"""Failures that are not asked for again, of a tenth of the samples."""
ON_ITS_WAY = 6 + 4
"""Calls at once in the tests of deaths, and replies that have come and may not be on disk yet."""
SYSTEM = {
    "enable_worker_prestart": False,  # processes that nobody may need
    "prestart_worker_first_driver": False,
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 4,
}
ON_FIRST, ON_SECOND = {"resources": {"first": 1}}, {"resources": {"second": 1}}
SCRIPT = Path(__file__).with_name("other_training.py")


def test_without_ray_the_message_says_what_to_do() -> None:
    assert not ray.is_initialized()
    with pytest.raises(ConfigError, check=about("", "ray.init()")):
        SharedEngine("http://127.0.0.1:9/v1", model="m", cache=None)


# -- a cluster, a crew, and a training that all share an engine ---------------------------------------------


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.upper().endswith("_PROXY"):
                patch.delenv(name)
        patch.setenv("PLAUDIT_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
        common = {"object_store_memory": STORE, "include_dashboard": False}
        cluster = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 2, "resources": {"first": 4}, "_system_config": SYSTEM, **common},
        )
        cluster.add_node(num_cpus=1, resources={"second": 4}, **common)
        ray.init(address=cluster.address, log_to_driver=False)
        try:
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()
            ray.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


class _Worker:
    """A worker process of a training, with a SharedEngine that it makes by itself or is handed."""

    def __init__(self) -> None:
        self._shared: SharedEngine | None = None

    def open(self, url: str, **options: Any) -> str:
        self._shared = SharedEngine(url, **options)
        return self._shared.name

    def take(self, shared: SharedEngine) -> str:
        self._shared = shared
        return repr(shared)

    async def score(self, asked: list[Sample], deadline: float | None = None) -> list[Verdict]:
        assert self._shared is not None
        one_by_one = [self._shared.ascore([sample], JUDGE, deadline=deadline) for sample in asked]
        return [verdict for (verdict,) in await asyncio.gather(*one_by_one)]

    async def gather(self, member: str, size: int) -> dict[str, int]:
        assert self._shared is not None
        return await self._shared.gather("g", member, os.getpid(), size=size, timeout=600.0)

    def close(self) -> None:
        if self._shared is not None:
            self._shared.close()


Worker: Any = ray.remote(num_cpus=0, max_restarts=0)(_Worker)


@pytest.fixture(scope="module")
def doomed(cluster: Cluster) -> Any:
    """A node that will be killed."""
    return cluster.add_node(num_cpus=1, object_store_memory=STORE, include_dashboard=False)


@pytest.fixture(scope="module")
def crew(cluster: Cluster, doomed: Any) -> list[Any]:  # doomed: well known by the time it dies
    """Three worker processes on two nodes."""
    return [Worker.options(**place).remote() for place in (ON_FIRST, ON_SECOND, ON_SECOND)]


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with loopback(SLOW.replace(api_key=KEY)) as server:
        yield server


@pytest.fixture(scope="module")
def settings(server: Loopback, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    cache = str(tmp_path_factory.mktemp("cache") / "verdicts.sqlite")
    return {
        "url": server.url,
        "model": "m",
        "api_key": KEY,
        "max_concurrent": 5,
        "cache": cache,
        "hedge": False,
    }


@pytest.fixture(scope="module")
def shared(cluster: Cluster, settings: dict[str, Any]) -> Iterator[SharedEngine]:
    with SharedEngine(**settings) as shared:
        yield shared


def of_the_actor(shared: SharedEngine, fact: Callable[[Any], Any]) -> Any:
    actor = ray.get_actor(shared.name, namespace="plaudit")
    return ray.get(actor.__ray_call__.remote(fact))


def pid_of(shared: SharedEngine) -> int:
    return int(of_the_actor(shared, lambda _: os.getpid()))


def kill(shared: SharedEngine) -> None:
    """End the engine's process as the kernel would."""
    os.kill(pid_of(shared), signal.SIGKILL)


def node_of(shared: SharedEngine) -> str:
    return str(of_the_actor(shared, lambda _: ray.get_runtime_context().get_node_id()))


def is_running(name: str) -> bool:
    try:
        ray.get_actor(name, namespace="plaudit")
    except ValueError:
        return False
    return True


def flat(lists: list[list[Verdict]]) -> list[Verdict]:
    return [verdict for verdicts in lists for verdict in verdicts]


# -- one engine -------------------------------------------------------------------------------------------


def test_processes_share_the_limit_the_deduplication_and_the_cache(
    cluster: Cluster, shared: SharedEngine, crew: list[Any], server: Loopback, settings: dict[str, Any]
) -> None:
    names = [crew[0].open.remote(**settings), crew[1].open.remote(**settings)]
    assert ray.get(names) == [shared.name] * 2
    handed = ray.get(crew[2].take.remote(shared))
    assert handed == repr(shared)
    everybody = samples(10, "the same")
    asked = [worker.score.remote(everybody + samples(10, f"of {place}")) for place, worker in enumerate(crew)]
    verdicts = flat(ray.get(asked))
    assert {verdict.status for verdict in verdicts} == {Status.OK}
    assert server.stats.requests == server.stats.unique == 40  # 10 that all ask, and 10 of each
    assert server.stats.peak_in_flight == 5
    again = ray.get(crew[0].score.remote(everybody))
    assert {verdict.source for verdict in again} == {Source.CACHE}
    assert node_of(shared) == cluster.head_node.node_id
    assert shared.summary().samples == 70
    assert shared.summary().calls == 40


def test_groups_meet_across_processes(shared: SharedEngine, crew: list[Any]) -> None:
    ray.get([worker.take.remote(shared) for worker in crew])
    found = ray.get([worker.gather.remote(f"m{place}", 3) for place, worker in enumerate(crew)])
    assert [list(members) for members in found] == [["m0", "m1", "m2"]] * 3
    assert found == [found[0]] * 3
    assert len(set(found[0].values())) == 3  # three processes


def test_other_settings_under_the_same_name_are_an_error_that_names_them(
    shared: SharedEngine, settings: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError) as caught:
        SharedEngine(**(settings | {"api_key": KEY + "0", "max_concurrent": 6}))
    message = str(caught.value)
    assert "endpoints[0].api_key differs; max_concurrent is 5 there and 6 here." in message
    assert "share=" in message
    assert KEY not in message


def test_a_node_that_is_none_is_told(shared: SharedEngine, settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, check=about("node", "'nowhere'")):
        SharedEngine(**settings, node="nowhere")


def test_a_slow_sample_holds_up_no_other(shared: SharedEngine) -> None:
    pending = shared.submit(samples(30, "stream"), JUDGE)
    stream = pending.as_completed()
    assert next(stream)[1].is_valid
    assert pending.remaining > 15  # five at a time: the first are here before the last are asked
    assert {verdict.status for verdict in pending.result()} == {Status.OK}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_told_that_ray_does_not_survive_a_fork(shared: SharedEngine) -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            shared.submit(samples(1), JUDGE)
        except ConfigError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    assert b"forked from one that uses Ray" in os.read(reader, 1000)
    os.close(reader)
    assert shared.score(samples(1), JUDGE)[0].is_valid


@pytest.fixture(scope="module")
def common(shared: SharedEngine, settings: dict[str, Any]) -> Iterator[SharedEngine]:
    with SharedEngine(**settings, share="judge") as common:
        yield common


def test_trainings_keep_apart_unless_they_ask_to_share(
    cluster: Cluster, shared: SharedEngine, common: SharedEngine, settings: dict[str, Any]
) -> None:
    assert shared.name != common.name == "shared-judge"
    command = [sys.executable, str(SCRIPT), cluster.address, settings["url"], settings["cache"]]
    other = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"KEY": KEY}
    )
    own, complaint, name, verdict, *_ = [*other.stdout.split("\n"), other.stderr]
    assert own not in (shared.name, "")
    assert complaint == "max_concurrent is 5 there and 9 here"
    assert (name, verdict) == (common.name, "ok")
    until(lambda: not is_running(own))  # it ended with its training
    assert common.score(samples(1), JUDGE)[0].is_valid


def test_closing_leaves_no_actor_and_no_thread_and_no_other_process_in_the_lurch(
    common: SharedEngine, crew: list[Any], server: Loopback
) -> None:
    before = {thread for thread in threading.enumerate() if thread.name.startswith("plaudit")}
    ray.get(crew[1].take.remote(common))
    asked = crew[1].score.remote(samples(20, "goes on"))
    pending = common.submit(samples(2000, "brief"), JUDGE)
    next(pending.as_completed())
    common.close()
    common.close()
    assert {verdict.status for verdict in pending.result()} == {Status.OK, Status.FAILED}
    with pytest.raises(EngineClosed, match="closed; open a new one"):
        common.submit(samples(1), JUDGE)
    assert {verdict.status for verdict in ray.get(asked)} == {Status.OK}
    ray.get(crew[1].close.remote())
    until(lambda: not is_running(common.name))
    until(lambda: server.stats.in_flight == 0)
    after = {thread for thread in threading.enumerate() if thread.name.startswith("plaudit")}
    assert len(before - after) == 1


# -- limits -----------------------------------------------------------------------------------------------


def test_requests_a_minute_and_deadlines_hold_over_all_processes(crew: list[Any]) -> None:
    with loopback() as server:
        options: dict[str, Any] = {"model": "m", "rpm": 12, "cache": None, "hedge": False, "share": "rpm"}
        with SharedEngine(server.url, **options) as shared:
            ray.get([worker.open.remote(server.url, **options) for worker in crew])
            start = time.monotonic()
            asked = [worker.score.remote(samples(10, str(place)), 4.0) for place, worker in enumerate(crew)]
            verdicts = flat(ray.get(asked))
            assert time.monotonic() - start < 55.0  # of the minute that the limit would take
            kill(shared)  # another engine has no other minute
            late = shared.score(samples(3, "late"), JUDGE, deadline=1.0)
            assert {verdict.status for verdict in late} == {Status.DEADLINE}
        assert server.stats.requests == 12
        assert [verdict.status for verdict in verdicts].count(Status.OK) == 12
        assert [verdict.status for verdict in verdicts].count(Status.DEADLINE) == 18


def test_a_budget_is_one_for_all_and_outlives_the_engine(crew: list[Any]) -> None:
    with loopback() as server:
        endpoint = Endpoint(server.url, model="m", price=PRICE)
        options: dict[str, Any] = {"budget": 1.0, "max_tokens": 512, "cache": None, "hedge": False}
        with SharedEngine(endpoints=[endpoint], share="rich", **options) as shared:
            ray.get([worker.take.remote(shared) for worker in crew])
            asked = [worker.score.remote(samples(10, str(place))) for place, worker in enumerate(crew)]
            verdicts = flat(ray.get(asked))
            before = shared.summary().cost
            assert before is not None
            kill(shared)
            verdicts += flat(ray.get([worker.score.remote(samples(40, "Rome")) for worker in crew]))
            after = shared.summary().cost or 0.0
        assert 0.4 < before + after <= 1.0
        assert server.stats.requests < len(verdicts) == 150
        assert any("budget" in str(verdict.error) for verdict in verdicts)


def test_a_budget_holds_though_the_engine_dies_again_and_again_in_mid_call(cluster: Cluster) -> None:
    tokens = 400
    latency = Latency(mean_tokens=tokens, sigma=0.0, seconds_per_token=0.0, first_token=0.2, round_trip=0.0)
    with loopback(INSTANT.replace(latency=latency)) as server:
        endpoint = Endpoint(server.url, model="m", price=PRICE)
        options: dict[str, Any] = {"budget": 20.0, "max_concurrent": 6, "cache": None, "hedge": False}
        options["max_tokens"] = 512
        with SharedEngine(endpoints=[endpoint], share="mortal", **options) as shared:
            pending = shared.submit(samples(100), JUDGE)
            for sent in (4, 10, 16):
                until(lambda sent=sent: server.stats.requests >= sent)  # type: ignore[misc]
                kill(shared)
            verdicts = pending.result()
        dollars = tokens * PRICE.completion / 1e6 * server.stats.requests
        assert 10.0 < dollars <= 20.0
        assert any("budget" in str(verdict.error) for verdict in verdicts)


# -- ends -------------------------------------------------------------------------------------------------


def test_a_detached_engine_outlives_its_process_and_keeps_its_settings(cluster: Cluster) -> None:
    with loopback() as server:
        options: dict[str, Any] = {"model": "m", "cache": None, "share": "stale", "detached": True}
        SharedEngine(server.url, rpm=60, **options).close()
        with pytest.raises(ConfigError, check=about("", "rpm", "60", "30")):
            SharedEngine(server.url, rpm=30, **options)
        second = SharedEngine(server.url, rpm=60, **options)
        assert second.score(samples(1), JUDGE)[0].is_valid
        second.stop()
        until(lambda: not is_running("shared-stale"))


# -- deaths -----------------------------------------------------------------------------------------------


def test_the_death_of_the_actor_costs_no_sample_and_no_paid_verdict(cluster: Cluster, tmp_path: Path) -> None:
    options: dict[str, Any] = {"model": "m", "max_concurrent": 6, "hedge": False, "share": "mortal"}
    options["cache"] = str(tmp_path / "verdicts.sqlite")
    with loopback(SLOW) as server, SharedEngine(server.url, **options) as shared:
        pending = shared.submit(samples(90), JUDGE)
        stream = pending.as_completed()
        for _ in range(20):
            next(stream)
        kill(shared)  # and Ray starts it again
        for _ in range(30):
            next(stream)
        ray.kill(ray.get_actor(shared.name, namespace="plaudit"), no_restart=True)  # and Ray does not
        verdicts = pending.result()
        assert {verdict.status for verdict in verdicts} == {Status.OK}
        assert server.stats.unique == 90
        assert server.stats.duplicates <= 2 * ON_ITS_WAY
        again = shared.score(samples(90), JUDGE)
        assert {verdict.source for verdict in again} == {Source.CACHE}


def test_the_death_of_its_node_moves_the_engine_to_another(
    cluster: Cluster, doomed: Any, crew: list[Any], tmp_path: Path
) -> None:
    options: dict[str, Any] = {"model": "m", "max_concurrent": 6, "hedge": False, "share": "nomad"}
    options["cache"] = str(tmp_path / "verdicts.sqlite")  # on a disk that all nodes see
    with (
        loopback(SLOW.replace(faults=MIXED)) as server,
        SharedEngine(server.url, node=doomed.node_id, **options) as shared,
    ):
        assert node_of(shared) == doomed.node_id
        process = pid_of(shared)
        ray.get(crew[1].take.remote(shared))
        elsewhere = crew[1].score.remote(samples(20, "elsewhere"))
        pending = shared.submit(samples(60), JUDGE)
        stream = pending.as_completed()
        for _ in range(20):
            next(stream)
        cluster.remove_node(doomed, allow_graceful=False)
        os.kill(process, signal.SIGKILL)  # a machine takes all its processes with it
        verdicts = pending.result() + ray.get(elsewhere)
        lost = [verdict for verdict in verdicts if not verdict.is_valid]
        assert {verdict.status for verdict in lost} == {Status.FAILED, Status.REFUSED}
        assert {verdict.cause for verdict in lost} <= {Cause.REQUEST_REFUSED, Cause.DECLINED}
        assert 3 <= len(lost) <= 20
        assert server.stats.unique == 80
        assert server.stats.duplicates <= ON_ITS_WAY
        assert node_of(shared) != doomed.node_id


def test_the_death_of_the_worker_that_started_the_engine_leaves_the_others_one(
    crew: list[Any], tmp_path: Path
) -> None:
    options: dict[str, Any] = {"model": "m", "max_concurrent": 6, "hedge": False, "share": "orphan"}
    options["cache"] = str(tmp_path / "verdicts.sqlite")
    with loopback(SLOW) as server:
        first, second = crew[0], crew[1]
        ray.get(first.open.remote(server.url, **options))
        ray.get(second.open.remote(server.url, **options))
        first.score.remote(samples(40, "first"))
        asked = second.score.remote(samples(40, "second"))
        until(lambda: server.stats.answered > 20)
        ray.kill(first)
        verdicts = ray.get(asked)
        assert {verdict.status for verdict in verdicts} == {Status.OK}
        assert server.stats.duplicates <= 2 * ON_ITS_WAY  # Ray may start it again before it ends it for good
        ray.get(second.close.remote())


def test_no_key_stands_in_any_log(shared: SharedEngine) -> None:
    assert KEY not in repr(shared)
    logs = Path(ray._private.worker._global_node.get_logs_dir_path())
    seen = [log for log in logs.rglob("*") if log.is_file()]
    assert len(seen) > 5
    assert [log.name for log in seen if KEY.encode() in log.read_bytes()] == []
