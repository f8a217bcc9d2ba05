"""Kinds of judges by name: which options each has, and how it is made from plain data."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any, Literal, get_type_hints

import msgspec

from plaudit.errors import ConfigError
from plaudit.judges.base import Judge, Panel
from plaudit.judges.cascade import Cascade
from plaudit.judges.checklist import Checklist, SplitChecklist
from plaudit.judges.criteria import Criterion
from plaudit.judges.expected import Expected
from plaudit.judges.group import Group
from plaudit.judges.jury import Jury
from plaudit.judges.likelihood import Likelihood
from plaudit.judges.monitor import Monitor
from plaudit.judges.pairwise import Pairwise
from plaudit.judges.reference import Reference
from plaudit.judges.rubric import Rubric
from plaudit.judges.yes import Yes
from plaudit.value_check import check_known, reworded


@dataclass(frozen=True, slots=True)
class Kind:
    """How judges of one kind are made."""

    build: Callable[..., Judge | Panel]
    options: Mapping[str, Any]
    """Every option with its type."""
    required: tuple[str, ...]
    classes: tuple[type[Any], ...] = ()
    """What it builds."""


def kinds() -> tuple[str, ...]:
    return tuple(_KINDS)


def required_by(kind: str) -> tuple[str, ...]:
    """The options without which there is no judge of this kind."""
    return tuple(_KINDS[kind].required)


def register(name: str, build: type[Any]) -> None:
    """Let files make judges of a kind: a class whose arguments are its options."""
    _KINDS[name] = _kind_of(build)


def options_of(name: str) -> tuple[str, ...]:
    return tuple(_KINDS[name].options)


def build(name: str, options: Mapping[str, Any], *, at: str = "") -> Judge | Panel:
    """The judge that the options describe, at a place in those of another one.

    Raises:
        ConfigError: it cannot be made; the setting is the way to what is wrong, like `criteria[2].weight`.
    """
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        near = difflib.get_close_matches(str(name), _KINDS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        message = f"is not a kind of judge; there are {', '.join(_KINDS)}{hint}"
        raise ConfigError(message, setting=_within(at, "kind"), value=name)
    arguments: dict[str, Any] = {}
    for option, value in options.items():
        check_known(option, kind.options, f"option of the judge {name!r}", place=at and f"{at}.")
        arguments[option] = _value(option, value, kind.options[option], _within(at, option))
    for option in kind.required:
        if option not in arguments:
            example = _EXAMPLES.get(option, option + " = ...")
            raise ConfigError(f"is missing in the judge {name!r}; add {example}", setting=_within(at, option))
    if "scale" in arguments and "integer" in kind.options:
        arguments.setdefault("integer", all(float(end).is_integer() for end in arguments["scale"]))
    try:
        return kind.build(**arguments)
    except ConfigError as error:
        raise ConfigError(error.message, setting=_within(at, error.setting), value=error.value) from None


def _within(at: str, setting: str) -> str:
    return f"{at}.{setting}" if at and setting else at or setting


def describe(judge: Judge | Panel) -> dict[str, Any]:
    """The judge's kind and options as plain data, from which `build` makes an equal one; else ConfigError."""
    name = _name_of(judge)
    options: dict[str, Any] = {}
    try:
        for option in options_of(name) if name else ():
            value = getattr(judge, _ATTRIBUTES.get((type(judge), option), option), None)
            if value is not None:
                options[option] = _plain(value)
    except TypeError:  # a function, say
        name = ""
    if not name:
        raise ConfigError(
            f"is a {type(judge).__name__} that cannot be sent as data: use a judge of one of the kinds "
            f"{', '.join(_KINDS)} with plain options, or an Engine in this process",
            setting="judge",
        )
    if build(name, options).version != judge.version:
        raise ConfigError(
            f"cannot be sent as data: its options do not say all about this {name}", setting="judge"
        )
    return {"kind": name, **options}


def _name_of(judge: object) -> str:
    """The kind of a judge; empty where it is of none."""
    return next((name for name, kind in _KINDS.items() if type(judge) in kind.classes), "")


def _plain(value: Any) -> Any:
    if _name_of(value):
        return describe(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return msgspec.to_builtins(value)


# --- values -------------------------------------------------------------------------------------------------

_EXAMPLES = {
    "criteria": 'a line like: criteria = "Is it correct and brief?"',
    "behaviour": 'a line like: behaviour = "It edits the tests."',
    "rule": 'a line like: rule = "exact_match"',
    "judge": "a table [judge] with its kind",
    "members": "a table [[members]] for each, with its kind",
}
_SHAPES = {
    "scale": "should be two numbers, like [0, 10]",
    "anchors": 'should be like { "0" = "wrong" }',
}


def _value(option: str, value: Any, hint: Any, path: str) -> Any:
    """The value as the judge takes it; what judges within a judge are described by is made into them."""
    if option == "judge":
        return _inner(value, path)
    if option == "members" and isinstance(value, list):
        return [_inner(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if option == "members" and isinstance(value, dict):
        return {name: _inner(item, f"{path}.{name}") for name, item in value.items()}
    if option == "criteria" and isinstance(value, list):
        for index, item in enumerate(value):
            for name in item if isinstance(item, dict) else ():
                check_known(name, _CRITERION, "option of a criterion", place=f"{path}[{index}].")
    try:
        return msgspec.convert(value, hint, str_keys=True)
    except msgspec.ValidationError as error:
        raise _wrong(option, value, error, path) from None
    except UnicodeEncodeError:
        raise ConfigError("is not Unicode text (it contains a lone surrogate)", setting=path) from None
    except TypeError:  # a type that only Python code can give, like a function; the judge looks for itself
        return value


def _inner(table: Any, path: str) -> Judge | Panel:
    if not isinstance(table, dict):
        complaint = "is not a judge; describe one in its own table, with its kind"
        raise ConfigError(complaint, setting=path, value=table)
    options = dict(table)
    return build(options.pop("kind", "rubric"), options, at=path)


def _wrong(option: str, value: object, error: msgspec.ValidationError, path: str) -> ConfigError:
    message, place = reworded(error)
    if found := re.match(r"\[\d+\](?:\.\w+)?", place):
        if isinstance(own := error.__cause__, ConfigError):
            return ConfigError(own.message, setting=_within(path + found[0], own.setting), value=own.value)
        return ConfigError(f"does not do: {message}", setting=path + found[0])
    return ConfigError(_SHAPES.get(option) or f"does not do: {message}", setting=path, value=value)


# --- the kinds ----------------------------------------------------------------------------------------------


def _kind_of(build: type[Any]) -> Kind:
    generated = getattr(build, "__dataclass_params__", None)
    hints = get_type_hints(build if generated and generated.init else build.__init__)
    parameters = signature(build).parameters.values()
    required = tuple(item.name for item in parameters if item.default is Parameter.empty)
    return Kind(build, {item.name: hints.get(item.name, Any) for item in parameters}, required, (build,))


def _checklist(*, calls: int | Literal["one", "each"] = "one", **options: Any) -> Judge | Panel:
    """A checklist in one call, in one call for each criterion, or with so many criteria a call."""
    if calls == "one":
        return Checklist(**options)
    return SplitChecklist(per_call=1 if calls == "each" else calls, **options)


_ATTRIBUTES = {(Jury, "combine"): "rule", (SplitChecklist, "calls"): "per_call"}
"""Where a judge keeps an option that it has no attribute of the same name for."""
_CRITERION = _kind_of(Criterion).options
_one_call = _kind_of(Checklist)
_KINDS: dict[str, Kind] = {
    "rubric": _kind_of(Rubric),
    "yes": _kind_of(Yes),
    "reference": _kind_of(Reference),
    "checklist": Kind(
        _checklist,
        {**_one_call.options, "calls": int | Literal["one", "each"]},
        (),
        (Checklist, SplitChecklist),
    ),
    "monitor": _kind_of(Monitor),
    "expected": _kind_of(Expected),
    "likelihood": _kind_of(Likelihood),
    "group": _kind_of(Group),
    "pairwise": _kind_of(Pairwise),
    "jury": _kind_of(Jury),
    "cascade": _kind_of(Cascade),
}
