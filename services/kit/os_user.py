"""The user of the operating system as whom this process runs."""

from __future__ import annotations

import getpass
import os


def os_user() -> str:
    """Return the user's name, or the numeric id if this host has no account with that id.

    Containers and clusters often run programs under an id alone.
    """
    try:
        return getpass.getuser()
    # The second from Python 3.13 on.
    except (KeyError, OSError):
        return str(os.getuid())
