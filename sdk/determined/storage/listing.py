"""Names and sizes of the files of a checkpoint, independent of where they lie.

A name is a relative path with `/`; a directory ends in `/` and has size 0 (core API spec, section 7).
"""

import os
import pathlib
import posixpath
from collections.abc import Callable, Iterable

Resources = dict[str, int]
Selector = Callable[[str], bool]


def list_directory(root: "str | os.PathLike[str]", *, links: bool = False) -> Resources:
    """Return every file and directory below `root`; symbolic links are followed, but never in a circle.

    With `links` they are not followed: each is listed as a file.

    ValueError for what a checkpoint cannot hold: such circles, named pipes and the like, names not in UTF-8.
    """
    resources: Resources = {}
    _walk(os.fspath(root), "", frozenset(), resources, links)
    return resources


def _walk(
    directory: str, prefix: str, above: frozenset[tuple[int, int]], resources: Resources, links: bool
) -> None:
    status = os.stat(directory)
    here = (status.st_dev, status.st_ino)
    if here in above:
        raise ValueError(f"{directory} links back to a directory above it; a checkpoint cannot hold it")
    with os.scandir(directory) as entries:
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
        resources[prefix + entry.name] = entry.stat().st_size
        if not entry.is_file():
            raise ValueError(f"{entry.path} is neither a file nor a directory; a checkpoint cannot hold it")


def _check_name(path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError:
        raise ValueError(f"the name of {path!r} is not in UTF-8; a checkpoint cannot hold it") from None


def parents(name: str) -> list[str]:
    """Return the directories above a name, outermost first: `a/b/c` -> `["a/", "a/b/"]`."""
    parts = name.rstrip("/").split("/")[:-1]
    return ["/".join(parts[: n + 1]) + "/" for n in range(len(parts))]


def with_parents(resources: Resources) -> Resources:
    """Add the directories that the names imply, in sorted order."""
    implied = {parent: 0 for name in resources for parent in parents(name)}
    return dict(sorted({**implied, **resources}.items()))


def choose(resources: Resources, selector: Selector | None) -> Resources:
    """Return what the selector wants, together with the directories above it."""
    if selector is None:
        return resources
    return with_parents({name: size for name, size in resources.items() if selector(name)})


def only(resources: Resources, names: Iterable[str] | None) -> Resources:
    """Return the part of `resources` that `names` lists; None is everything."""
    if names is None:
        return resources
    wanted = set(names)
    return {name: size for name, size in resources.items() if name in wanted}


def inside(name: str) -> str:
    """Return a storage id or relative path in normal form; ValueError if it is empty or leads outside."""
    normal = posixpath.normpath(name) if name else "."
    if normal == "." or normal.startswith(("/", "../")) or normal == "..":
        raise ValueError(f"{name!r} is not a name inside the checkpoint storage")
    return normal


def local_path(root: "str | os.PathLike[str]", name: str) -> pathlib.Path:
    """Return where a name lies below `root`; ValueError if the name leads outside."""
    return pathlib.Path(root) / inside(name)


def stamps(root: "str | os.PathLike[str]", names: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return (size, time of modification in ns) of files below `root`, which tell whether one has changed."""
    times = {}
    for name in names:
        if not name.endswith("/"):
            status = os.stat(os.path.join(root, name))
            times[name] = (status.st_size, status.st_mtime_ns)
    return times
