"""Ceilings that are never crossed, at any instant: calls at once, requests and tokens a minute, money."""

from __future__ import annotations

import asyncio

import pytest
from dispatching import GOOD, NEVER, Asked, Bench, FakeServer, Gauge, good, numbered, question

from plaudit.config import Endpoint, EngineConfig, Price
from plaudit.errors import BudgetSpent, RateLimited, TransportFailed
from plaudit.policy.budget import token_bound
from plaudit.policy.retry import RetryPolicy
from plaudit.testing import run
from plaudit.types import Reply, Usage

PRICE = Price(prompt=1.0, completion=10.0)  # dollars for a million tokens


def troubled(asked: Asked) -> tuple[float, Reply | Exception]:
    """Now and then a reset, a rejection, a hang or a straggler."""
    match asked.arrival % 11:
        case 3:
            return 0.2, TransportFailed("reset")
        case 5:
            return 0.1, RateLimited("slow down")
        case 7:
            return NEVER, GOOD
        case 8:
            return 20.0, GOOD
        case other:
            return 0.5 + other / 10, GOOD


def busiest_minute(events: list[tuple[float, int]]) -> int:
    """The largest sum that any sixty seconds hold."""
    return max(sum(size for at, size in events if start <= at < start + 60.0) for start, _ in events)


@pytest.mark.parametrize("ceiling", [1, 2, 7, 60])
def test_calls_at_once_never_exceed_max_concurrent(ceiling: int) -> None:
    async def main() -> None:
        server = FakeServer(troubled)
        config = EngineConfig(max_concurrent=ceiling, timeout=30.0)
        async with Bench(server, config=config) as bench:
            assert good(await bench.ask_all(*numbered(150))) == 150
            assert server.gauge.peak <= ceiling

    run(main())


def test_max_concurrent_is_used_to_the_full_not_only_kept() -> None:
    async def main() -> None:
        server = FakeServer(GOOD)
        async with Bench(server, config=EngineConfig(max_concurrent=60)) as bench:
            await bench.ask_all(*numbered(300))
            assert server.gauge.peak == 60
            assert max(bench.ended_at.values()) < 8.0

    run(main())


def test_several_lanes_share_one_ceiling_hedges_included() -> None:
    async def main() -> None:
        gauge = Gauge()
        servers = [FakeServer(troubled, gauge=gauge) for _ in range(3)]
        config = EngineConfig(max_concurrent=10, timeout=30.0)
        async with Bench(*servers, config=config) as bench:
            assert good(await bench.ask_all(*numbered(200))) == 200
            assert 8 <= gauge.peak <= 10
            assert all(server.asked for server in servers)

    run(main())


def test_each_endpoint_keeps_its_own_ceiling() -> None:
    async def main() -> None:
        small, large = FakeServer(troubled), FakeServer(troubled)
        endpoints = [
            Endpoint("http://small/v1", model="m", max_concurrent=3),
            Endpoint("http://large/v1", model="m", max_concurrent=20),
        ]
        config = EngineConfig(timeout=30.0)
        async with Bench(small, large, endpoints=endpoints, config=config) as bench:
            assert good(await bench.ask_all(*numbered(200))) == 200
            assert small.gauge.peak <= 3
            assert large.gauge.peak <= 20

    run(main())


def test_no_minute_holds_more_requests_than_allowed_retries_and_rejections_included() -> None:
    async def main() -> None:
        servers = [FakeServer(troubled), FakeServer(troubled)]
        async with Bench(*servers, config=EngineConfig(rpm=30, timeout=30.0)) as bench:
            assert good(await bench.ask_all(*numbered(150))) == 150
            sent = sorted((at, 1) for server in servers for at in server.sent_at)
            assert busiest_minute(sent) <= 30
            assert max(bench.ended_at.values()) < 600.0  # kept, and used

    run(main())


def test_no_endpoint_is_given_up_for_a_few_failures_that_its_rate_spreads_over_minutes() -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: GOOD if asked.arrival > 5 else TransportFailed("reset"))
        async with Bench(server, config=EngineConfig(rpm=1)) as bench:
            assert good(await bench.ask_all(*numbered(4))) == 4

    run(main())


@pytest.mark.parametrize("is_own", [True, False])
@pytest.mark.parametrize(("rpm", "tpm"), [(10, None), (None, 700)])
def test_calls_that_wait_for_the_users_own_limit_say_so(
    rpm: int | None, tpm: int | None, is_own: bool
) -> None:
    async def main() -> None:
        config = EngineConfig() if is_own else EngineConfig(rpm=rpm, tpm=tpm)
        own = Endpoint("http://server/v1", model="m", rpm=rpm, tpm=tpm)
        async with Bench(FakeServer(), config=config, endpoints=[own] if is_own else ()) as bench:
            bench.ask(*numbered(50))
            await asyncio.sleep(30.0)
            assert bench.dispatcher.delay == "with more calls waiting than rpm or tpm allows"

    run(main())


def test_an_endpoints_own_rate_is_kept_while_the_others_go_on() -> None:
    async def main() -> None:
        strict, free = FakeServer(GOOD, latency=1.0), FakeServer(GOOD, latency=4.0)
        endpoints = [Endpoint("http://strict/v1", model="m", rpm=40), Endpoint("http://free/v1", model="m")]
        async with Bench(strict, free, endpoints=endpoints) as bench:
            assert good(await bench.ask_all(*numbered(300))) == 300
            assert busiest_minute([(at, 1) for at in strict.sent_at]) <= 40
            # The fast one would be sooner, were it not for its minute: nobody waits for that.
            assert max(bench.ended_at.values()) < 40.0

    run(main())


def test_no_minute_holds_more_tokens_than_allowed() -> None:
    def behave(asked: Asked) -> Reply:
        return Reply("7", usage=Usage(prompt_tokens=40, completion_tokens=10 * (asked.arrival % 30)))

    async def main() -> None:
        server = FakeServer(behave)
        async with Bench(server, config=EngineConfig(tpm=5000)) as bench:
            assert good(await bench.ask_all(*numbered(120))) == 120
            used = [(asked.at, 40 + 10 * (asked.arrival % 30)) for asked in server.asked]
            assert busiest_minute(used) <= 5000

    run(main())


def test_tokens_of_a_call_that_hung_are_counted_at_their_bound() -> None:
    async def main() -> None:
        bound = sum(token_bound(question("q0")))
        server = FakeServer(lambda asked: (NEVER if asked.nth == 1 else 0.1, GOOD))
        config = EngineConfig(tpm=3 * bound, timeout=5.0, hedge=False)
        async with Bench(server, config=config) as bench:
            assert good(await bench.ask_all("q0", "q1", "q2")) == 3
            hung = [asked.at for asked in server.asked if asked.nth == 1]
            retried = [asked.at for asked in server.asked if asked.nth == 2]
            assert min(retried) > max(hung) + 60.0

    run(main())


def test_one_request_larger_than_the_allowance_goes_alone_and_blocks_nobody_for_ever() -> None:
    async def main() -> None:
        server = FakeServer(GOOD)
        bound = sum(token_bound(question("q0")))
        async with Bench(server, config=EngineConfig(tpm=2 * bound)) as bench:
            bench.ask("q0", "large" * bound, "q1", "q2")
            assert good(await bench.answers()) == 4
            large = next(asked for asked in server.asked if asked.text.startswith("large"))
            before = [asked.at for asked in server.asked if asked.arrival < large.arrival]
            assert large.at >= max(before) + 60.0

    run(main())


def test_twins_cut_off_give_back_what_they_had_reserved() -> None:
    """A hedge that lost frees tokens; whoever waits for them must be told, or it would wait for ever."""

    async def main() -> None:
        server = FakeServer(lambda asked: (60.0 if (asked.text, asked.nth) == ("odd", 1) else 1.0, GOOD))
        bound = sum(token_bound(question("odd")))
        async with Bench(server, config=EngineConfig(tpm=150 * bound)) as bench:
            await bench.ask_all(*numbered(80))
            await asyncio.sleep(120.0)
            bench.ask("odd")
            await asyncio.sleep(2.0)
            assert server.texts().count("odd") == 2
            bench.ask("large", max_tokens=149 * bound + bound // 2)
            assert good(await bench.answers()) == 82

    run(main())


def billed(servers: list[FakeServer]) -> float:
    """What a strict provider would charge: every request that it accepted, answered in time or not."""
    total = 0.0
    for server in servers:
        for asked in server.asked:
            answer = server.behave(asked)
            reply = answer[1] if isinstance(answer, tuple) else answer
            if isinstance(reply, Reply):
                usage = reply.usage
                total += PRICE.cost(
                    prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens
                )
    return total


def priced(count: int) -> list[Endpoint]:
    return [Endpoint(f"http://priced{n}/v1", model="m", price=PRICE) for n in range(count)]


@pytest.mark.parametrize("budget", [0.0, 0.003, 0.05, 0.2])
def test_the_budget_is_never_crossed_with_many_calls_under_way(budget: float) -> None:
    def behave(asked: Asked) -> tuple[float, Reply]:
        dear = asked.arrival % 3 == 0
        return 1.0 + asked.arrival % 4, Reply("7", usage=Usage(40, 512 if dear else 20))

    async def main() -> None:
        servers = [FakeServer(behave), FakeServer(behave)]
        async with Bench(*servers, endpoints=priced(2), config=EngineConfig(budget=budget)) as bench:
            outcomes = await bench.ask_all(*numbered(300))
            assert billed(servers) <= budget
            spent = [outcome for outcome in outcomes.values() if isinstance(outcome, BudgetSpent)]
            assert good(outcomes) + len(spent) == 300
            if budget < 0.2:
                assert f"${budget:g}" in str(spent[0])
                assert "another call, which may cost up to $0.0" in str(spent[0])
            if budget:  # kept, and used: less than one more call would have fitted
                dearest = PRICE.cost(prompt_tokens=200, completion_tokens=512)
                assert billed(servers) > budget - dearest

    run(main())


def test_calls_that_may_have_been_billed_count_though_no_reply_came() -> None:
    async def main() -> None:
        server = FakeServer(lambda _: (NEVER, Reply("7", usage=Usage(40, 512))))
        config = EngineConfig(budget=0.05, timeout=10.0, hedge=False)
        thrice = RetryPolicy(attempts=3)
        async with Bench(server, endpoints=priced(1), config=config, retry=thrice) as bench:
            await bench.ask_all(*numbered(50))
            assert billed([server]) <= 0.05

    run(main())


def test_replies_without_a_count_of_tokens_are_taken_at_their_dearest() -> None:
    async def main() -> None:
        server = FakeServer(Reply("7"))
        dearest = PRICE.cost(prompt_tokens=200, completion_tokens=512)
        config = EngineConfig(budget=10 * dearest)
        async with Bench(server, endpoints=priced(1), config=config) as bench:
            outcomes = await bench.ask_all(*numbered(100))
            assert 8 <= good(outcomes) <= 12

    run(main())


def test_rejections_cost_nothing() -> None:
    async def main() -> None:
        server = FakeServer(lambda asked: RateLimited("429") if asked.nth <= 5 else GOOD)
        dearest = PRICE.cost(prompt_tokens=200, completion_tokens=512)
        config = EngineConfig(budget=1.5 * dearest)
        async with Bench(server, endpoints=priced(1), config=config) as bench:
            assert good(await bench.ask_all("a")) == 1

    run(main())


def test_when_money_is_short_the_cheaper_endpoint_still_gets_calls() -> None:
    async def main() -> None:
        usage = Reply("7", usage=Usage(40, 400))
        dear, cheap = FakeServer(usage), FakeServer(usage)
        endpoints = [
            Endpoint("http://dear/v1", model="m", price=Price(prompt=100.0, completion=1000.0)),
            Endpoint("http://cheap/v1", model="m", price=Price(prompt=0.1, completion=1.0)),
        ]
        async with Bench(dear, cheap, endpoints=endpoints, config=EngineConfig(budget=0.1)) as bench:
            assert good(await bench.ask_all(*numbered(60))) == 60
            assert not dear.asked
            assert len(cheap.asked) == 60

    run(main())


def test_a_reply_carries_its_cost() -> None:
    async def main() -> None:
        async with Bench(FakeServer(GOOD), endpoints=priced(1)) as bench:
            reply = (await bench.ask_all("a"))["a"]
            assert isinstance(reply, Reply)
            assert reply.usage.cost == pytest.approx((10 * 1.0 + 5 * 10.0) / 1e6)

    run(main())


def test_a_cost_told_by_the_endpoint_is_believed() -> None:
    async def main() -> None:
        told = Reply("7", usage=Usage(10, 5, cost=0.5))
        async with Bench(FakeServer(told), endpoints=priced(1)) as bench:
            reply = (await bench.ask_all("a"))["a"]
            assert isinstance(reply, Reply)
            assert reply.usage.cost == 0.5

    run(main())


def truly(told: Usage) -> int:
    """The tokens of a reply that was told of so."""
    return min(told.completion_tokens, 512) if told.completion_tokens > 0 else 512


@pytest.mark.parametrize(
    "told",
    [
        Usage(),
        Usage(-40, -512),
        Usage(0, 20),
        Usage(40, 0),
        Usage(40, 512, cost=-1.0),
        Usage(40, 512, cost=float("nan")),
        Usage(40, 512, cost=0.0),
        Usage(10**18, 10**18),
    ],
)
def test_the_budget_holds_whatever_the_endpoint_tells_of_its_use(told: Usage) -> None:
    async def main() -> None:
        server = FakeServer(Reply("7", usage=told))
        config = EngineConfig(budget=0.05)
        async with Bench(server, endpoints=priced(1), config=config) as bench:
            outcomes = await bench.ask_all(*numbered(100))
            true = PRICE.cost(prompt_tokens=40, completion_tokens=truly(told)) * len(server.asked)
            assert 0 < true <= 0.05
            assert good(outcomes) == len(server.asked)

    run(main())


@pytest.mark.parametrize("told", [Usage(), Usage(-40, -512), Usage(0, 20), Usage(40, 0)])
def test_tokens_a_minute_hold_whatever_the_endpoint_tells_of_them(told: Usage) -> None:
    async def main() -> None:
        server = FakeServer(Reply("7", usage=told), latency=0.5)
        async with Bench(server, config=EngineConfig(tpm=3000)) as bench:
            assert good(await bench.ask_all(*numbered(20))) == 20
            assert busiest_minute([(at, 40 + truly(told)) for at in server.sent_at]) <= 3000

    run(main())
