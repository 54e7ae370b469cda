"""Runs a part of the platform as a command. It is a separate distribution and is never imported."""

from __future__ import annotations

import os
import subprocess
import sys

from determined.cli.failure import Failure

# A missing parent package raises an exception, which also results in status 1.
_FIND_PLATFORM = "import importlib.util as u, sys; sys.exit(not u.find_spec('services.local.__main__'))"


def run_platform(words: list[str], module: str = "services.local", **variables: str) -> int:
    """Run `python -m module words` and return its status.

    Raises `Failure` if the platform is not installed.
    """
    # -P: a folder called `services` in the working directory must not be mistaken for the platform.
    python = [sys.executable, "-P"]
    if subprocess.run([*python, "-c", _FIND_PLATFORM], stderr=subprocess.DEVNULL, check=False).returncode:
        # Not `pip install steadfast`: on PyPI that name belongs to another project.
        raise Failure(
            "the platform is not installed here; install the wheel of steadfast that belongs to this "
            "steadfast-sdk, as docs/start/install.md says"
        )
    command = [*python, "-m", module, *words]
    return subprocess.run(command, env={**os.environ, **variables}, check=False).returncode
