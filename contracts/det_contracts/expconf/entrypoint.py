"""What a node starts for an entrypoint (experiment configuration spec, section 5)."""

from __future__ import annotations

import re
from collections.abc import Sequence

TRIAL_CLASS = re.compile(r"[a-zA-Z0-9_.]+:[a-zA-Z0-9_]+")
TRIAL_LAUNCHER = "determined.launch.autodetect"


def entrypoint_command(entrypoint: str | Sequence[str], python: str) -> list[str]:
    """The command line: a trial class gets the launcher, other strings the shell, a list is taken as it is.

    `python` is the interpreter of the training environment.
    """
    if not isinstance(entrypoint, str):
        return list(entrypoint)
    if TRIAL_CLASS.fullmatch(entrypoint):
        return [python, "-m", TRIAL_LAUNCHER, "--trial", entrypoint]
    return ["sh", "-c", entrypoint]
