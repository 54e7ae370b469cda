"""Wraps a command with the startup hook of its working directory (launchers spec, section 2)."""

from __future__ import annotations

from collections.abc import Sequence

HOOK = "startup-hook.sh"
_WITH_HOOK_BASH = (
    '__entrypoint=("$@"); set --; set -ex; source ./startup-hook.sh; { set +ex; } 2>/dev/null; '
    'exec "${__entrypoint[@]}"'
)
_CHOOSE_SHELL = (
    'b=$0; s=$1; h=$2; shift 2; if command -v bash >/dev/null 2>&1; then exec bash -c "$b" "$h" "$@"; fi; '
    'exec sh -c "$s" "$h" "$@"'
)
"""The same for when it is not known which shell is available."""
_WITH_HOOK_SH = 'set -ex; . ./startup-hook.sh; { set +ex; } 2>/dev/null; exec "$@"'


def add_hook(argv: Sequence[str], shell: str = "bash") -> list[str]:
    """The command line that runs the working directory's `startup-hook.sh` and then the command.

    Both run in one shell, so variables that the hook exports reach the command. A failing line of the hook
    ends the task, and its lines are shown in the log. `shell` is bash, or a plain sh if there is no bash;
    with sh the hook must leave the positional parameters alone.
    """
    is_bash = shell.rpartition("/")[2] == "bash"
    return [shell, "-c", _WITH_HOOK_BASH if is_bash else _WITH_HOOK_SH, HOOK, *argv]


def add_hook_for_any_shell(argv: Sequence[str]) -> list[str]:
    """The same with whichever of the two shells exists, since images have one or both."""
    return ["sh", "-c", _CHOOSE_SHELL, _WITH_HOOK_BASH, _WITH_HOOK_SH, HOOK, *argv]
