"""Settings and where each one came from: arguments, environment variables, plaudit.toml, defaults.

The first that says something wins, in that order. `resolve` is pure; `load` reads the environment and
the file that `plaudit.settings_file` finds; `engine_config` makes of them what an engine is opened with.

    # plaudit.toml
    base_url = "http://localhost:8000/v1"     # or a list
    model = "qwen3-32b"
    rubric = "Is the answer correct and brief?"
    scale = [0, 10]
"""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar, Unpack, get_origin, get_type_hints

import msgspec

from plaudit.config import (
    UNSET,
    Endpoint,
    EngineConfig,
    Price,
    Secret,
    Unset,
    default_cache,
    expanded,
    names_file,
    shown_url,
)
from plaudit.errors import NO_VALUE, ConfigError, as_argument, spelling
from plaudit.settings_file import DESTINATION, FILE_NAME, VARIABLE, announce, find_file, read_file
from plaudit.value_check import check_known, complaint_about, kinds_of, words_for

T = TypeVar("T")

DEFAULT = "default"

OWN_VARIABLES: dict[str, tuple[str, ...]] = {
    "base_url": ("OPENAI_BASE_URL",),
    "train_with_monitor": ("TRAIN_WITH_MONITOR",),
    "monitor_cache": ("MONITOR_CACHE",),
}
"""Variables that users have set already, read after `PLAUDIT_<NAME>`."""
KEY_CHARS = 20
"""From this length on a text of letters and digits may be a key."""
KEY_VARIABLES = ("PLAUDIT_API_KEY", "OPENAI_API_KEY")
OTHER_VARIABLES = {"PLAUDIT_API_KEY", "PLAUDIT_CONFIG", "PLAUDIT_FETCH", "PLAUDIT_HOME", "PLAUDIT_TOKEN"}
"""Variables of ours that are no settings of this table."""
REQUIRED: Any = MISSING


def option(
    default: T,
    text: str,
    section: str = "",
    metavar: str = "",
    *,
    flags: tuple[str, ...] = (),
    type_: Any = None,
) -> T:
    """A field that is an option of the command line.

    Args:
        default: Its value where it is not given; REQUIRED where it has to be.
        text: What the help says of it.
        section: The heading under which the help shows it.
        metavar: What stands for the value in the help.
        flags: As typed, like `-o` or `--retest/--no-retest`; the field's own name where there is none.
        type_: A type of click's, or a function that reads the text; the field's own type where there is none.
    """
    facts = {"help": text, "metavar": metavar, "section": section, "flags": flags, "type": type_}
    found: T = field(default=default, metadata=facts)
    return found


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, typed and checked. `origins` says for each name where its value came from.

    A new setting is a new field here: its variable, its key in plaudit.toml and its option are made from it.
    """

    base_url: tuple[str, ...] = option(
        (),
        "Endpoint, like http://localhost:8000/v1; repeat the option for several (commas in a variable) "
        "(default: a model on this machine)",
        "Judge",
        "URL",
    )
    model: str = option("", "Model to use (default: the endpoint's only model)", "Judge", "M")
    api_key_env: str = option(
        "", "Variable with the API key (default: PLAUDIT_API_KEY or OPENAI_API_KEY)", "Judge", "NAME"
    )
    identity: str = option("", "Identity of the model in cache keys (default: its name)", "Requests", "NAME")
    judge: str = option(
        "rubric",
        "A kind of judge (rubric, yes, reference, ...), or a file that describes one (default: rubric)",
        "Judge",
        "NAME|FILE",
    )
    rubric: str = option(
        "", "Criteria, as text or in a file (default: the judge's own)", "Judge", "TEXT|FILE"
    )
    scale: tuple[float, float] | None = option(
        None, "Lowest and highest score (default: the judge's own)", "Judge", "LO HI"
    )
    local_model: str = option(
        "", "GGUF file of a model to run on this machine (default: the packaged model)", "Judge", "FILE.gguf"
    )
    max_tokens: int | None = option(
        None, "Maximum tokens of a reply, reasoning included (default: the judge's)", "Requests", "N"
    )
    temperature: float | None = option(
        None, "Sampling temperature (default: the judge's own, mostly 0)", "Requests", "T"
    )
    top_p: float | None = option(None, "Nucleus sampling (default: the endpoint's)", "Requests")
    seed: int | None = option(None, "Sampling seed (default: none is sent)", "Requests", "N")
    reasoning_effort: str | None = option(
        None, "low, medium, high or another value (default: the endpoint's)", "Requests", "WORD"
    )
    extra: Mapping[str, Any] | None = option(
        None, 'Additional request fields, like {"top_k": 20} (default: none)', "Requests", "JSON"
    )
    headers: Mapping[str, str] | None = option(
        None, 'Additional headers, like {"X-Team": "rl"} (default: none)', "Requests", "JSON"
    )
    max_concurrent: int | None = option(
        None, "Maximum calls at once, over all endpoints (default: adaptive concurrency)", "Limits", "N"
    )
    rpm: int | None = option(
        None, "Maximum requests per minute, over all endpoints (default: no limit)", "Limits", "N"
    )
    tpm: int | None = option(
        None, "Maximum tokens per minute, over all endpoints (default: no limit)", "Limits", "N"
    )
    budget: float | None = option(None, "US dollars that a run may spend; needs a price", "Limits", "USD")
    price: tuple[float, float] | None = option(
        None, "US dollars per million prompt tokens and per million completion tokens", "Limits", "IN OUT"
    )
    cached_price: float | None = option(
        None, "US dollars per million cached prompt tokens (default: the same as others)", "Limits", "USD"
    )
    timeout: float = option(120.0, "Seconds one call may take (default: 120)", "Limits", "S")
    deadline: float | None = option(None, "Seconds the whole run may take (default: no limit)", "Limits", "S")
    hedge: bool = option(
        True, "Whether to send a call that takes far too long a second time (default: yes)", "Limits"
    )
    cache: str = option(
        "",
        "File for cached verdicts, or off (default: verdicts.sqlite in plaudit's home)",
        "Output",
        "PATH|off",
    )
    on_failure: str = option(
        "null",
        "Score of lines without a verdict; raise reports the first one (default: null)",
        "Output",
        "null|group-mean|VALUE|raise",
    )
    client: Literal["httptools", "aiohttp", "pyreqwest"] = option(
        "httptools", "HTTP client; pyreqwest must be installed (default: httptools)", "Limits"
    )
    observers: tuple[str, ...] = option(
        (),
        "Import path of a function to call with every event; repeat the option for several (commas in a "
        "variable) (default: none)",
        "Output",
        "MODULE:NAME",
    )
    journal: str = option(
        "",
        "File that records every verdict with its request and reply, or off (default: off)",
        "Output",
        "FILE|off",
    )
    journal_max_mb: float = option(
        2048.0,
        "Maximum size of the journal; its oldest part is deleted first (default: 2048)",
        "Output",
        "MB",
    )
    journal_text: bool = option(
        True,
        "Whether the journal keeps texts, or only numbers and hashes (default: yes)",
        "Output",
        flags=("--journal-text/--no-text",),
    )
    run: str = option(
        "", "Name of this run in the journal (default: from the current time)", "Output", "NAME"
    )
    train_with_monitor: bool = option(False, "Whether compute_score adds the monitor's verdict")
    monitor_cache: bool = option(True, "Whether compute_score keeps verdicts for repeated responses")
    monitor: str = option(
        "",
        "Behaviour that compute_score's monitor looks for, as text or in a file (default: gaming the score)",
    )
    monitor_use: Literal["penalise", "screen", "observe"] = option(
        "penalise",
        "What compute_score does with the monitor's verdict: subtract it, drop the row, or only report it",
    )
    monitor_weight: float = option(1.0, "Penalty at full suspicion")
    max_failure_rate: float = option(
        0.2, "Share of samples without a verdict above which compute_score raises"
    )
    api_key: Secret | None = None
    """The key itself; it comes from a variable only, never from a file or an argument."""
    origins: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    """What settings from a variable or a file are called there: `PLAUDIT_RPM`, `plaudit.toml: rpm`."""

    def origin(self, name: str) -> str:
        """`argument --NAME`, `variable NAME`, the path of a plaudit.toml, or `default`."""
        return self.origins.get(name, DEFAULT)

    def is_argument(self, name: str) -> bool:
        """Whether an argument set it, rather than a variable or a file."""
        return name in self.origins and not self.names.get(name)

    def spelled(self, name: str, value: object) -> str:
        """A setting as its variable or file has it; empty where it came by another way."""
        called = self.names.get(name, "")
        return called and as_argument(called, value)


_TYPES: dict[str, Any] = {
    name: kind
    for name, kind in get_type_hints(Settings).items()
    if name not in ("api_key", "origins", "names")
}
NAMES = tuple(_TYPES)


class EngineOptions(TypedDict, total=False):
    """What a caller may say about an engine; the settings say the rest. None means none.

    Those without a word here are fields of `plaudit.config.EngineConfig`.
    """

    base_url: str | None
    """Another name for the URL, as the OpenAI client has it."""
    model: str
    """The model to ask for at the URL."""
    endpoints: Sequence[Endpoint]
    """Several servers, in place of url, model and api_key."""
    api_key: Secret | str | None
    """The key for the URL."""
    max_concurrent: int | Unset | None
    rpm: int | Unset | None
    tpm: int | Unset | None
    budget: float | Unset | None
    timeout: float | Unset
    hedge: bool | Unset
    client: str | Unset
    journal: str | os.PathLike[str] | Unset | None
    journal_max_mb: float | Unset
    journal_text: bool | Unset
    run: str | Unset
    max_tokens: int | Unset | None
    temperature: float | Unset | None
    top_p: float | Unset | None
    seed: int | Unset | None
    reasoning_effort: str | Unset | None
    extra: Mapping[str, Any] | Unset | None
    headers: Mapping[str, str]
    """More headers of each request to the URL. They are no part of cache keys."""
    identity: str
    """Which model the URL has, in cache keys, where its name does not say."""


class ConfigOptions(EngineOptions, total=False):
    """The same, for an engine that may run in another process: nothing in it is alive."""

    cache: str | os.PathLike[str] | Unset | None
    """A file, `memory`, or None for none."""
    observers: Sequence[str]
    """Import paths, like `package.module:name`."""


SAMPLING = ("max_tokens", "temperature", "top_p", "seed", "reasoning_effort", "extra")
"""Settings of each request to a judge."""
_SHARED = (
    "max_concurrent", "rpm", "tpm", "budget", "timeout", "hedge", "client", "observers",
    "journal_max_mb", "journal_text", "run", *SAMPLING,
)  # fmt: skip
"""Settings that an EngineConfig has under the same names."""


def engine_config(
    settings: Settings, url: str | None = None, **options: Unpack[ConfigOptions]
) -> EngineConfig:
    """What an engine is opened with: the options given, as `plaudit.Engine` takes them, else the settings.

    Nothing else is read; UNSET is the same as left out. ConfigError where there is no endpoint, or a value
    makes no sense.
    """
    for name in options:
        check_known(name, ["url", *ConfigOptions.__annotations__], "option of an engine")
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not UNSET}
    other = given.pop("base_url", None)
    if url and other and url != other:
        raise ConfigError(
            f"is another name for url={url!r}; give one of them", setting="base_url", value=other
        )
    url = url or other
    endpoints = given.get("endpoints") or ()
    named = {name: given[name] for name in ("model", "api_key", "headers", "identity") if given.get(name)}
    if endpoints and (url or named):
        raise ConfigError(
            "come with their own URL, model, key, headers and identity; "
            "leave out url=, model=, api_key=, headers= and identity=",
            setting="endpoints",
        )
    if not (endpoints or url or settings.base_url):
        raise ConfigError(
            "is missing: give it, like http://localhost:8000/v1, or set OPENAI_BASE_URL; "
            "for a model on this machine see plaudit.local.LocalServer",
            setting="url",
        )
    if url:
        endpoints = (Endpoint(url, **_common(settings, **named)),)
    cache = given.get("cache", settings.cache)
    with spelling(lambda name, value: "" if name in given else settings.spelled(name, value)):
        return EngineConfig(
            endpoints=endpoints or endpoints_of(settings, **named),
            cache=_full_path("cache", default_cache() if cache == "" else cache),
            journal=_full_path("journal", given.get("journal", settings.journal)),
            **{name: given.get(name, getattr(settings, name)) for name in _SHARED},
        )


def endpoints_of(settings: Settings, **named: Any) -> tuple[Endpoint, ...]:
    """An endpoint for every base URL, with its price and the key if there is one; the model may be open."""
    with spelling(settings.spelled):
        try:
            return tuple(Endpoint(url, **_common(settings, **named)) for url in settings.base_url)
        except ConfigError as error:
            if error.setting == "url":
                error.setting = "base_url"  # the name that its URL has as a setting
            raise


def _common(settings: Settings, **named: Any) -> dict[str, Any]:
    """What the endpoints of the settings have in common."""
    return {
        "model": settings.model,
        "api_key": settings.api_key,
        "price": Price(*settings.price, settings.cached_price) if settings.price else None,
        "headers": settings.headers or {},
        "identity": settings.identity,
        **named,
    }


def _full_path(setting: str, place: str | os.PathLike[str] | None) -> str | None:
    """A file by its full path, which means the same in every working directory; None for none."""
    if place is None or place in ("", "off"):
        return None
    if not isinstance(place, str | os.PathLike):
        complaint = "should be the path of a file: live objects cannot be part of a configuration"
        raise ConfigError(complaint, setting=setting, value=place)
    return "memory" if place == "memory" and setting == "cache" else str(expanded(place).absolute())


def load(arguments: Mapping[str, Any], *, folder: Path | None = None, file: str = "") -> Settings:
    """Resolve with this process's environment and the nearest plaudit.toml, or `file` in its place."""
    path = find_file(folder or Path.cwd(), {VARIABLE: file} if file else os.environ)
    table = _anchored(read_file(path), path.parent) if path else {}
    settings = resolve(arguments, environment=os.environ, table=table, path=path)
    if path is not None:
        announce(
            path, {name: _shown(settings, name) for name in DESTINATION if settings.origin(name) == str(path)}
        )
    return settings


def resolve(
    arguments: Mapping[str, Any],
    *,
    environment: Mapping[str, str],
    table: Mapping[str, Any],
    path: Path | None = None,
) -> Settings:
    """Merge the three sources. An argument that is None was not given; an empty variable says nothing."""
    _reject_unknown(table, path)
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    names: dict[str, str] = {}
    for name in NAMES:
        for value, origin, called, is_text in _sources(name, arguments, environment, table, path):
            origins[name], names[name] = origin, called
            try:
                values[name] = checked(name, value, is_text=is_text)
            except ConfigError as error:
                error.spelled = called and as_argument(called, error.value)
                raise
            break
    chosen = values.get("api_key_env", "")
    for variable in (chosen,) if chosen else KEY_VARIABLES:
        if key := environment.get(variable, "").strip():
            values["api_key"] = Secret(key, origin=variable)
            origins["api_key"] = f"variable {variable}"
            break
    return Settings(**values, origins=origins, names=names)


def unknown_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """PLAUDIT_* variables that set nothing, each with the closest one that would (or an empty text)."""
    known = [_variable(name) for name in NAMES] + sorted(OTHER_VARIABLES)
    return {
        name: next(iter(difflib.get_close_matches(name, known, n=1)), "")
        for name in sorted(environment)
        if name.startswith("PLAUDIT_") and name not in known
    }


def _shown(settings: Settings, name: str) -> str:
    value = getattr(settings, name)
    return ", ".join(shown_url(url) for url in value) if isinstance(value, tuple) else str(value)


def _anchored(table: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The table with its relative paths starting from the file's own folder, wherever the command runs."""
    anchored = dict(table)
    for name in ("cache", "journal", "local_model", "rubric", "judge", "monitor"):
        value = table.get(name)
        is_word = (name, value) == ("cache", "memory") or _no_file(name, str(value))
        if not isinstance(value, str) or not value or is_word:
            continue
        place = folder / expanded(value)
        if name in ("cache", "journal") or names_file(str(place)):
            anchored[name] = str(place)
    return anchored


def _sources(
    name: str,
    arguments: Mapping[str, Any],
    environment: Mapping[str, str],
    table: Mapping[str, Any],
    path: Path | None,
) -> Iterator[tuple[Any, str, str, bool]]:
    """Each source that has this setting: value, origin, what it is called there, if it is untyped text."""
    if (value := arguments.get(name)) is not None:
        yield value, f"argument --{name.replace('_', '-')}", "", False
    for variable in (_variable(name), *OWN_VARIABLES.get(name, ())):
        if text := environment.get(variable, "").strip():
            yield text, f"variable {variable}", variable, True
    if name in table:
        place = str(path or FILE_NAME)
        yield table[name], place, f"{place}: {name}", False


def checked(name: str, value: Any, *, is_text: bool = False) -> Any:
    """The value of a setting in its own type. `is_text`: what stands for a number or a list may be text.

    Raises:
        ConfigError: it has another type, or makes no sense.
    """
    kind = _TYPES[name]
    form = get_origin(kinds_of(kind)[0])
    shown = shown_url(value) if isinstance(value, str) and name == "base_url" else value
    if form is tuple and isinstance(value, str):
        value = value.replace(",", " ").split()
    if form is Mapping:
        shown = NO_VALUE if name == "headers" else value
        value = _table(name, value)
    try:
        converted = msgspec.convert(value, kind, strict=not is_text)
        msgspec.json.encode(converted)
    except (msgspec.ValidationError, UnicodeEncodeError):  # the latter: bytes that are no text
        raise ConfigError(f"should be {words_for(kind)}", setting=name, value=shown) from None
    if name == "api_key_env" and converted and not _is_variable_name(converted):
        raise ConfigError(
            "looks like a key; give the name of the variable that contains it, like OPENAI_API_KEY",
            setting=name,
        )
    if complaint := _complaint(name, converted):
        if name == "base_url":
            shown = " ".join(map(shown_url, converted))
        raise ConfigError(complaint, setting=name, value=shown)
    return converted


def _table(name: str, value: Any) -> Any:
    """A table, which a variable or an option has as JSON. The error shows no value: it may hold a key."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        raise ConfigError('is not JSON; write it like {"name": "value"}', setting=name) from None


def _complaint(name: str, value: Any) -> str:
    numbers = [part for part in (value if isinstance(value, tuple) else (value,)) if isinstance(part, float)]
    if not all(math.isfinite(number) for number in numbers):
        return "should be finite"
    if name == "base_url" and any(_has_credentials(url) for url in value):
        return "contains a user name or a password; leave them out, and put the key into OPENAI_API_KEY"
    if value != "off" and (why := _no_file(name, value)):
        return why
    if name == "scale" and value and value[0] >= value[1]:
        return "is not a scale; give the lowest score first, then the highest, like 0 10"
    return complaint_about(name, value)


def _no_file(name: str, value: str) -> str:
    """Why a cache or a journal cannot be in a file of that name."""
    if name not in ("cache", "journal"):
        return ""
    if value.lower() in ("off", "none", "null", "no", "false"):
        return "would be a file of that name; write off for none"
    return "is a URL; name a file on this machine" if "://" in value else ""


def _is_variable_name(text: str) -> bool:
    """Whether a text can name a variable, and is not a key by mistake: these mix cases with digits."""
    is_mixed = any(c.islower() for c in text) and any(c.isdigit() for c in text)
    return text.isidentifier() and not (is_mixed and len(text) >= KEY_CHARS)


def _has_credentials(url: str) -> bool:
    host = re.sub(r"^\w+://", "", url).partition("/")[0]
    is_cut = "@" in url and not host.rpartition(":")[2].isdigit() and ":" in host  # by a / in the password
    return "@" in host or is_cut


def _reject_unknown(table: Mapping[str, Any], path: Path | None) -> None:
    where = path or FILE_NAME
    if "api_key" in table:
        raise ConfigError(
            "does not belong in a shared file; remove it and set OPENAI_API_KEY, "
            "or name another variable with api_key_env",
            setting="api_key",
            spelled=f"{where}: api_key",
        )
    if "observers" in table:
        raise ConfigError(
            f"{where}: observers are code, which a project's file may not name; "
            "set PLAUDIT_OBSERVERS, or use --observers"
        )
    with spelling(lambda name, _: f"{where}: {name}"):
        for key, value in table.items():
            if key not in NAMES and isinstance(value, Mapping):
                raise ConfigError(
                    f"is a table, but settings are not in tables; remove the line with [{key}]", setting=key
                )
            check_known(key, NAMES, "setting")


def _variable(name: str) -> str:
    return f"PLAUDIT_{name.upper()}"
