"""Passes variables and the startup hook to a command inside its container.

Some variables are secrets, of any length and with line breaks. Neither a command line nor an engine's
variables file can carry them, and they must not be in the environment of the engine's program, which has
other rights than the task. So they are written to a file of the task that a shell in the container reads.
Every image used for training has a shell.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

FILE = "environment.sh"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_READ = '. "$0" && exec "$@"'


def write_variables(info_dir: Path, variables: Mapping[str, str]) -> list[str]:
    """Write the variables to a file for the task only. Returns the names that a shell cannot export."""
    fit = {name: value for name, value in variables.items() if NAME.fullmatch(name)}
    text = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in fit.items())
    path = info_dir / FILE
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    return sorted(variables.keys() - fit.keys())


def add_variables(argv: Sequence[str], info_dir: Path) -> tuple[str, ...]:
    """A command line that sets the variables and then runs the command.

    Example: `add_variables(["python3", "train.py"], Path("/info"))` begins with `sh -c`.
    """
    return ("sh", "-c", _READ, str(info_dir / FILE), *argv)
