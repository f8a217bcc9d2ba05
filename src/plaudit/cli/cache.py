"""`plaudit cache`: how big the verdict file is, making it smaller, writing it out, emptying it."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import typer
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from plaudit.caches import CacheStats, SqliteCache, default_path
from plaudit.cli.console import Commands, stderr
from plaudit.cli.sink import open_sink
from plaudit.errors import CacheError, ConfigError
from plaudit.settings import load

T = TypeVar("T")

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
BYTES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
BINARY_BYTES = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}

app = typer.Typer(
    cls=Commands,
    help="Look after the file of verdicts already paid for.",
    epilog="Example:  plaudit cache stats",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def seconds(text: str) -> float:
    """Read a duration: 90s, 45m, 12h, 30d, 2w."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw])", text.strip().lower())
    if not match:
        raise typer.BadParameter(f"{text!r} is no duration; write 90s, 45m, 12h, 30d or 2w")
    return float(match[1]) * SECONDS[match[2]]


def size(text: str) -> int:
    """Read a size: 500000, 500MB, 1.5GB, 2GiB."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", text.strip().lower())
    if not match or (match[3] and not match[2]):
        raise typer.BadParameter(f"{text!r} is no size; write 500MB, 1.5GB or 2GiB")
    return int(float(match[1]) * (BINARY_BYTES if match[3] else BYTES)[match[2]])


CacheFile = Annotated[
    str | None,
    typer.Option("--cache", metavar="PATH", help="Verdict file; if none is named, that of plaudit score."),
]


@app.command(epilog="Example:  plaudit cache stats --json")
def stats(
    cache: CacheFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for scripts.")] = False,
) -> None:
    """Say how many verdicts there are, how big the file is, how old they are."""
    path = _existing(cache)
    found = _run(path, lambda file: file.stats())
    if as_json:
        times = {"oldest": _when(found.oldest, UTC), "newest": _when(found.newest, UTC)}
        typer.echo(msgspec.json.encode({"path": str(path), **asdict(found), **times}))
    else:
        typer.echo(path)
        Console(highlight=False).print(_table(found))


@app.command(epilog="Example:  plaudit cache prune --older-than 30d --max-size 1GB")
def prune(
    cache: CacheFile = None,
    older_than: Annotated[
        float | None, typer.Option(parser=seconds, metavar="AGE", help="Drop what is older: 12h, 30d, 2w.")
    ] = None,
    max_size: Annotated[
        int | None, typer.Option(parser=size, metavar="SIZE", help="Then the oldest, down to 500MB, 1GB.")
    ] = None,
    max_entries: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Then the oldest, down to so many.")
    ] = None,
) -> None:
    """Drop old verdicts, and give the space back to the disk."""
    if older_than is None and max_size is None and max_entries is None:
        raise ConfigError("nothing to prune by; give --older-than, --max-size or --max-entries")
    path = _existing(cache)
    count = _run(
        path,
        lambda file: file.prune(older_than=older_than, max_bytes=max_size, max_entries=max_entries),
    )
    typer.echo(f"dropped {count:,} verdicts from {path}")


@app.command(epilog="Example:  plaudit cache export -o verdicts.jsonl")
def export(
    cache: CacheFile = None,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="OUT", help="File to write; - for stdout.")
    ] = "-",
) -> None:
    """Write all verdicts as JSON lines: key, created, value."""
    path = _existing(cache)
    if output == "-":
        _run(path, lambda file: file.export(sys.stdout.buffer))
        sys.stdout.buffer.flush()
        return
    sink = open_sink(output)
    try:
        count = _run(path, lambda file: file.export(sink))
        sink.commit()
    except BaseException:
        sink.discard()
        raise
    typer.echo(f"wrote {count:,} verdicts to {output}")


@app.command(epilog="Example:  plaudit cache clear --yes")
def clear(
    cache: CacheFile = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Drop all verdicts. They will be paid for again."""
    path = _existing(cache)
    if not yes:
        if not sys.stdin.isatty():
            raise ConfigError(f"this drops all verdicts in {path}; add --yes to say that you mean it")
        typer.confirm(f"Drop all verdicts in {path}?", abort=True, err=True)
    count = _run(path, lambda file: file.clear())
    typer.echo(f"dropped {count:,} verdicts from {path}")


def _existing(given: str | None) -> Path:
    setting = load({"cache": given}).cache
    if setting == "off":
        raise ConfigError("the cache is off by your settings; name a file with --cache")
    path = Path(setting).expanduser() if setting else default_path()
    if not path.exists():
        raise CacheError(
            f"there is no cache at {path}; `plaudit score` makes one, or name another with --cache"
        )
    return path


def _run(path: Path, work: Callable[[SqliteCache], Awaitable[T]]) -> T:
    """Open, work, close."""

    async def main() -> T:
        cache = SqliteCache(path, on_trouble=lambda message: stderr().print(f"warning: {message}"))
        try:
            return await work(cache)
        finally:
            await cache.close()

    return asyncio.run(main())


def _table(found: CacheStats) -> Table:
    table = Table(show_header=False, box=None)
    for name, value in (
        ("verdicts", f"{found.entries:,}"),
        ("their size", decimal(found.bytes)),
        ("on disk", decimal(found.file_bytes)),
        ("oldest", _when(found.oldest) or "-"),
        ("newest", _when(found.newest) or "-"),
        ("layout", str(found.schema_version)),
    ):
        table.add_row(name, value)
    return table


def _when(moment: float | None, zone: tzinfo | None = None) -> str | None:
    return None if moment is None else datetime.fromtimestamp(moment, zone).isoformat(timespec="seconds")
