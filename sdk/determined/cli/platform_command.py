"""Runs a part of the platform, which is another distribution: as a command, never imported."""

from __future__ import annotations

import os
import subprocess
import sys

from determined.cli.failure import Failure

# A parent that is not there raises, which is status 1 as well.
_FIND_PLATFORM = "import importlib.util as u, sys; sys.exit(not u.find_spec('services.local.__main__'))"


def run_platform(words: list[str], module: str = "services.local", **variables: str) -> int:
    """The exit status of `python -m module words`; raises `Failure` where the platform is not installed."""
    # -P: a user's own folder called `services` in the working directory must not be taken for the platform.
    python = [sys.executable, "-P"]
    if subprocess.run([*python, "-c", _FIND_PLATFORM], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Failure("the platform is not installed here; install it with: pip install steadfast")
    command = [*python, "-m", module, *words]
    return subprocess.run(command, env={**os.environ, **variables}, check=False).returncode
