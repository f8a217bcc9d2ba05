"""The command `plaudit`. Outside of the package, which it imports: Ctrl-C may come while that is loading."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C ends it without a traceback from the first import on."""
    try:
        from plaudit.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
