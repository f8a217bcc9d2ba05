"""The command line: one module for each command."""

from __future__ import annotations

import gc
from importlib.metadata import version
from typing import Annotated

import typer

from plaudit.cli import audit, cache, doctor, score, simulate, train_mutator
from plaudit.cli.console import Commands, close_standard_streams, open_standard_streams

app = typer.Typer(
    cls=Commands,
    help="Rewards from language-model judges, as fast as the API allows.",
    epilog="Example:  plaudit score answers.jsonl -o scored.jsonl   (more with: plaudit COMMAND --help)",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(help=score.HELP, epilog=score.EPILOG)(score.score)
app.command(help=doctor.HELP, epilog=doctor.EPILOG)(doctor.doctor)
app.command()(simulate.simulate)
app.command("train-mutator", help=train_mutator.HELP, epilog=train_mutator.EPILOG)(
    train_mutator.train_mutator
)
app.add_typer(audit.app, name="audit")
app.add_typer(cache.app, name="cache")


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"plaudit {version('plaudit')}")
        raise typer.Exit


@app.callback()
def _root(
    _: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """The command `plaudit`."""
    gc.freeze()  # what was imported stays: looking through it for garbage takes a twentieth of a run
    open_standard_streams()
    try:
        app(prog_name="plaudit")
    finally:
        close_standard_streams()
