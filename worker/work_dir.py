"""The folder of the host, or of the image, that a task of a user names as its working directory."""

from __future__ import annotations

from collections.abc import Sequence

from worker.briefing import Briefing

TASKS = ("COMMAND", "NOTEBOOK", "SHELL")
_ENTER = (
    'cd -- "$0" 2>/dev/null || { echo "ERROR: work_dir of the configuration: cannot enter $0; '
    'it must be a folder on this agent that the task may enter" >&2; exit 1; }; exec "$@"'
)


def work_dir_of(briefing: Briefing) -> str:
    """The `work_dir` of a task's configuration, or "" where it begins in a folder of its own."""
    return str(briefing.config.get("work_dir") or "") if briefing.task.task_type in TASKS else ""


def work_dir_variables(briefing: Briefing) -> dict[str, str]:
    """The variable that tells a task the folder that it works in, if that is not one of its own."""
    folder = work_dir_of(briefing)
    return {"DET_WORKDIR": folder} if folder else {}


def enter(argv: Sequence[str], folder: str) -> list[str]:
    """The command line that enters a folder, with the rights of the task, and then runs the command."""
    return ["sh", "-c", _ENTER, folder, *argv]
