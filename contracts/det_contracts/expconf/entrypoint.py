"""The command line that a node runs for an entrypoint (launchers spec, sections 2 and 7)."""

from __future__ import annotations

import re

TRIAL_CLASS = re.compile(r"[a-zA-Z0-9_.]+:[a-zA-Z0-9_]+")


class BadEntrypoint(ValueError):
    """The configuration's entrypoint has an unknown form."""


def entrypoint_command(
    entrypoint: object, *, slots: int, nodes: int = 1, python: str = "python3"
) -> list[str]:
    """Return the command line for each node; `slots` is per node. Raises `BadEntrypoint`.

    A list is run unchanged, and a string by the shell. `module:Class` trains that class, under torch's
    launcher if there is more than one worker process.
    """
    if isinstance(entrypoint, str):
        if not TRIAL_CLASS.fullmatch(entrypoint):
            return ["sh", "-c", entrypoint]
        if nodes == 1 and slots <= 1:
            return [python, "-m", "determined.exec.harness", entrypoint]
        return [python, "-m", "determined.launch.torch_distributed", "--trial", entrypoint]
    if isinstance(entrypoint, list) and entrypoint and all(isinstance(word, str) for word in entrypoint):
        return list(entrypoint)
    raise BadEntrypoint(
        f"invalid entrypoint in experiment config: {entrypoint!r}; give a string or a list of strings"
    )
