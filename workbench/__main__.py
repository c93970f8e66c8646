"""`python -m workbench` is the command `workbench`."""

from workbench.command.cli import main

main()
