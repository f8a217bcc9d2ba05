"""`python -m plaudit`, the same as the command `plaudit`."""

from plaudit_command import main

main()
