"""Where the platform itself may read and delete: rules on names and on paths that are resolved already.

What a script does in its own name is not meant. The platform's own processes can open more than the people
who tell them where a checkpoint lies, so what people tell is compared with the storage roots of the settings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
SETTING = "STEADFAST_STORAGE_ROOTS"


class OutOfReach(ValueError):
    """The platform does not touch this; the text names it, and what to do."""


class Roots(msgspec.Struct, frozen=True):
    """Directories that the platform may use, and what lies in them that it may not."""

    roots: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    """The platform's own: keys, databases, the log. The innermost that holds a path decides about it."""

    def check(self, path: str) -> str:
        """The path, absolute and resolved, if the platform may use what lies there; raises `OutOfReach`."""
        holding = [root for root in (*self.roots, *self.private) if holds(root, path)]
        innermost = max(holding, key=len, default="")
        if innermost in self.private:
            raise OutOfReach(f"{path} belongs to the platform itself: no checkpoint lies there")
        if not holding:
            places = ", ".join(self.roots) or "none"
            raise OutOfReach(
                f"{path} lies outside of the storage roots ({places}): the platform neither reads nor "
                f"deletes there. The cluster's operator may add its directory to {SETTING}"
            )
        return path

    def check_tree(self, path: str) -> str:
        """The same, for what is read or deleted with all that is in it."""
        self.check(path)
        inner = next((root for root in (*self.roots, *self.private) if holds(path, root)), None)
        if inner is not None:
            raise OutOfReach(f"{path} holds {inner}: that is no checkpoint")
        return path


def holds(folder: str, path: str) -> bool:
    """Whether a path is a folder or lies in it; both are absolute and resolved."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def checkpoint_id(text: str) -> str:
    """The id of a checkpoint, where it becomes a part of a path; raises `OutOfReach`.

    No folder of anything but a checkpoint is called after a UUID: whatever else a configuration names as its
    storage, nothing in it can be taken for a checkpoint.
    """
    if not _UUID.fullmatch(text):
        raise OutOfReach(f"checkpoint '{text[:80]}' is not called after a UUID: its files are not touched")
    return text


def name_inside(name: str) -> str:
    """A name of a file or, with a slash at its end, a directory in a checkpoint; raises `OutOfReach`."""
    parts = name.removesuffix("/").split("/")
    if "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise OutOfReach(f"{name[:80]!r} does not lie in its checkpoint")
    return name


def split(text: str, separator: str = ":") -> Sequence[str]:
    """Several paths as one setting has them."""
    return [part for part in text.split(separator) if part]
