"""What values settings may have: of which type, within which bounds, of which names; in the same words."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import re
import sys
from collections.abc import Collection, Mapping, Sized
from numbers import Real
from types import UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from plaudit.errors import NO_VALUE, ConfigError

MOST = sys.float_info.max
ABOVE_0 = math.ulp(0.0)
HIDDEN = ("api_key", "headers")
"""Settings whose values no error shows."""

Bounds = tuple[float, float, str]
_CALLS: Bounds = (1, MOST, "allows no calls; use 1 or more, or leave it out")
_SECONDS: Bounds = (ABOVE_0, math.inf, "leaves no time; give a number of seconds above 0")
_DOLLARS: Bounds = (0, MOST, "is not an amount of money; give US dollars, 0 or more")
_BOUNDS: dict[str, Bounds] = {
    **dict.fromkeys(("max_concurrent", "max_concurrent_requests", "rpm", "tpm"), _CALLS),
    **dict.fromkeys(("timeout", "deadline"), _SECONDS),
    **dict.fromkeys(("budget", "price", "prompt", "completion", "cached_prompt", "cached_price"), _DOLLARS),
    **dict.fromkeys(("max_entries", "max_bytes"), (1, MOST, "leaves no room for an entry; use 1 or more")),
    "journal_max_mb": (ABOVE_0, MOST, "leaves no room for the journal; give a number of megabytes above 0"),
    "max_tokens": (1, MOST, "leaves no room for a reply; use 1 or more"),
    "temperature": (0, MOST, "is not a temperature; use 0 or more"),
    "seed": (-(2**63), 2**63 - 1, "is not a seed; use a 64-bit whole number"),
    "max_failure_rate": (0, 1, "is not a share; use a number from 0 to 1"),
    "top_p": (0, 1, "is not a share; use a number from 0 to 1"),
    **dict.fromkeys(
        ("max_chars", "max_chars_per_call", "per_call"), (1, MOST, "leaves nothing to judge; use 1 or more")
    ),
    **dict.fromkeys(("min_mass", "threshold"), (ABOVE_0, 1, "is not a probability above 0 and up to 1")),
    "floor": (-MOST, -ABOVE_0, "is not a log-probability; use a number below 0"),
}


def check_fields(thing: Any) -> None:
    """Check type and value of each field of a dataclass; tuples are left to the class itself."""
    of: type = type(thing)
    for name, kind in _kinds(of).items():
        check_value(name, getattr(thing, name), kind)


def check_value(name: str, value: object, kind: Any) -> None:
    """Raise ConfigError where a setting has another type than `kind`, or a value that makes no sense."""
    shown = NO_VALUE if name in HIDDEN else value
    if not any(_is_a(value, one) for one in kinds_of(kind)):
        raise ConfigError(f"should be {words_for(kind)}", setting=name, value=shown)
    if complaint := complaint_about(name, value):
        raise ConfigError(complaint, setting=name, value=shown)


def complaint_about(name: str, value: object) -> str:
    """Why a value, or one of several, is out of bounds; empty where it is not."""
    low, high, complaint = _BOUNDS.get(name, (-math.inf, math.inf, ""))
    several = value if isinstance(value, tuple) else (value,)
    try:
        numbers = [float(one) for one in several if isinstance(one, Real)]
    except OverflowError:  # a whole number of hundreds of digits
        return "is too large"
    if any(math.isnan(number) for number in numbers):
        return "is not a number"
    return "" if all(low <= number <= high for number in numbers) else complaint


def check_number(name: str, value: object, *, low: float = -MOST, high: float = MOST) -> None:
    """Raise ConfigError where a setting is no number from `low` to `high`; without bounds, a finite one."""
    if isinstance(value, Real) and not isinstance(value, bool) and low <= cast(Any, value) <= high:
        return
    end = "" if high >= MOST else f" and up to {high:g}" if low == ABOVE_0 else f" to {high:g}"
    start = "above 0" if low == ABOVE_0 else f"from {low:g}" if end else f"of {low:g} or more"
    raise ConfigError(
        f"should be a number {start}{end}" if low > -MOST else "should be a finite number",
        setting=name,
        value=value,
    )


def check_numbers(thing: object, *names: str, low: float = -MOST, high: float = MOST) -> None:
    """The same for several attributes of a thing."""
    for name in names:
        check_number(name, getattr(thing, name), low=low, high=high)


def check_length(name: str, values: Sized, count: int, of: str = "rows") -> None:
    """Raise ConfigError unless there is one value for each of so many things."""
    if not isinstance(values, Sized):
        raise ConfigError(f"should be a list, with one for each of the {of}", setting=name, value=values)
    if len(values) != count:
        raise ConfigError(f"has {len(values)} entries for {count} {of}; give one for each", setting=name)


def check_known(name: str, known: Collection[str], what: str, *, place: str = "", prefix: str = "") -> None:
    """Raise ConfigError where a name is none of those known; it names the closest one.

    `what` is what it should be, like `option of an engine`; `place` stands before the name in the setting,
    like `penalty.`, and `prefix` where users write it.
    """
    if name not in known:
        near = difflib.get_close_matches(str(name).replace("-", "_"), known, n=1)
        hint = f"did you mean {prefix}{near[0]}?" if near else f"there are {', '.join(known)}"
        raise ConfigError(
            f"is not {'an' if what[0] in 'aeiou' else 'a'} {what}; {hint}", setting=f"{place}{name}"
        )


def reworded(error: Exception) -> tuple[str, str]:
    """What msgspec says of a wrong value, without its names of types; and where: `.operators[0].name`."""
    said, _, place = str(error).partition(" - at `$")
    words = re.sub(
        r"`([\w| ]+)`",  # like `int | null`
        lambda found: " or ".join(_WORDS.get(name, repr(name)) for name in found[1].split(" | ")),
        said,
    )
    return words[:1].lower() + words[1:], place.strip("`")


_WORDS = {
    "int": "a whole number", "float": "a number", "str": "text", "bool": "true or false",
    "array": "a list", "object": "a table", "null": "nothing",
}  # fmt: skip


def words_for(kind: Any) -> str:
    """What a setting of this type should be, for people."""
    every = kinds_of(kind)
    plain = str if str in every else every[0]
    if get_origin(plain) is Literal:
        return " or ".join(get_args(plain))
    if plain == tuple[float, float]:
        return "two numbers, like 0 10, or [0, 10] in a file"
    if get_origin(plain) is Mapping:
        return 'a table, like {"name": "value"}'
    if plain == tuple[str, ...]:
        return "a URL or a list of URLs"
    named = {int: "a whole number", float: "a number", bool: "true or false", str: "text, in quotes"}
    return named.get(plain) or f"a {plain.__name__}"


def kinds_of(kind: Any) -> tuple[Any, ...]:
    """The types that a union stands for; of another type, itself."""
    return get_args(kind) if isinstance(kind, UnionType) or get_origin(kind) is Union else (kind,)


@functools.cache
def _kinds(of: type) -> dict[str, Any]:
    hints = get_type_hints(of)
    named = [field.name for field in dataclasses.fields(of) if field.init]
    return {name: hints[name] for name in named if get_origin(hints[name]) is not tuple}


def _is_a(value: object, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if kind is int or kind is float:
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        return is_number and (
            kind is float or isinstance(value, int) or float(cast(Real, value)).is_integer()
        )
    return isinstance(value, get_origin(kind) or kind)
