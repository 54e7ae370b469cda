"""Runs `det` as `python -m determined.cli`."""

from determined.cli.cli import main

# Programs import `main` from here, as they could in 0.25.
if __name__ == "__main__":
    main()
