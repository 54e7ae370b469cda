"""How an experiment's `entrypoint` becomes a command line (launchers spec, sections 2 and 7)."""

from __future__ import annotations

import re
from collections.abc import Sequence

HOOK = "startup-hook.sh"
_CLASS = re.compile(r"[a-zA-Z0-9_.]+:[a-zA-Z0-9_]+")
_WITH_HOOK_BASH = (
    '__entrypoint=("$@"); set --; set -ex; source ./startup-hook.sh; { set +ex; } 2>/dev/null; '
    'exec "${__entrypoint[@]}"'
)
_WITH_HOOK_SH = 'set -ex; . ./startup-hook.sh; { set +ex; } 2>/dev/null; exec "$@"'


class BadEntrypoint(ValueError):
    """The configuration's entrypoint is of no known form."""


def command(entrypoint: object, *, slots: int, nodes: int = 1, python: str = "python3") -> list[str]:
    """The command line on each node; `slots` are those of one node. Raises `BadEntrypoint`.

    A list is run as it is, a string by the shell, and `module:Class` trains that class: under
    torch's launcher when there is more than one worker.
    """
    if isinstance(entrypoint, str):
        if not _CLASS.fullmatch(entrypoint):
            return ["sh", "-c", entrypoint]
        if nodes == 1 and slots <= 1:
            return [python, "-m", "determined.exec.harness", entrypoint]
        return [python, "-m", "determined.launch.torch_distributed", "--trial", entrypoint]
    if isinstance(entrypoint, list) and entrypoint and all(isinstance(word, str) for word in entrypoint):
        return list(entrypoint)
    raise BadEntrypoint(
        f"invalid entrypoint in experiment config: {entrypoint!r}; give a string or a list of strings"
    )


def with_hook(argv: Sequence[str], shell: str = "bash") -> list[str]:
    """The command after `startup-hook.sh` of its working directory, in the same shell.

    So what the hook exports reaches the command; a failing line of it ends the task, and its lines are
    shown in the log. `shell` is bash, or a plain sh where there is none (there the hook must
    leave the positional parameters alone).
    """
    is_bash = shell.rpartition("/")[2] == "bash"
    return [shell, "-c", _WITH_HOOK_BASH if is_bash else _WITH_HOOK_SH, HOOK, *argv]
