"""Runs `det` as `python -m determined.cli`."""

from determined.cli.cli import main

main()
