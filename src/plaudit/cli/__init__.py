"""The command line: one module for each command, loaded when that command is called."""

from __future__ import annotations

import errno
import gc
import sys
from importlib import import_module
from typing import Any

import click

from plaudit.cli.console import Console, close_standard_streams, open_standard_streams
from plaudit.errors import PlauditError

COMMANDS = {
    "score": "Score every line of a file with a judge.",
    "report": "Turn a scored file into an HTML page.",
    "serve": "Serve one engine over HTTP, for everything that takes a URL.",
    "doctor": "Check everything that a run depends on.",
    "simulate": "Start a simulated judge with the speed, limits and faults that you choose.",
    "train-mutator": "Train a policy that rewrites questions so that a target model answers them better.",
    "mutate": "Rewrite questions with a trained policy.",
    "audit": "Find out whether a judge can be trusted.",
    "view": "Show journals in a browser.",
    "journal": "Read a journal: every verdict with its request and its reply.",
    "rejudge": "Judge the samples of a journal again, and report what changed.",
    "top": "Watch a run in the terminal.",
    "cache": "Manage the file of cached verdicts.",
}
NAMELESS = {
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO), "stdout cannot be written: {.strerror}"
    ),
    errno.ENOENT: "the working folder does not exist any more; change to another",
}
"""Errors of the system about no file that has a name, and what they are about."""
USAGE = 2
"""Exit status for bad usage or input."""
CLOSED = 141
"""Exit status where the reader of stdout has had enough (`| head`), as a shell gives it."""


class Commands(click.Group):
    """Loads a command when it is called; turns plaudit's own errors into one line and an exit status."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        return _load(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            near = get_close_matches(args[0].lower(), COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(error.message + hint, ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PlauditError as error:
            if ctx.meta.get("debug"):
                raise
            Console().print(f"plaudit: {error}")
            raise click.exceptions.Exit(USAGE) from None
        except KeyboardInterrupt:
            raise click.exceptions.Exit(130) from None
        except BrokenPipeError:
            raise click.exceptions.Exit(CLOSED) from None
        except OSError as error:  # a path in a folder that is closed to us, or one that is too long
            if error.filename is None or ctx.meta.get("debug"):
                raise
            Console().print(f"plaudit: {error.filename} cannot be used: {error.strerror}")
            raise click.exceptions.Exit(USAGE) from None


@click.group(
    cls=Commands,
    epilog="Example:  plaudit score answers.jsonl -o scored.jsonl   (more with: plaudit COMMAND --help)",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="plaudit", prog_name="plaudit", message="%(prog)s %(version)s")
def app() -> None:
    """Rewards from language-model judges, as fast as the API allows."""


def _load(name: str) -> click.Command:
    """A command, which its module has under the module's own name."""
    module = name.replace("-", "_")
    found: click.Command = getattr(import_module(f"plaudit.cli.{module}"), module)
    return found


def main() -> None:
    """The command `plaudit`."""
    open_standard_streams()
    try:
        for name in COMMANDS.keys() & set(sys.argv[1:2]):
            _load(name)
        gc.freeze()  # what was imported stays: looking through it for garbage takes a twentieth of a run
        status = app(prog_name="plaudit", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        sys.exit(status)
    except BrokenPipeError:
        sys.exit(CLOSED)
    except OSError as error:
        if error.errno not in NAMELESS or error.filename is not None:
            raise
        Console().print(f"plaudit: {NAMELESS[error.errno].format(error)}")
        sys.exit(USAGE)
    except click.ClickException as error:
        error.show(file=sys.stderr)  # by itself click writes past our stderr, and fails where that is full
        sys.exit(error.exit_code)
    except click.Abort:
        Console().print("aborted")
        sys.exit(1)
    finally:
        close_standard_streams()
