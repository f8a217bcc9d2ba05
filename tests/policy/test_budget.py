"""Money: the bound is a bound, and the limit is never crossed, in whatever order calls come back."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plaudit.config import Price
from plaudit.policy.budget import Spending, charge, counted, token_bound
from plaudit.types import ChatRequest, EmbedRequest, GenerateRequest, Usage

thorough = settings(max_examples=80, deadline=None, derandomize=True, database=None)

texts = st.text(alphabet=st.characters(), max_size=60)  # lone surrogates included
EPSILON = 1e-9


def bytes_on_the_wire(text: str) -> int:
    """What a server sees at most: a lone surrogate reaches it as three bytes."""
    return len(text.encode("utf-8", "surrogatepass"))


@thorough
@given(st.lists(st.tuples(texts, texts), max_size=5), st.integers(min_value=0, max_value=4096))
def test_a_chat_has_no_more_tokens_than_its_bound(turns: list[tuple[str, str]], max_tokens: int) -> None:
    messages = tuple({"role": role, "content": content} for role, content in turns)
    prompt, completion = token_bound(ChatRequest(messages, max_tokens))  # type: ignore[arg-type]
    assert prompt >= sum(bytes_on_the_wire(role) + bytes_on_the_wire(content) for role, content in turns)
    assert completion == max_tokens


def test_the_bound_counts_bytes_rather_than_characters() -> None:
    for text, size in (("é" * 500, 1000), ("語" * 500, 1500), ("🙂" * 500, 2000), ("\ud800" * 500, 1500)):
        assert token_bound(ChatRequest(({"role": "user", "content": text},)))[0] >= size
        assert token_bound(GenerateRequest(text))[0] >= size
        assert token_bound(EmbedRequest((text,)))[0] >= size


def test_the_bound_covers_the_schema_since_endpoints_put_it_into_the_prompt() -> None:
    schema = {"type": "object", "properties": {"reason": {"type": "string", "description": "why " * 500}}}
    plain = ChatRequest(({"role": "user", "content": "Good?"},))
    constrained = ChatRequest(plain.messages, schema=schema)
    grown = token_bound(constrained)[0] - token_bound(plain)[0]
    assert grown >= len(msgspec.json.encode(schema))


@thorough
@given(texts, st.integers(min_value=0, max_value=4096))
def test_a_plain_text_has_no_more_tokens_than_its_bound(text: str, max_tokens: int) -> None:
    prompt, completion = token_bound(GenerateRequest(text, max_tokens))
    assert prompt >= bytes_on_the_wire(text)
    assert completion == max_tokens


@thorough
@given(st.lists(texts, max_size=8))
def test_embedded_texts_have_no_more_tokens_than_their_bound(parts: list[str]) -> None:
    prompt, completion = token_bound(EmbedRequest(tuple(parts)))
    assert prompt >= sum(bytes_on_the_wire(part) for part in parts)
    assert completion == 0


def test_the_price_is_for_a_million_tokens() -> None:
    price = Price(prompt=0.15, completion=0.60)
    assert price.cost(prompt_tokens=1_000_000, completion_tokens=500_000) == pytest.approx(0.45)


@thorough
@given(
    st.floats(min_value=0.0, max_value=2.0),
    st.lists(
        st.tuples(
            st.booleans(), st.floats(min_value=0.0, max_value=0.5), st.floats(min_value=0.0, max_value=1.0)
        ),
        max_size=60,
    ),
)
def test_spending_never_crosses_its_limit_in_whatever_order_calls_come_back(
    limit: float, steps: list[tuple[bool, float, float]]
) -> None:
    spending = Spending(limit)
    under_way: list[float] = []
    for comes_back, amount, share in steps:
        if comes_back and under_way:
            bound = under_way.pop(int(amount * 997) % len(under_way))
            spending.on_reply(bound=bound, cost=share * bound)
        elif spending.fits(amount):
            spending.on_send(amount)
            under_way.append(amount)
        # Even if everything under way turns out as dear as it may.
        assert spending.spent + sum(under_way) <= limit + EPSILON


def test_what_was_promised_and_not_spent_can_be_spent_again() -> None:
    spending = Spending(1.0)
    spending.on_send(1.0)
    assert not spending.fits(0.5)
    assert not spending.is_exhausted(0.5)
    spending.on_reply(bound=1.0, cost=0.25)
    assert spending.fits(0.75)
    assert not spending.fits(0.76)
    assert spending.is_exhausted(0.76)


def test_a_limit_can_be_spent_to_the_last_cent() -> None:
    spending = Spending(1.0)
    for _ in range(10):  # ten times 0.1 is a little less or more than 1.0
        assert spending.fits(0.1)
        spending.on_send(0.1)
        spending.on_reply(bound=0.1, cost=0.1)
    assert not spending.fits(0.1)


def test_a_call_without_a_reply_counts_as_dear_as_it_can_be_and_that_is_said() -> None:
    spending = Spending(5.0)
    spending.on_send(1.0)
    spending.on_send(2.0)
    spending.on_reply(bound=1.0, cost=0.25)
    assert str(spending) == "$0.25 spent"
    spending.on_cut_off(bound=2.0)
    assert (spending.spent, spending.assumed, spending.promised) == (2.25, 2.0, 0.0)
    assert str(spending) == "$2.25 spent, of which $2 is the most that calls without a reply may have cost"


def test_without_a_limit_the_sum_is_kept_all_the_same() -> None:
    spending = Spending()
    assert spending.fits(1e9)
    assert not spending.is_exhausted(1e9)
    spending.on_send(3.0)
    spending.on_reply(bound=3.0, cost=2.0)
    assert spending.spent == 2.0


PRICE = Price(prompt=1.0, completion=10.0)
BOUND = (1000, 500)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (Usage(20, 30), (20, 30)),
        (Usage(), BOUND),
        (Usage(0, 30), (1000, 30)),
        (Usage(20, 0), (20, 500)),
        (Usage(-20, -30), BOUND),
        (Usage(5000, 30), (5000, 30)),
    ],
)
def test_tokens_that_were_not_counted_are_charged_at_their_bound(
    usage: Usage, tokens: tuple[int, int]
) -> None:
    assert counted(usage, BOUND) == tokens
    assert charge(usage, PRICE, BOUND) == PRICE.cost(prompt_tokens=tokens[0], completion_tokens=tokens[1])


@pytest.mark.parametrize("cost", [None, 0.0, -5.0, float("nan")])
def test_a_cost_of_nothing_or_less_is_not_believed(cost: float | None) -> None:
    by_price = PRICE.cost(prompt_tokens=20, completion_tokens=30)
    assert charge(Usage(20, 30, cost), PRICE, BOUND) == by_price
    assert charge(Usage(20, 30, cost), None, BOUND) == 0.0


def test_a_stated_cost_is_counted_as_stated_also_beyond_the_bound() -> None:
    assert charge(Usage(20, 30, 0.5), PRICE, BOUND) == 0.5
    assert charge(Usage(20, 30, 1e-6), PRICE, BOUND) == 1e-6
    assert charge(Usage(20, 30, 0.5), None, BOUND) == 0.5
    assert charge(Usage(20, 0, 1e-6), PRICE, BOUND) > 1e-6, "it may be by the same missing count"
