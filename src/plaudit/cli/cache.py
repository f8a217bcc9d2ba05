"""`plaudit cache`: how big the verdict file is, making it smaller, writing it out, emptying it."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TypeVar

import click
import msgspec

from plaudit.caches import CacheStats, SqliteCache, default_path
from plaudit.cli.console import Console
from plaudit.cli.options import WholeNumber, command, output_option
from plaudit.cli.output import written
from plaudit.config import expanded
from plaudit.errors import CacheError, ConfigError
from plaudit.settings import load, option

T = TypeVar("T")

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
BYTES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
BINARY_BYTES = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def seconds(text: str) -> float:
    """Read a duration: 90s, 45m, 12h, 30d, 2w."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw])", text.strip().lower())
    if not match:
        raise click.BadParameter(f"{text!r} is not a duration; write 90s, 45m, 12h, 30d or 2w")
    return float(match[1]) * SECONDS[match[2]]


def size(text: str) -> int:
    """Read a size: 500000, 500MB, 1.5GB, 2GiB."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", text.strip().lower())
    if not match or (match[3] and not match[2]):
        raise click.BadParameter(f"{text!r} is not a size; write 500MB, 1.5GB or 2GiB")
    return int(float(match[1]) * (BINARY_BYTES if match[3] else BYTES)[match[2]])


@dataclass(frozen=True, kw_only=True)
class CacheOptions:
    cache: str | None = option(None, "Verdict file (default: that of plaudit score)", metavar="PATH")


@dataclass(frozen=True, kw_only=True)
class StatsOptions(CacheOptions):
    as_json: bool = option(False, "Print one JSON object, for scripts.", flags=("--json",))


@command(StatsOptions, epilog="Example:  plaudit cache stats --json")
def stats(options: StatsOptions) -> None:
    """Show the number, size and age of the cached verdicts, and what was paid for them."""
    path = _existing(options.cache)
    found = _run(path, lambda file: file.stats())
    if options.as_json:
        times = {"oldest": _when(found.oldest, UTC), "newest": _when(found.newest, UTC)}
        click.echo(msgspec.json.encode({"path": str(path), **asdict(found), **times}))
    else:
        click.echo("\n".join([str(path), *_table(found)]))


@dataclass(frozen=True, kw_only=True)
class PruneOptions(CacheOptions):
    older_than: float | None = option(
        None, "Drop verdicts older than this: 12h, 30d, 2w.", metavar="AGE", type_=seconds
    )
    max_size: int | None = option(
        None, "Then drop the oldest, down to this size: 500MB, 1GB.", metavar="SIZE", type_=size
    )
    max_entries: int | None = option(
        None, "Then drop the oldest, down to this number.", metavar="N", type_=WholeNumber(min=0)
    )


@command(PruneOptions, epilog="Example:  plaudit cache prune --older-than 30d --max-size 1GB")
def prune(options: PruneOptions) -> None:
    """Drop old verdicts, and free their disk space."""
    limits = (options.older_than, options.max_size, options.max_entries)
    if limits == (None, None, None):
        raise ConfigError("nothing to do; give --older-than, --max-size or --max-entries")
    older_than, max_bytes, max_entries = limits
    path = _existing(options.cache)
    count = _run(
        path, lambda file: file.prune(older_than=older_than, max_bytes=max_bytes, max_entries=max_entries)
    )
    click.echo(f"dropped {count:,} verdicts from {path}")


@dataclass(frozen=True, kw_only=True)
class ExportOptions(CacheOptions):
    output: str = output_option("-", "File to write; - for stdout.")


@command(ExportOptions, epilog="Example:  plaudit cache export -o verdicts.jsonl")
def export(options: ExportOptions) -> None:
    """Write all verdicts as JSON lines: key, created, value."""
    path = _existing(options.cache)
    with written(options.output, str(path)) as sink:
        count = _run(path, lambda file: file.export(sink))
    if options.output != "-":
        click.echo(f"wrote {count:,} verdicts to {options.output}")


@dataclass(frozen=True, kw_only=True)
class ClearOptions(CacheOptions):
    yes: bool = option(False, "Do not ask for confirmation.", flags=("--yes", "-y"))


@command(ClearOptions, epilog="Example:  plaudit cache clear --yes")
def clear(options: ClearOptions) -> None:
    """Drop all verdicts. They will be paid for again."""
    path = _existing(options.cache)
    if not options.yes:
        if not sys.stdin.isatty():
            raise ConfigError(f"this drops all verdicts in {path}; add --yes to confirm")
        click.confirm(f"Drop all verdicts in {path}?", abort=True, err=True)
    count = _run(path, lambda file: file.clear())
    click.echo(f"dropped {count:,} verdicts from {path}")


cache = click.Group(
    "cache",
    commands=[stats, prune, export, clear],
    help="Manage the file of cached verdicts.",
    epilog="Example:  plaudit cache stats",
    no_args_is_help=True,
)


def _existing(given: str | None) -> Path:
    setting = load({"cache": given}).cache
    if setting == "off":
        raise ConfigError("the cache is off by your settings; name a file with --cache")
    path = expanded(setting) if setting else default_path()
    if not path.exists():
        how = "`plaudit score` makes one, or name another with --cache"
        raise CacheError(f"there is no cache at {path}; {how}")
    return path


def _run(path: Path, work: Callable[[SqliteCache], Awaitable[T]]) -> T:
    async def main() -> T:
        cache = SqliteCache(path, on_trouble=lambda message: Console().print(f"warning: {message}"))
        try:
            return await work(cache)
        finally:
            await cache.close()

    return asyncio.run(main())


def _table(found: CacheStats) -> list[str]:
    rows = (
        ("verdicts", f"{found.entries:,}"),
        ("their size", f"{found.bytes / 1e6:,.1f} MB"),
        ("on disk", f"{found.file_bytes / 1e6:,.1f} MB"),
        ("oldest", _when(found.oldest) or "-"),
        ("newest", _when(found.newest) or "-"),
        ("tokens", f"{found.prompt_tokens:,} in, {found.completion_tokens:,} out"),
        ("paid", f"${found.paid:,.4f}" if found.paid else "unknown: no price was given (--price IN OUT)"),
        ("layout", str(found.schema_version)),
    )
    return [f"  {name:12}{value}" for name, value in rows]


def _when(moment: float | None, zone: tzinfo | None = None) -> str | None:
    return None if moment is None else datetime.fromtimestamp(moment, zone).isoformat(timespec="seconds")
