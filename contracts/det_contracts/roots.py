"""Where the platform itself may read and delete: rules for names and for paths that are already resolved.

They do not apply to what a script does with its own rights. The platform's processes can access more than the
users who tell them where a checkpoint is, so user-supplied paths are checked against the configured storage
roots.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
SETTING = "STEADFAST_STORAGE_ROOTS"


class OutsideRoots(ValueError):
    """The platform must not touch this. The text names it and says what to do."""


class Roots(msgspec.Struct, frozen=True):
    """Directories that the platform may use, and excluded directories within them."""

    roots: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    """The platform's own: keys, databases, the log. The innermost directory that contains a path decides."""

    def check(self, path: str) -> str:
        """Return an absolute, resolved path if the platform may use it. Raises `OutsideRoots`."""
        holding = [root for root in (*self.roots, *self.private) if contains_path(root, path)]
        # All of them contain the same path, so the longest is the innermost.
        innermost = max(holding, key=len, default="")
        if innermost in self.private:
            raise OutsideRoots(f"{path} belongs to the platform itself: no checkpoint is stored there")
        if not holding:
            places = ", ".join(self.roots) or "none"
            raise OutsideRoots(
                f"{path} is outside of the storage roots ({places}): the platform neither reads nor "
                f"deletes there. The cluster's operator may add its directory to {SETTING}"
            )
        return path

    def check_tree(self, path: str) -> str:
        """The same, for a path that is read or deleted recursively."""
        self.check(path)
        # `path` may lie in one root and itself contain another, or a private directory.
        inner = next((root for root in (*self.roots, *self.private) if contains_path(path, root)), None)
        if inner is not None:
            raise OutsideRoots(f"{path} holds {inner}: that is no checkpoint")
        return path


def contains_path(folder: str, path: str) -> bool:
    """Whether a path equals a directory or is inside it. Both must be absolute and resolved."""
    # With the slash, because `/data-of-others` starts with `/data`, too.
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def valid_checkpoint_id(text: str) -> str:
    """Return a checkpoint id that is safe as part of a path. Raises `OutsideRoots`.

    Only directories of checkpoints are named with a UUID. So whatever location a configuration names as its
    storage, nothing else in it can be mistaken for a checkpoint.
    """
    if not _UUID.fullmatch(text):
        raise OutsideRoots(f"checkpoint '{text[:80]}' is not called after a UUID: its files are not touched")
    return text


def valid_file_name(name: str) -> str:
    """Return a file name in a checkpoint, or a directory name ending in a slash. Raises `OutsideRoots`."""
    parts = name.removesuffix("/").split("/")
    if "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise OutsideRoots(f"{name[:80]!r} does not lie in its checkpoint")
    return name


def split_paths(text: str, separator: str = ":") -> Sequence[str]:
    """Split a setting into several paths."""
    return [part for part in text.split(separator) if part]
