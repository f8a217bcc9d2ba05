"""A frozen dataclass with the quick `__init__` is as it would be without."""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any

import pytest

from plaudit.events import CallFinished, CallStarted
from plaudit.quick_init import quick_init
from plaudit.types import ChatRequest, Reply, Sample, Status, Usage, Verdict


@dataclass(frozen=True, slots=True)
class Slow:
    a: int
    b: str = "b"
    c: dict[str, int] = field(default_factory=dict, hash=False)
    d: float = field(default=1.0, kw_only=True)


@quick_init
@dataclass(frozen=True, slots=True)
class Quick:
    a: int
    b: str = "b"
    c: dict[str, int] = field(default_factory=dict, hash=False)
    d: float = field(default=1.0, kw_only=True)


@dataclass(frozen=True)
class Derived(Quick):
    e: int = 5


@pytest.mark.parametrize(
    ("arguments", "options"),
    [((1,), {}), ((1, "x"), {"d": 2.0}), ((), {"c": {"k": 1}, "a": 3}), ((1, "x", {"k": 2}), {})],
)
def test_it_takes_the_same_arguments(arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    slow, quick = Slow(*arguments, **options), Quick(*arguments, **options)
    assert [getattr(quick, item.name) for item in fields(Quick)] == [
        getattr(slow, item.name) for item in fields(Slow)
    ]
    assert repr(quick) == repr(slow).replace("Slow", "Quick")
    assert type(quick) is Quick
    assert hash(quick) == hash(slow)


@pytest.mark.parametrize(
    ("arguments", "options"), [((), {}), ((1, "x", {}, 1.0), {}), ((1,), {"z": 1}), ((1,), {"a": 1})]
)
def test_it_refuses_the_same_arguments(arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    for made in (Slow, Quick):
        with pytest.raises(TypeError):
            made(*arguments, **options)


def test_it_has_the_same_signature() -> None:
    assert str(inspect.signature(Quick)) == str(inspect.signature(Slow))


def test_defaults_that_are_made_are_not_shared() -> None:
    assert Quick(1).c == {}
    assert Quick(1).c is not Quick(1).c


MADE = (
    Quick(1),
    Sample("p", "r"),
    ChatRequest(({"role": "user", "content": "x"},)),
    Usage(1, 2),
    Reply("7", usage=Usage(1, 2)),
    Verdict(7.0, Status.OK),
    CallStarted(0.0, "e", 1, False),
    CallFinished(0.0, "e", 1, "ok", 0.1, Usage(), None),
)


@pytest.mark.parametrize("made", MADE, ids=lambda made: type(made).__name__)
def test_it_is_frozen_and_copied_as_any(made: Any) -> None:
    name = fields(made)[0].name
    with pytest.raises(FrozenInstanceError):
        setattr(made, name, 1)
    with pytest.raises(FrozenInstanceError):
        delattr(made, name)
    for other in (replace(made), copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert other == made
        assert type(other) is type(made)
        with pytest.raises(FrozenInstanceError):
            setattr(other, name, 1)


def test_a_class_derived_from_it_is_made_as_always() -> None:
    derived = Derived(1, e=6)
    assert (derived.a, derived.b, derived.d, derived.e) == (1, "b", 1.0, 6)
    assert type(derived) is Derived
    with pytest.raises(FrozenInstanceError):
        derived.a = 2  # type: ignore[misc]


def test_what_is_checked_after_it_is_checked_still() -> None:
    assert Verdict(None, Status.DEADLINE).failure is not None
