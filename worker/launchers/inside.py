"""What a command needs inside of its container: its variables and its startup hook.

Variables are secrets among others, of any length and with line breaks: neither a command line nor an engine's
file of variables can carry them, and the environment of the engine's program must not, as it has other rights
than the task. So they are a file of the task's own, that a shell in the container reads. Every image that
trains has a shell.
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
    """Write the variables for the task alone; returns the names that no shell can export."""
    fit = {name: value for name, value in variables.items() if NAME.fullmatch(name)}
    text = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in fit.items())
    path = info_dir / FILE
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    return sorted(variables.keys() - fit.keys())


def with_variables(argv: Sequence[str], info_dir: Path) -> tuple[str, ...]:
    """A command after its variables are set.

    Example: `with_variables(["python3", "train.py"], Path("/info"))` begins with `sh -c`.
    """
    return ("sh", "-c", _READ, str(info_dir / FILE), *argv)
