"""Data sets that are not JSON lines: JSON arrays, CSV, Parquet, and folders of the Hugging Face library.

Each is read as JSON lines, one for a row, and scored JSON lines are written as a table again. Parquet needs
pyarrow, the extra `data`.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import gzip
import io
import itertools
import json
import secrets
import shutil
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, TypeVar, cast

import msgspec

from plaudit.config import expanded
from plaudit.errors import ConfigError
from plaudit.files import write_whole
from plaudit.install_command import install_command
from plaudit.rows import CONVERSATIONS
from plaudit.setup.json_lines import OURS, BadLine, encode

S = TypeVar("S")
Format = Literal["jsonl", "json", "csv", "parquet", "folder"]
Convert = Callable[[BinaryIO, BinaryIO], None]
"""Reads scored JSON lines from the first file and writes them as a table to the second."""

FORMATS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
ROWS = 256
"""Rows of a Parquet file that are read at once."""
MAX_CELL = 1 << 30
"""Characters in a cell of a CSV file; the standard library stops at 131,072."""
ARROW_FILE = "data-00000-of-00001.arrow"
STATE = "state.json"
"""Files of a folder that `Dataset.save_to_disk` writes."""
HEAD = 4096
"""Bytes at the start of a file by which its format is recognised."""
BOM = b"\xef\xbb\xbf"
GZIP = b"\x1f\x8b"
FOREIGN = {
    b"PK\x03\x04": "an Excel workbook or a zip archive; save the sheet as CSV, or unpack the archive",
    b"\xd0\xcf\x11\xe0": "an Excel workbook; save the sheet as CSV",
    b"BZh": "compressed by bzip2; decompress it first, or compress it with gzip",
    b"\xfd7zXZ": "compressed by xz; decompress it first, or compress it with gzip",
    b"\x28\xb5\x2f\xfd": "compressed by zstd; decompress it first, or compress it with gzip",
    b"SQLite format 3": "an SQLite database; export the rows as JSON lines or CSV",
    b"\x89HDF": "an HDF5 file; export the rows as JSON lines, CSV or Parquet",
    b"ARROW1": "an Arrow file; write the table as Parquet",
    b"%PDF": "a PDF document; give the rows as JSON lines or CSV",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
}
"""How files begin that are not read, and what to do with them."""
UNWRITTEN = (
    ".xlsx", ".xls", ".ods", ".arrow", ".feather", ".db", ".sqlite", ".pkl", ".html", ".zip", ".bz2", ".xz",
    ".zst",
)  # fmt: skip
"""Endings of formats that are not written."""


def format_of(place: str) -> Format:
    """The format of an input: by its content where that is plain, else by its name; others raise."""
    path = expanded(place)
    if path.is_dir():
        return "folder"
    if not path.is_file():
        return "jsonl"  # a pipe can be read only once
    head = _head(path)
    if head.startswith(b"PAR1"):
        return "parquet"
    for start, what in FOREIGN.items():
        if head.startswith(start):
            raise ConfigError(f"{place} is {what}")
    found = named_format(place)
    if found in ("csv", "parquet"):
        return found
    first_line = head.removeprefix(BOM).lstrip().partition(b"\n")[0].rstrip()
    return "json" if first_line.startswith(b"[") or first_line == b"{" else "jsonl"


def named_format(place: str) -> Format | None:
    """The format that a name asks for; None where it says nothing."""
    return FORMATS.get(_ending(place))


def _ending(place: str) -> str:
    return Path(place.removesuffix(".gz")).suffix.lower()


def read_table(place: str, kind: Format) -> Iterator[tuple[int, bytes] | BadLine]:
    """The rows of a table as JSON lines, numbered from 1. The one that cannot be read raises ConfigError."""
    path = expanded(place)
    if kind == "json":
        yield from enumerate(_array(path, place), start=1)
    elif kind == "csv":
        yield from _csv_rows(path, place)
    else:
        tables = (batch.select(_readable(batch.schema)) for batch in _batches(path, place))
        for number, row in enumerate((row for table in tables for row in table.to_pylist()), start=1):
            yield number, msgspec.json.encode(row, enc_hook=str)


def writer(place: str, source: str, source_format: Format, skipped: Collection[int]) -> Convert | None:
    """How scored lines become what a name asks for, or else what the input is; None where that is JSON lines.

    The numbers of rows that were `skipped` are read when the table is written. ConfigError where the name
    asks for a format that is not written.
    """
    kind = named_format(place) or source_format
    is_compressed = place.endswith(".gz")
    is_unknown = _ending(place) in UNWRITTEN and Path(place).name != ARROW_FILE
    if is_unknown or (is_compressed and kind in ("parquet", "folder")):
        known = ", ".join(FORMATS)
        why = f"asks for a format that plaudit cannot write; the endings are {known}; .gz only with text"
        raise ConfigError(why, setting="output", value=place)
    convert = None if kind == "jsonl" else _table_writer(kind, place, source, source_format, skipped)
    return functools.partial(_compress, convert=convert) if is_compressed else convert


def _compress(lines: BinaryIO, out: BinaryIO, *, convert: Convert | None) -> None:
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packed:
        (convert or shutil.copyfileobj)(lines, cast(BinaryIO, packed))


def _table_writer(
    kind: Format, place: str, source: str, source_format: Format, skipped: Collection[int]
) -> Convert:
    if kind == "json":
        return _write_array
    if kind == "csv":
        is_same = source_format == "csv" and _ending(source) == _ending(place)
        usual = "\t" if _ending(place) == ".tsv" else ","
        delimiter = _dialect(expanded(source))["delimiter"] if is_same else usual
        return functools.partial(_write_csv, delimiter=delimiter)
    if source_format in ("parquet", "folder"):
        path = expanded(source)
        return functools.partial(
            _write_scored_batches,
            schema=_schema(path, source),
            batches=functools.partial(_batches, path, source),
            skipped=skipped,
            is_arrow=place.endswith(ARROW_FILE),
        )
    load_pyarrow()
    return _write_parquet


# -- JSON arrays ---------------------------------------------------------------------------------------------


def _array(path: Path, place: str) -> Iterator[bytes]:
    with open_binary(path) as file:
        content = file.read().removeprefix(BOM)
    try:
        for raw in msgspec.json.decode(content, type=list[msgspec.Raw]):
            yield msgspec.json.format(bytes(raw), indent=-1)
    except (msgspec.DecodeError, RecursionError):
        yield from map(encode, _array_by_hand(content, place))


def _array_by_hand(content: bytes, place: str) -> list[Any]:
    """What the standard library makes of it: it reads lone surrogates, and says better what is wrong."""
    try:
        found: list[Any] | dict[str, Any] = json.loads(content)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise ConfigError(
                f"{place} contains several objects of several lines; write one per line: jq -c . {place}"
            ) from None
        raise ConfigError(f"{place} is not JSON: {error}") from None
    except (ValueError, RecursionError) as error:  # the latter: nested too deeply
        raise ConfigError(f"{place} is not JSON: {error}") from None
    if isinstance(found, list):
        return found
    for name, value in found.items():
        is_list = isinstance(value, list) and value and all(isinstance(one, dict) for one in value)
        if is_list and name not in CONVERSATIONS:
            raise ConfigError(
                f"{place} has its rows under {name!r}; extract them with: jq -c '.{name}[]' {place}"
            )
    return [found]


def _write_array(lines: BinaryIO, out: BinaryIO) -> None:
    before = b"[\n"
    for line in lines:
        out.write(before + line.rstrip(b"\n"))
        before = b",\n"
    out.write(b"\n]\n" if before == b",\n" else b"[]\n")


# -- CSV -----------------------------------------------------------------------------------------------------


_END = "\0end of the file\0"
"""Follows the last line: a cell that ends in it is still open there."""


def _csv_rows(path: Path, place: str) -> Iterator[tuple[int, bytes] | BadLine]:
    csv.field_size_limit(MAX_CELL)
    try:
        dialect = _dialect(path)
        with _text(path) as file:
            rows = csv.reader(itertools.chain(file, [_END]), **dialect)
            header = next(rows, [])
            if header == ["sep=", ""]:  # Excel's way to name the delimiter
                header = next(rows, [])
            if twice := [name for name, count in Counter(header).items() if count > 1]:
                raise ConfigError(f"{place} has two columns named {twice[0]!r}; rename or delete one")
            before = rows.line_num
            for row in rows:
                if row == [_END]:
                    return
                if row and row[-1].endswith(_END):
                    raise ConfigError(
                        f"{place}, line {before + 1}: a quotation mark is opened and never closed; "
                        'close it, or write "" for a quotation mark within a cell'
                    )
                before = rows.line_num
                if len(row) == len(header):
                    yield rows.line_num, encode(dict(zip(header, row, strict=True)))
                elif row:
                    many = f"{len(row)} cells" if len(row) > 1 else "1 cell"
                    quotes = f'put text that contains "{dialect["delimiter"]}" in double quotes'
                    remedy = quotes if len(row) > len(header) else "add the missing ones, empty if need be"
                    yield BadLine(rows.line_num, f"{many} where the header has {len(header)}; {remedy}")
    except UnicodeDecodeError:
        raise ConfigError(f"{place} is not UTF-8 text; save it as UTF-8") from None
    except csv.Error as error:
        raise ConfigError(f"{place}, line {rows.line_num}, is not CSV: {error}") from None


def _dialect(path: Path) -> dict[str, Any]:
    """What separates the cells, by the header."""
    with _text(path) as file:
        header = file.readline()
    delimiter = max(",;\t", key=header.count)
    spaced = header.count(f"{delimiter} ")
    return {"delimiter": delimiter, "skipinitialspace": spaced > 0 and spaced == header.count(delimiter)}


def _write_csv(lines: BinaryIO, out: BinaryIO, *, delimiter: str) -> None:
    names: dict[str, None] = {}
    for line in lines:
        names |= dict.fromkeys(json.loads(line))
    header = [name for name in names if name not in OURS] + list(OURS)
    lines.seek(0)
    text = io.TextIOWrapper(out, "utf-8", errors="backslashreplace", newline="", write_through=True)
    table = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    table.writerow(header)
    for line in lines:
        row = json.loads(line)
        table.writerow([_cell(row.get(name)) for name in header])
    text.detach()


def _cell(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


# -- Parquet, and folders of the Hugging Face library --------------------------------------------------------


def load_pyarrow() -> Any:
    """pyarrow, with its module for Parquet. Raises ConfigError where it is not installed."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise ConfigError(
            f"Parquet needs the package pyarrow; run: {install_command('plaudit[data]')}"
        ) from None
    return pyarrow


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[tuple[Any, Iterator[Any]]]:
    """The columns of an Arrow or a Parquet file, and its rows, so many at once."""
    arrow = load_pyarrow()
    try:
        if file.suffix == ".arrow":
            with arrow.memory_map(str(file)) as mapped:
                stream = arrow.ipc.open_stream(mapped)
                parts = (batch.slice(at, ROWS) for batch in stream for at in range(0, batch.num_rows, ROWS))
                yield stream.schema, parts
        else:
            with arrow.parquet.ParquetFile(file) as table:
                yield table.schema_arrow, table.iter_batches(batch_size=ROWS)
    except (arrow.ArrowException, OSError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from None


def _batches(path: Path, place: str) -> Iterator[Any]:
    for file in _files(path, place):
        with _opened(file) as (_, parts):
            yield from parts


def _schema(path: Path, place: str) -> Any:
    """The columns of all files together: shards may differ in their order, their types and what they lack."""
    arrow, schemas = load_pyarrow(), []
    for file in _files(path, place):
        with _opened(file) as (schema, _):
            schemas.append(schema)
    try:
        return arrow.unify_schemas(schemas, promote_options="permissive")
    except arrow.ArrowException as error:
        raise ConfigError(
            f"the files of {place} cannot become one table ({error}); write JSON lines, like -o scored.jsonl"
        ) from None


def _readable(schema: Any) -> list[str]:
    """The columns that may be about the text: pictures and other bytes are not read."""
    types = load_pyarrow().types
    return [
        field.name
        for field in schema
        if not (types.is_binary(field.type) or types.is_large_binary(field.type))
    ]


class _Shard(msgspec.Struct):
    filename: str


class _State(msgspec.Struct):
    files: Annotated[list[_Shard], msgspec.Meta(min_length=1)] = msgspec.field(name="_data_files")


class _Splits(msgspec.Struct):
    splits: Annotated[list[str], msgspec.Meta(min_length=1)]


def _described(file: Path, kind: type[S]) -> S:
    """What the library that saved a data set wrote of it."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except ValueError as error:
        raise ConfigError(f"{file} is damaged ({error}); save the dataset again") from None


def _files(folder: Path, place: str) -> list[Path]:
    """The file itself, or those of a data set in a folder, in order."""
    if not folder.is_dir():
        return [folder]
    if (state := folder / STATE).is_file():  # written by Dataset.save_to_disk
        return [folder / one.filename for one in _described(state, _State).files]
    if (splits := folder / "dataset_dict.json").is_file():
        names = _described(splits, _Splits).splits
        raise ConfigError(
            f"{place} contains the splits {', '.join(names)}; name one, like {folder / names[0]}"
        )
    for pattern in ("*.parquet", "data/*.parquet", "*.arrow"):
        if found := sorted(folder.glob(pattern)):
            splits_found = sorted({file.name.partition("-")[0] for file in found if "-of-" in file.name})
            if len(splits_found) > 1:
                raise ConfigError(
                    f"{place} contains the splits {', '.join(splits_found)}; name one file, like {found[0]}"
                )
            return found
    there = sorted(file.name for file in folder.iterdir() if file.suffix in FORMATS)[:5]
    hint = f"name a file in it, like {folder / there[0]}" if there else "it contains no Parquet or Arrow file"
    raise ConfigError(f"{place} is a folder but not a dataset: {hint}")


def file_in_folder(source: str) -> str:
    """What the one file of a scored folder is called: as the library that saved the input expects it."""
    return ARROW_FILE if (expanded(source) / STATE).is_file() else "data.parquet"


def describe_folder(place: str) -> None:
    """Write what `datasets.load_from_disk` needs beside an Arrow file; nothing for other files."""
    path = expanded(place)
    if path.name != ARROW_FILE:
        return
    state: dict[str, Any] = {
        "_data_files": [{"filename": ARROW_FILE}],
        "_fingerprint": secrets.token_hex(8),
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    write_whole(path.with_name("dataset_info.json"), b"{}\n")
    write_whole(path.with_name(STATE), json.dumps(state, indent=2).encode())


def _write_scored_batches(
    lines: BinaryIO,
    out: BinaryIO,
    *,
    schema: Any,
    batches: Callable[[], Iterable[Any]],
    skipped: Collection[int],
    is_arrow: bool,
) -> None:
    """The columns of the input as they are, with ours beside them."""
    arrow, number = load_pyarrow(), 0
    ours = _our_columns(arrow, [])
    for name in OURS:
        if name in schema.names:
            schema = schema.remove(schema.get_field_index(name))
        schema = schema.append(arrow.field(name, ours[name].type))
    with (arrow.ipc.new_stream if is_arrow else arrow.parquet.ParquetWriter)(out, schema) as table:
        for batch in batches():
            numbers = range(number + 1, number + batch.num_rows + 1)
            number += batch.num_rows
            kept = batch.filter(arrow.array([one not in skipped for one in numbers]))
            theirs = kept.drop_columns([name for name in OURS if name in kept.schema.names])
            rows = [json.loads(lines.readline()) for _ in range(kept.num_rows)]
            scored = arrow.Table.from_batches([theirs])
            for name, column in _our_columns(arrow, rows).items():
                scored = scored.append_column(name, column)
            table.write_table(
                arrow.concat_tables([schema.empty_table(), scored], promote_options="permissive")
            )


def _write_parquet(lines: BinaryIO, out: BinaryIO) -> None:
    arrow = load_pyarrow()
    rows = [json.loads(line) for line in lines]
    names = dict.fromkeys(name for row in rows for name in row if name not in OURS)
    columns = {name: _column(arrow, [row.get(name) for row in rows]) for name in names}
    arrow.parquet.write_table(arrow.table(columns | _our_columns(arrow, rows)), out)


def _column(arrow: Any, values: list[Any]) -> Any:
    """Values as a column; as JSON text where they are of different types."""
    try:
        return arrow.array(values)
    except UnicodeError:
        return _column(arrow, [_encodable(value) for value in values])
    except arrow.ArrowException:
        return arrow.array([None if value is None else json.dumps(value) for value in values])


def _encodable(value: Any) -> str | None:
    """A value as text that UTF-8 has signs for: half a pair of surrogates is written as its escape."""
    text = value if value is None or isinstance(value, str) else json.dumps(value)
    return text and text.encode(errors="backslashreplace").decode()


def _our_columns(arrow: Any, rows: list[dict[str, Any]]) -> dict[str, Any]:
    columns = {name: [row.get(name) for row in rows] for name in OURS}
    columns["judge"] = [json.dumps(judge) for judge in columns["judge"]]
    texts = {name: map(_encodable, values) for name, values in columns.items() if name != "score"}
    scores = arrow.array(columns["score"], arrow.float64())
    return {"score": scores} | {name: arrow.array(list(one), arrow.string()) for name, one in texts.items()}


# -- files ---------------------------------------------------------------------------------------------------


def _head(path: Path) -> bytes:
    with open_binary(path) as file:
        try:
            return file.read(HEAD)
        except (OSError, EOFError, zlib.error):
            return b""  # said when it is read


def open_binary(path: Path) -> BinaryIO:
    """A file's content, decompressed where it is compressed by gzip, whatever its name."""
    with path.open("rb") as file:
        is_packed = file.read(2) == GZIP
    return cast(BinaryIO, gzip.open(path) if is_packed else path.open("rb"))


def _text(path: Path) -> io.TextIOWrapper:
    return io.TextIOWrapper(open_binary(path), "utf-8-sig", newline="")
