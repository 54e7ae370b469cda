"""Names and sizes of a checkpoint's files, independent of the storage.

A name is a relative path with `/` separators. A directory's name ends in `/` and its size is 0 (core API
spec, section 7).
"""

import errno
import os
import pathlib
import posixpath
from collections.abc import Callable, Iterable

Resources = dict[str, int]
Selector = Callable[[str], bool]


def list_directory(root: "str | os.PathLike[str]", *, links: bool = False) -> Resources:
    """Return every file and directory below `root`. Symbolic links are followed, but never in a cycle.

    With `links` they are not followed; each is listed as a file.

    Raises ValueError for entries that a checkpoint cannot hold: link cycles, special files such as named
    pipes, and names that are not UTF-8.
    """
    resources: Resources = {}
    _walk(os.fspath(root), "", frozenset(), resources, links)
    return resources


def _walk(
    directory: str, prefix: str, above: frozenset[tuple[int, int]], resources: Resources, links: bool
) -> None:
    status = os.stat(directory)
    # Device and inode, because a link may reach the same directory by another path.
    here = (status.st_dev, status.st_ino)
    if here in above:
        raise ValueError(f"{directory} links back to a directory above it; a checkpoint cannot hold it")
    with os.scandir(directory) as entries:
        # Sorted, so that equal contents give equal lists on all ranks and file systems.
        children = sorted(entries, key=lambda entry: entry.name)
    for entry in children:
        _check_name(entry.path)
        if links and entry.is_symlink():
            resources[prefix + entry.name] = entry.stat(follow_symlinks=False).st_size
            continue
        if entry.is_dir():
            resources[f"{prefix}{entry.name}/"] = 0
            _walk(entry.path, f"{prefix}{entry.name}/", above | {here}, resources, links)
            continue
        if entry.is_symlink() and not os.path.exists(entry.path):
            raise FileNotFoundError(
                errno.ENOENT, "a link to nothing, which a checkpoint cannot hold; remove it", entry.path
            )
        resources[prefix + entry.name] = entry.stat().st_size
        if not entry.is_file():
            raise ValueError(f"{entry.path} is neither a file nor a directory; a checkpoint cannot hold it")


def _check_name(path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError:
        raise ValueError(f"the name of {path!r} is not in UTF-8; a checkpoint cannot hold it") from None


def parents(name: str) -> list[str]:
    """Return the parent directories of a name, outermost first: `a/b/c` -> `["a/", "a/b/"]`."""
    parts = name.rstrip("/").split("/")[:-1]
    return ["/".join(parts[: n + 1]) + "/" for n in range(len(parts))]


def with_parents(resources: Resources) -> Resources:
    """Add the directories that the names imply. The result is sorted."""
    implied = {parent: 0 for name in resources for parent in parents(name)}
    return dict(sorted({**implied, **resources}.items()))


def choose(resources: Resources, selector: Selector | None) -> Resources:
    """Return the entries the selector accepts, together with their parent directories."""
    if selector is None:
        return resources
    return with_parents({name: size for name, size in resources.items() if selector(name)})


def only(resources: Resources, names: Iterable[str] | None) -> Resources:
    """Return the entries of `resources` listed in `names`, or all if it is None."""
    if names is None:
        return resources
    wanted = set(names)
    return {name: size for name, size in resources.items() if name in wanted}


def inside(name: str) -> str:
    """Normalize a storage id or relative path. Raises ValueError if it is empty or leads outside."""
    normal = posixpath.normpath(name) if name else "."
    if normal == "." or normal.startswith(("/", "../")) or normal == "..":
        raise ValueError(f"{name!r} is not a name inside the checkpoint storage")
    return normal


def local_path(root: "str | os.PathLike[str]", name: str) -> pathlib.Path:
    """Return the path of a name below `root`. Raises ValueError if the name leads outside."""
    return pathlib.Path(root) / inside(name)


def stamps(root: "str | os.PathLike[str]", names: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return (size, modification time in ns) of files below `root`, for detecting changes."""
    times = {}
    for name in names:
        if not name.endswith("/"):
            status = os.stat(os.path.join(root, name))
            times[name] = (status.st_size, status.st_mtime_ns)
    return times
