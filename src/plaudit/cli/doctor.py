"""`plaudit doctor`: what is well, what is wrong, and where every setting came from."""

from __future__ import annotations

import asyncio
import functools
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click

from plaudit.caches import default_path
from plaudit.cli.console import printable
from plaudit.cli.endpoint_check import CheckResult, check_endpoint, check_key, examine, note, ok, wrong
from plaudit.cli.options import Debugging, Given, as_flag, command
from plaudit.cli.trl_check import check_trl
from plaudit.cli.verl_check import check_verl
from plaudit.config import Endpoint, home, without_password
from plaudit.errors import ConfigError, as_argument
from plaudit.install_command import install_command
from plaudit.local.model import SMOLLM2
from plaudit.scheduling import learned_limits
from plaudit.settings import NAMES, Settings, endpoints_of, load, option, unknown_variables
from plaudit.setup.json_lines import encode

HELP = (
    "Check everything that a run depends on.\n\n"
    "Checks the key (masked), each endpoint (connection, model, features, limits; this sends a few tiny "
    "requests), the cache and optional packages, and prints every setting and where it came from."
)
EPILOG = (
    "Example:  plaudit doctor --base-url http://localhost:8000/v1\n\n"
    "Before training:  plaudit doctor --verl config.yaml  or  plaudit doctor --trl train.py\n\n"
    "Exit status:  0 everything is fine, 1 something is wrong."
)
PACKAGES = {
    "uvloop": ("a faster event loop", "uvloop"),
    "pyreqwest": ("another HTTP client", "plaudit[fast]"),
    "xllamacpp": ("the embedded judge", "plaudit[local]"),
}
WRONG = 1
Sections = dict[str, list[CheckResult]]
"""Results by place: an endpoint, this machine."""
MARKS = {"ok": "ok", "note": "note", "wrong": "WRONG"}


@dataclass(frozen=True, kw_only=True)
class DoctorOptions(Debugging):
    """What `plaudit doctor` takes beside the settings."""

    as_json: bool = option(False, "Write JSON, for scripts.", flags=("--json",))
    verl: Path | None = option(
        None,
        "Check the judge of a verl configuration, without verl and without a GPU.",
        metavar="CONFIG.yaml",
    )
    trl: Path | None = option(
        None,
        "Check the judge of a TRL script, or of a file for `trl grpo --config`, without running it.",
        metavar="SCRIPT.py",
    )


@command(
    DoctorOptions,
    settings=("base_url", "model", "api_key_env", "local_model", "cache"),
    text=HELP,
    epilog=EPILOG,
)
def doctor(options: DoctorOptions, given: Given) -> int:
    if options.verl and options.trl:
        raise ConfigError("give either --verl or --trl, not both")
    settings, sections = _examine(given, options)
    rows = settings_table(settings, options.trl) if settings else []
    faults = [check.name for checks in sections.values() for check in checks if check.state == "wrong"]
    if options.as_json:
        found = {place: [asdict(check) for check in checks] for place, checks in sections.items()}
        result = {"ok": not faults, "checks": found, "settings": rows}
        sys.stdout.buffer.write(encode(result) + b"\n")
    else:
        click.echo(printable("\n".join(_lines(sections, rows, faults))))
    return WRONG if faults else 0


COMMAND = doctor


def settings_table(settings: Settings, script: Path | None = None) -> list[dict[str, Any]]:
    """Every setting with its value and its origin, a script or an option; the key only by where it is."""
    origins = {
        name: f"{script}, {name}" if script and settings.is_argument(name) else settings.origin(name)
        for name in NAMES
    }
    rows = [{"name": name, "value": getattr(settings, name), "origin": origins[name]} for name in NAMES]
    for row in rows:
        if row["name"] == "base_url":
            row["value"] = tuple(without_password(url) for url in settings.base_url)
        if row["name"] == "headers" and settings.headers:
            row["value"] = tuple(settings.headers)  # a value may be a key
    held = None if settings.api_key is None else "set"
    return [*rows, {"name": "api_key", "value": held, "origin": settings.origin("api_key")}]


def check_remembered(endpoint: Endpoint) -> list[CheckResult]:
    """The limit that earlier runs have learned: the next one starts there."""
    now = time.time()
    learned = learned_limits.load(home() / "limits.json", now=now).get(endpoint.name)
    if learned is None:
        return []
    what = [f"{learned.limit} calls at once"] if learned.limit is not None else []
    what += [f"{learned.rate:.3g} requests a second"] if learned.rate is not None else []
    what += ["long replies (it reasons first)"] if learned.needs_room else []
    if not what:
        return []
    minutes = (now - learned.at) / 60
    age = f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.0f} hours"
    return [ok("learned", f"{', '.join(what)}, as of {age} ago")]


def check_variables(environment: Mapping[str, str]) -> list[CheckResult]:
    """Variables that look like settings and are none."""
    return [
        wrong("variable", f"{name} has no effect" + (f"; did you mean {near}?" if near else ""))
        for name, near in unknown_variables(environment).items()
    ]


def check_cache(settings: Settings) -> CheckResult:
    """Where verdicts are kept, how much there is, and whether more can be added."""
    if settings.cache in ("off", "memory"):
        return note("cache", f"{settings.cache} ({settings.origin('cache')}): another run pays again")
    path = Path(settings.cache).expanduser() if settings.cache else default_path()
    if path.is_dir():
        return wrong("cache", f"{path} is a folder; name a file")
    if not path.exists():
        nearest = next(place for place in path.absolute().parents if place.exists())
        if os.access(nearest, os.W_OK):
            return ok("cache", f"{path}, does not exist yet")
        why = f"{path} cannot be made: {nearest} is not writable; use --cache PATH"
        return wrong("cache", why)
    found = f"{path}, {path.stat().st_size / 1e6:,.1f} MB"
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        return ok("cache", f"{found}, writable")
    return wrong("cache", f"{found}, cannot be written; change its permissions, or use --cache")


def check_packages() -> list[CheckResult]:
    """Optional packages: which are here, and what the others would give."""
    checks = []
    for name, (gain, requirement) in PACKAGES.items():
        try:
            checks.append(ok(name, version(name)))
        except PackageNotFoundError:
            checks.append(note(name, f"not installed: {gain}; {install_command(requirement)}"))
    return checks


def check_embedded(settings: Settings) -> CheckResult:
    """Whether the judge on this machine could answer."""
    if settings.local_model:
        path = Path(settings.local_model).expanduser()
        if path.is_file():
            return ok("embedded", str(path))
        return wrong("embedded", f"the model file {path} does not exist")
    if SMOLLM2.path.exists():
        return note("embedded", f"{SMOLLM2.path}: for trying things out, not a reliable judge")
    return note(
        "embedded", f"{SMOLLM2.title} ({SMOLLM2.megabytes} MB) will be downloaded on first use, if you agree"
    )


def _examine(arguments: Mapping[str, Any], options: DoctorOptions) -> tuple[Settings | None, Sections]:
    sections: Sections = {}
    try:
        if options.verl is not None:
            settings, endpoints, sections[str(options.verl)] = check_verl(options.verl)
        elif options.trl is not None:
            settings, endpoints, sections[str(options.trl)] = check_trl(options.trl)
        else:
            settings = load(arguments)
            endpoints = endpoints_of(settings)
    except ConfigError as error:
        named = error.named(functools.partial(_spelled, is_script=options.trl is not None))
        return None, {"settings": [wrong("settings", str(named))]}
    if endpoints:
        sections["key"] = [check_key(settings, endpoints)]
    for endpoint in endpoints:
        found = asyncio.run(examine(endpoint))
        sections[endpoint.url] = [*check_endpoint(found, settings), *check_remembered(found.endpoint)]
    is_training = options.verl is not None or options.trl is not None
    here = [*check_variables(os.environ), check_cache(settings), *check_packages()]
    sections["this machine"] = here if endpoints or is_training else [check_embedded(settings), *here]
    return settings, sections


def _spelled(setting: str, value: object, *, is_script: bool) -> str:
    """A setting as it is typed; in a script, as it is written there."""
    if is_script and setting != "trl":
        return as_argument(setting, value)
    return as_flag(setting, value, own={"verl": "--verl", "trl": "--trl"})


def _lines(sections: Sections, rows: list[dict[str, Any]], faults: list[str]) -> list[str]:
    lines = []
    for place, checks in sections.items():
        lines.append(place)
        lines += [f"  {MARKS[check.state]:6}{check.name:11}{check.text}" for check in checks]
    if rows:
        lines.append("settings")
        lines += [f"  {row['name']:19}{_shown(row['value']):40} {row['origin']}" for row in rows]
    lines.append("")
    named = ", ".join(dict.fromkeys(faults))
    lines.append(f"something is wrong: {named}" if faults else "everything is fine")
    return lines


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(f"{part:g}" if isinstance(part, float) else str(part) for part in value) or "-"
    if value is None or value == "":
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)
