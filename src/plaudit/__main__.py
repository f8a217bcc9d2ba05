"""`python -m plaudit`, the same as the command `plaudit`."""

from plaudit.cli import main

main()
