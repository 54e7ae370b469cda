"""The home directory of the user as whom this process runs."""

from __future__ import annotations

import os
from pathlib import Path


class NoHomeDirectory(RuntimeError):
    """This user has no home directory. The text says what to set."""


def home_directory() -> Path:
    """Return the user's home directory. Raises `NoHomeDirectory`.

    Containers and clusters may run programs under an id that has no account, and without `HOME`.
    """
    try:
        return Path.home()
    except RuntimeError:
        who = f"user {os.getuid()}" if hasattr(os, "getuid") else "this user"
        raise NoHomeDirectory(f"{who} has no home directory on this host: set HOME") from None
