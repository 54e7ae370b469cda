"""Matches the files of a checkpoint against globs (core API spec, section 7.3)."""

import logging
import posixpath
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from determined.storage.listing import Resources

logger = logging.getLogger("determined.storage")


def _segments(globs: Iterable[str]) -> list[list[str]]:
    usable = []
    for pattern in globs:
        normal = posixpath.normpath(pattern)
        if normal.startswith(("/", "../")) or normal in ("..", "."):
            logger.warning("ignoring glob %r: it does not lead to files inside the checkpoint", pattern)
        else:
            usable.append(normal.split("/"))
    return usable


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return _fits(parts, pattern[1:]) or (bool(parts) and _fits(parts[1:], pattern))
    # Not `fnmatch`, which ignores case on some systems: the same glob must delete the same files
    # everywhere.
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])


def _is_meant(name: str, patterns: list[list[str]]) -> bool:
    # A matching directory includes its contents, so every prefix of the path counts.
    parts = name.rstrip("/").split("/")
    return any(_fits(parts[:n], pattern) for n in range(1, len(parts) + 1) for pattern in patterns)


def split(resources: Resources, globs: Iterable[str]) -> tuple[Resources, Resources]:
    """Return (matched, left). `**/` matches any depth. A matching directory includes its contents.

    Globs that lead outside the checkpoint are ignored with a warning.
    """
    patterns = _segments(globs)
    matched = {name: size for name, size in resources.items() if _is_meant(name, patterns)}
    return matched, {name: size for name, size in resources.items() if name not in matched}
