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
from plaudit.config import Endpoint, expanded, home, without_password
from plaudit.errors import ConfigError, as_argument
from plaudit.install_command import install_command
from plaudit.local.model import SMOLLM2
from plaudit.scheduling import learned_limits
from plaudit.settings import NAMES, Settings, endpoints_of, load, option, unknown_variables
from plaudit.setup.json_lines import encode

PACKAGES = {
    "uvloop": ("a faster event loop", "uvloop"),
    "pyreqwest": ("another HTTP client", "plaudit[fast]"),
    "xllamacpp": ("the embedded judge", "plaudit[local]"),
}
Sections = dict[str, list[CheckResult]]
"""Results by place: an endpoint, this machine."""
MARKS = {"ok": "ok", "note": "note", "wrong": "WRONG"}


@dataclass(frozen=True, kw_only=True)
class DoctorOptions(Debugging):
    as_json: bool = option(False, "Write JSON, for scripts.", flags=("--json",))
    verl: Path | None = option(
        None, "Check the judge of a verl configuration, without verl and without a GPU.", "", "CONFIG.yaml"
    )
    trl: Path | None = option(
        None,
        "Check the judge of a TRL script, or of a file for `trl grpo --config`, without running it.",
        metavar="SCRIPT.py",
    )


@command(
    DoctorOptions,
    settings=("base_url", "model", "api_key_env", "local_model", "cache"),
    epilog="Example:  plaudit doctor --base-url http://localhost:8000/v1\n\n"
    "Before training:  plaudit doctor --verl config.yaml  or  plaudit doctor --trl train.py\n\n"
    "Exit status:  0 everything is fine, 1 something is wrong.",
)
def doctor(options: DoctorOptions, given: Given) -> int:
    """Check everything that a run depends on.

    Checks the key (masked), each endpoint (connection, model, features, limits; this sends a few tiny
    requests), the cache and optional packages, and prints every setting and where it came from.
    """
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
    return 1 if faults else 0


def settings_table(settings: Settings, script: Path | None = None) -> list[dict[str, Any]]:
    """Every setting with its value and its origin, a script or an option; the key only by where it is."""
    rows = []
    for name in (*NAMES, "api_key"):
        value, origin = getattr(settings, name), settings.origin(name)
        if script and name in NAMES and settings.is_argument(name):
            origin = f"{script}, {name}"
        if name == "base_url":
            value = tuple(map(without_password, value))
        elif name == "headers" and value:
            value = tuple(value)  # the names: what they are set to may be a key
        elif name == "api_key":
            value = value and "set"
        rows.append({"name": name, "value": value, "origin": origin})
    return rows


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


def check_cache(settings: Settings) -> CheckResult:
    """Where verdicts are kept, how much there is, and whether more can be added."""
    if settings.cache in ("off", "memory"):
        return note("cache", f"{settings.cache} ({settings.origin('cache')}): another run pays again")
    path = expanded(settings.cache) if settings.cache else default_path()
    if not os.access(path, os.F_OK):
        nearest = next(place for place in path.absolute().parents if os.access(place, os.F_OK))
        if os.access(nearest, os.W_OK):
            return ok("cache", f"{path}, does not exist yet")
        return wrong("cache", f"{path} cannot be made: {nearest} is not writable; use --cache PATH")
    if path.is_dir():
        return wrong("cache", f"{path} is a folder; name a file")
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
        path = expanded(settings.local_model)
        if path.is_file():
            return ok("embedded", str(path))
        return wrong("embedded", f"the model file {path} does not exist")
    if SMOLLM2.path.exists():
        return note("embedded", f"{SMOLLM2.path}: for trying things out, not a reliable judge")
    size = f"{SMOLLM2.megabytes} MB"
    return note("embedded", f"{SMOLLM2.title} ({size}) will be downloaded on first use, if you agree")


def _examine(arguments: Mapping[str, Any], options: DoctorOptions) -> tuple[Settings | None, Sections]:
    sections: Sections = {}
    training = options.verl or options.trl
    try:
        if training is not None:
            check = check_verl if options.verl else check_trl
            settings, endpoints, sections[str(training)] = check(training)
        else:
            settings = load(arguments)
            endpoints = endpoints_of(settings)
    except ConfigError as error:
        typed = functools.partial(as_flag, own={"verl": "--verl", "trl": "--trl"})
        is_in_script = options.trl is not None and error.setting != "trl"
        return None, {
            "settings": [wrong("settings", str(error.named(as_argument if is_in_script else typed)))]
        }
    if endpoints:
        sections["key"] = [check_key(settings, endpoints)]
    for endpoint in endpoints:
        found = asyncio.run(examine(endpoint))
        sections[endpoint.url] = [*check_endpoint(found, settings), *check_remembered(found.endpoint)]
    useless = [
        wrong("variable", f"{name} has no effect" + (f"; did you mean {near}?" if near else ""))
        for name, near in unknown_variables(os.environ).items()
    ]
    here = [*useless, check_cache(settings), *check_packages()]
    sections["this machine"] = here if endpoints or training else [check_embedded(settings), *here]
    return settings, sections


def _lines(sections: Sections, rows: list[dict[str, Any]], faults: list[str]) -> list[str]:
    lines = []
    for place, checks in sections.items():
        lines.append(place)
        lines += [f"  {MARKS[check.state]:6}{check.name:11}{check.text}" for check in checks]
    if rows:
        lines.append("settings")
        lines += [f"  {row['name']:19}{_shown(row['value']):40} {row['origin']}" for row in rows]
    named = ", ".join(dict.fromkeys(faults))
    return [*lines, "", f"something is wrong: {named}" if faults else "everything is fine"]


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(f"{part:g}" if isinstance(part, float) else str(part) for part in value) or "-"
    if value is None or value == "":
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)
