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
from loopback import INSTANT, JUDGE, loopback, samples, taking
from ray.cluster_utils import Cluster

from plaudit import ConfigError, Endpoint, Price, Sample, Source, Status, Verdict
from plaudit.errors import EngineClosed
from plaudit.integrations.ray import SharedEngine

pytestmark = pytest.mark.trainers

KEY = "sk-never-to-be-seen-4711"
SLOW = INSTANT.replace(latency=taking(0.05))
STORE = 80 * 1024 * 1024
QUICK_TO_NOTICE = {
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 4,
}
PRICE = Price(prompt=0.0, completion=1000.0)
"""A call is promised at 512 completion tokens, half a dollar, and costs a few cents."""
SCRIPT = Path(__file__).with_name("other_training.py")


def test_without_ray_the_message_says_what_to_do() -> None:
    assert not ray.is_initialized()
    with pytest.raises(ConfigError, match=r"Ray is not running in this process: call ray\.init\(\)"):
        SharedEngine("http://127.0.0.1:9/v1", model="m", cache=None)


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
        cluster = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 2,
                "object_store_memory": STORE,
                "include_dashboard": False,
                "_system_config": QUICK_TO_NOTICE,
            },
        )
        cluster.add_node(num_cpus=1, object_store_memory=STORE, resources={"second": 4})
        ray.init(address=cluster.address, log_to_driver=False)
        try:
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()
            ray.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def soon(is_so: Callable[[], bool], within: float = 20.0) -> None:
    give_up = time.monotonic() + within
    while not is_so():
        assert time.monotonic() < give_up
        time.sleep(0.01)


def actor_of(shared: SharedEngine) -> Any:
    return ray.get_actor(shared.name, namespace="plaudit")


def node_of(shared: SharedEngine) -> str:
    """The node on which the engine runs now."""
    call = actor_of(shared).__ray_call__
    return str(ray.get(call.remote(lambda _: ray.get_runtime_context().get_node_id()), timeout=20))


def pid_of(shared: SharedEngine) -> int:
    return int(ray.get(actor_of(shared).__ray_call__.remote(lambda _: os.getpid()), timeout=20))


def is_running(name: str) -> bool:
    try:
        ray.get_actor(name, namespace="plaudit")
    except ValueError:
        return False
    return True


@ray.remote(num_cpus=0, max_restarts=0)
class Worker:
    """A worker process of a training, with a SharedEngine of its own making or one it was handed."""

    def __init__(self, url: str, shared: SharedEngine | None = None, **options: Any) -> None:
        self.shared = shared or SharedEngine(url, **options)

    def name(self) -> str:
        return self.shared.name

    async def score(self, asked: list[Sample], deadline: float | None = None) -> list[Verdict]:
        one_by_one = [self.shared.ascore([sample], JUDGE, deadline=deadline) for sample in asked]
        return [verdict for (verdict,) in await asyncio.gather(*one_by_one)]

    async def gather(self, member: str, size: int) -> dict[str, int]:
        return await self.shared.gather("g", member, os.getpid(), size=size, timeout=10.0)


def workers(number: int, url: str, **options: Any) -> list[Any]:
    """Workers on both nodes in turn."""
    return [
        Worker.options(resources={"second": 1} if place % 2 else None).remote(url, **options)
        for place in range(number)
    ]


def flat(lists: list[list[Verdict]]) -> list[Verdict]:
    return [verdict for verdicts in lists for verdict in verdicts]


def test_processes_share_limits_deduplication_cache_and_groups(cluster: Cluster, tmp_path: Path) -> None:
    cache = str(tmp_path / "verdicts.sqlite")
    with loopback(SLOW) as server:
        crew = workers(4, server.url, model="m", max_concurrent=5, cache=cache, hedge=False)
        assert len(set(ray.get([worker.name.remote() for worker in crew]))) == 1
        everybody = samples(10, "the same")
        asked = [
            worker.score.remote(everybody + samples(10, f"of {place}")) for place, worker in enumerate(crew)
        ]
        verdicts = flat(ray.get(asked))
        assert {verdict.status for verdict in verdicts} == {Status.OK}
        assert server.stats.requests == server.stats.unique == 50  # 10 that all ask, and 10 of each
        assert server.stats.peak_in_flight == 5
        again = ray.get(crew[0].score.remote(everybody))
        assert {verdict.source for verdict in again} == {Source.CACHE}

        found = ray.get([worker.gather.remote(f"m{place}", 4) for place, worker in enumerate(crew)])
        assert [list(members) for members in found] == [["m0", "m1", "m2", "m3"]] * 4
        assert len(set(found[0].values())) == 4  # four processes
        assert found == [found[0]] * 4


def test_requests_a_minute_and_deadlines_hold_over_all_processes(cluster: Cluster) -> None:
    with loopback() as server:
        crew = workers(3, server.url, model="m", rpm=12, cache=None, hedge=False)
        ray.get([worker.name.remote() for worker in crew])
        start = time.monotonic()
        asked = [worker.score.remote(samples(10, str(place)), 1.0) for place, worker in enumerate(crew)]
        verdicts = flat(ray.get(asked))
        assert time.monotonic() - start < 3.0
        assert server.stats.requests == 12
        assert [verdict.status for verdict in verdicts].count(Status.OK) == 12
        assert [verdict.status for verdict in verdicts].count(Status.DEADLINE) == 18


def test_a_budget_is_one_for_all(cluster: Cluster) -> None:
    with loopback() as server:
        endpoint = Endpoint(server.url, model="m", price=PRICE)
        with SharedEngine(endpoints=[endpoint], budget=1.0, cache=None, hedge=False) as shared:
            crew = [Worker.remote("", shared) for _ in range(2)]
            verdicts = flat(
                ray.get([worker.score.remote(samples(40, str(place))) for place, worker in enumerate(crew)])
            )
            spent = shared.summary().cost
        assert spent is not None
        assert 0.4 < spent <= 1.0
        good = [verdict for verdict in verdicts if verdict.is_valid]
        assert 0 < len(good) == server.stats.requests < 80


def test_other_settings_under_the_same_name_are_an_error_that_names_them(cluster: Cluster) -> None:
    with loopback() as server, SharedEngine(server.url, model="m", api_key=KEY, rpm=60, cache=None):
        with pytest.raises(ConfigError) as caught:
            SharedEngine(server.url, model="m", api_key=KEY + "0", rpm=30, cache=None)
        message = str(caught.value)
        assert "endpoints[0].api_key differs; rpm is 60 there and 30 here." in message
        assert "share=" in message
        assert KEY not in message


def test_a_handle_travels_and_shows_no_key(cluster: Cluster) -> None:
    with loopback(INSTANT.replace(api_key=KEY)) as server:
        with SharedEngine(server.url, model="m", api_key=KEY, cache=None) as shared:
            assert KEY not in repr(shared)
            assert server.url in repr(shared)
            worker = Worker.remote("", shared)
            assert {verdict.status for verdict in ray.get(worker.score.remote(samples(3)))} == {Status.OK}
            assert ray.get(worker.name.remote()) == shared.name
        logs = Path(ray._private.worker._global_node.get_logs_dir_path())
        for log in logs.rglob("*"):
            if log.is_file():
                assert KEY.encode() not in log.read_bytes(), log.name


def test_trainings_keep_apart_unless_they_ask_to_share(cluster: Cluster) -> None:
    with loopback() as server:
        own = SharedEngine(server.url, model="m", rpm=60, cache=None)
        common = SharedEngine(server.url, model="m", rpm=60, cache=None, share="judge")
        assert own.name != common.name
        command = [sys.executable, str(SCRIPT), cluster.address, server.url]
        other = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        words = other.stdout.split("\n")
        assert words[0] not in (own.name, "")
        assert words[1] == "rpm is 60 there and 30 here"
        assert words[2] == common.name
        assert words[3] == "ok"
        assert not is_running(words[0])  # it ended with its training
        assert common.score(samples(1), JUDGE)[0].is_valid
        own.close()
        common.close()
        assert not is_running(own.name)


def test_a_detached_engine_outlives_its_process_and_keeps_its_settings(cluster: Cluster) -> None:
    with loopback() as server:
        first = SharedEngine(server.url, model="m", rpm=60, cache=None, share="stale", detached=True)
        first.close()
        with pytest.raises(ConfigError, match="rpm is 60 there and 30 here"):
            SharedEngine(server.url, model="m", rpm=30, cache=None, share="stale")
        second = SharedEngine(server.url, model="m", rpm=60, cache=None, share="stale", detached=True)
        assert second.score(samples(1), JUDGE)[0].is_valid
        second.stop()
        soon(lambda: not is_running("shared-stale"))
        with SharedEngine(server.url, model="m", rpm=30, cache=None, share="stale") as third:
            assert third.score(samples(1), JUDGE)[0].is_valid


def test_closing_leaves_no_actor_and_no_thread(cluster: Cluster) -> None:
    before = set(threading.enumerate())
    with loopback(SLOW) as server:
        shared = SharedEngine(server.url, model="m", cache=None)
        pending = shared.submit(samples(2000), JUDGE)
        next(pending.as_completed())
        shared.close()
        shared.close()
        verdicts = pending.result()
        assert {verdict.status for verdict in verdicts} == {Status.OK, Status.FAILED}
        with pytest.raises(EngineClosed, match="closed; open a new one"):
            shared.submit(samples(1), JUDGE)
        soon(lambda: not is_running(shared.name))
        soon(lambda: server.stats.in_flight == 0)
    assert {thread.name for thread in set(threading.enumerate()) - before} <= {"ray_import_thread"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_told_that_ray_does_not_survive_a_fork(cluster: Cluster) -> None:
    with loopback() as server, SharedEngine(server.url, model="m", cache=None) as shared:
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


# -- deaths -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("for_good", [False, True])
def test_the_death_of_the_actor_costs_no_sample_and_no_paid_verdict(
    cluster: Cluster, tmp_path: Path, for_good: bool
) -> None:
    options: dict[str, Any] = {"model": "m", "max_concurrent": 6, "hedge": False}
    options["cache"] = str(tmp_path / "verdicts.sqlite")
    with loopback(SLOW) as server, SharedEngine(server.url, **options) as shared:
        pending = shared.submit(samples(60), JUDGE)
        stream = pending.as_completed()
        early = [next(stream) for _ in range(20)]
        assert {verdict.source for _, verdict in early} == {Source.CALL}
        if for_good:
            ray.kill(actor_of(shared), no_restart=True)
        else:
            os.kill(pid_of(shared), signal.SIGKILL)
        verdicts = pending.result(timeout=40)
        assert {verdict.status for verdict in verdicts} == {Status.OK}
        assert server.stats.unique == 60
        assert server.stats.duplicates <= 6  # what was on its way when it died
        again = shared.score(samples(60), JUDGE)
        assert {verdict.source for verdict in again} == {Source.CACHE}


def test_a_new_engine_goes_on_with_what_is_left_of_the_budget(cluster: Cluster) -> None:
    with loopback() as server:
        endpoint = Endpoint(server.url, model="m", price=PRICE)
        with SharedEngine(endpoints=[endpoint], budget=1.0, cache=None, hedge=False) as shared:
            shared.score(samples(10), JUDGE)
            before = shared.summary().cost
            time.sleep(0.4)  # the ledger is written four times a second
            os.kill(pid_of(shared), signal.SIGKILL)
            shared.score(samples(100, "Rome"), JUDGE)
            after = shared.summary().cost
        assert before is not None
        assert after is not None
        assert 0.4 < before + after <= 1.0


def test_the_death_of_the_worker_that_started_the_engine_leaves_the_others_one(
    cluster: Cluster, tmp_path: Path
) -> None:
    cache = str(tmp_path / "verdicts.sqlite")
    with loopback(SLOW) as server:
        options = {"model": "m", "max_concurrent": 6, "cache": cache, "hedge": False}
        first = Worker.remote(server.url, **options)
        ray.get(first.name.remote())
        second = Worker.options(resources={"second": 1}).remote(server.url, **options)
        ray.get(second.name.remote())
        first.score.remote(samples(40, "first"))
        asked = second.score.remote(samples(40, "second"))
        soon(lambda: server.stats.answered > 20)
        ray.kill(first)
        verdicts = ray.get(asked, timeout=40)
        assert {verdict.status for verdict in verdicts} == {Status.OK}
        assert server.stats.duplicates <= 6


def test_the_death_of_its_node_moves_the_engine_to_another(cluster: Cluster, tmp_path: Path) -> None:
    cache = str(tmp_path / "verdicts.sqlite")  # on a disk that all nodes see
    doomed = cluster.add_node(num_cpus=1, object_store_memory=STORE)
    cluster.wait_for_nodes()
    with loopback(SLOW) as server:
        options: dict[str, Any] = {"model": "m", "max_concurrent": 6, "cache": cache, "hedge": False}
        with SharedEngine(server.url, node=doomed.node_id, **options) as shared:
            assert node_of(shared) == doomed.node_id
            worker = Worker.options(resources={"second": 1}).remote("", shared)
            elsewhere = worker.score.remote(samples(20, "elsewhere"))
            pending = shared.submit(samples(60), JUDGE)
            stream = pending.as_completed()
            for _ in range(20):
                next(stream)
            cluster.remove_node(doomed, allow_graceful=False)
            verdicts = pending.result(timeout=60) + ray.get(elsewhere, timeout=60)
            assert {verdict.status for verdict in verdicts} == {Status.OK}
            assert server.stats.unique == 80
            assert server.stats.duplicates <= 6
            assert node_of(shared) != doomed.node_id
