"""`python -m determined.cli` is `det`."""

from determined.cli.cli import main

main()
