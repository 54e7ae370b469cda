"""Finds what an experiment's code would import instead of a package that is already loaded."""

from __future__ import annotations

import os
from importlib.machinery import all_suffixes
from pathlib import Path

MAX_ENTRIES = 5000
"""Code with more files and folders than this is not searched and starts cold."""
_SUFFIXES = tuple(all_suffixes())


def importable(folder: Path) -> frozenset[str] | None:
    """Names of modules and packages in a folder, or in any folder below it that is not itself a package.

    A script may put each of those folders on its path. Returns None if there is too much to search.
    """
    names: set[str] = set()
    pending, left = [str(folder)], MAX_ENTRIES
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    return None
                if entry.is_dir():
                    if os.path.exists(os.path.join(entry.path, "__init__.py")):
                        names.add(entry.name)
                    elif not entry.is_symlink():
                        pending.append(entry.path)
                elif entry.name.endswith(_SUFFIXES):
                    names.add(entry.name.partition(".")[0])
    return frozenset(names)


def modules_beside(script: Path) -> frozenset[str]:
    """Names of modules beside a script, which take precedence over all packages."""
    return frozenset(
        entry.name.partition(".")[0]
        for entry in os.scandir(script.parent)
        if entry.name.endswith(_SUFFIXES) or os.path.exists(os.path.join(entry.path, "__init__.py"))
    )
