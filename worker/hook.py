"""A command after the startup hook of its working directory (launchers spec, section 2)."""

from __future__ import annotations

from collections.abc import Sequence

HOOK = "startup-hook.sh"
_WITH_HOOK_BASH = (
    '__entrypoint=("$@"); set --; set -ex; source ./startup-hook.sh; { set +ex; } 2>/dev/null; '
    'exec "${__entrypoint[@]}"'
)
_WITH_HOOK_SH = 'set -ex; . ./startup-hook.sh; { set +ex; } 2>/dev/null; exec "$@"'


def with_hook(argv: Sequence[str], shell: str = "bash") -> list[str]:
    """The command after `startup-hook.sh` of its working directory, in the same shell.

    So what the hook exports reaches the command; a failing line of it ends the task, and its lines are
    shown in the log. `shell` is bash, or a plain sh where there is none (there the hook must
    leave the positional parameters alone).
    """
    is_bash = shell.rpartition("/")[2] == "bash"
    return [shell, "-c", _WITH_HOOK_BASH if is_bash else _WITH_HOOK_SH, HOOK, *argv]
