"""Packs a directory of user code for an experiment.

The rules are in client spec, section 4.1. A packed file is a dict in the form the master accepts (REST spec,
section 3.1).
"""

from __future__ import annotations

import base64
import logging
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pathspec

LIMIT_BYTES = 95 * 1024 * 1024
FILE, DIRECTORY = 48, 53
IGNORE_FILE = ".detignore"

ALWAYS_IGNORED = (
    "__pycache__/",
    "*.py[co]",
    "*$py.class",
    "terraform",
    "terraform_data",
    "terraform.tfstate*",
    "terraform.tfvars*",
    ".terraform*",
    ".git/",
    ".vscode/",
    ".idea/",
    ".mypy_cache/",
    "/shared_fs",
    IGNORE_FILE,
)

OnFile = Callable[[int, int], None]

logger = logging.getLogger("determined.context")


class ContextError(ValueError):
    """The directory cannot be sent as it is. The message says what to change."""


class _Entry(NamedTuple):
    path: str
    """Path in the trial's working directory, with `/` separators."""
    source: Path
    status: os.stat_result


def pack(
    model_dir: Path | None,
    includes: Iterable[Path] = (),
    on_file: OnFile | None = None,
    *,
    limit: int | None = None,
) -> list[dict[str, Any]]:
    """Pack all files of a directory, and of `includes` under their own base names.

    Unreadable files are skipped with a warning. `on_file` is called with the bytes and files packed so far.
    Raises `ContextError` if `model_dir` is not a directory, if names collide, or if the total exceeds `limit`
    bytes (default 95 MiB).
    """
    limit = LIMIT_BYTES if limit is None else limit
    if model_dir is not None and not model_dir.exists():
        raise ContextError(f"there is no directory '{model_dir}', whose files were to be sent")
    if model_dir is not None and not model_dir.is_dir():
        raise ContextError(f"'{model_dir}' must be a directory, maybe use an include instead?")
    entries = list(_walk(model_dir, "")) if model_dir is not None else []
    entries += _included(list(includes), taken={entry.path.split("/")[0] for entry in entries})
    _check_size(sum(entry.status.st_size for entry in entries if not _is_dir(entry)), limit)
    return list(_packed(entries, on_file, limit))


def _included(includes: list[Path], taken: set[str]) -> Iterator[_Entry]:
    for root in includes:
        name = root.name
        if name in ("", ".", ".."):
            raise ContextError(
                f"cannot include '{root}': it has no name under which it could be sent; name a file or folder"
            )
        if name in taken:
            raise ContextError(f"duplicate path detected: '{root}' would be sent as '{name}', which is taken")
        taken.add(name)
        entry = _entry(root, name)
        if entry is None:
            raise ContextError(f"cannot include '{root}': it is not a readable file or directory")
        yield entry
        if _is_dir(entry):
            yield from _walk(root, f"{name}/")


def _walk(root: Path, prefix: str) -> Iterator[_Entry]:
    ignored = _ignored_in(root)
    pending = [""]
    while pending:
        folder = pending.pop()
        inner: list[str] = []
        for name in _names(root / folder):
            relative = folder + name
            source = root / relative
            # Some matcher backends accept only UTF-8.
            spelled = relative.encode("utf-8", "replace").decode()
            if ignored.match_file(f"{spelled}/" if source.is_dir() else spelled):
                continue
            entry = _entry(source, prefix + relative)
            if entry is None:
                continue
            yield entry
            # A link to a directory above it would never end.
            if _is_dir(entry) and not source.is_symlink():
                inner.append(f"{relative}/")
        pending += reversed(inner)


def _ignored_in(root: Path) -> pathspec.GitIgnoreSpec:
    import pathspec

    try:
        # Without the mark with which editors on Windows begin a file: it is no part of the first pattern.
        own = (root / IGNORE_FILE).read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        own = []
    except (OSError, UnicodeDecodeError) as error:
        raise ContextError(f"cannot read {root / IGNORE_FILE}: {error}") from error
    try:
        # The ignore file's own name is repeated at the end, so that a `!` pattern cannot bring it back.
        return pathspec.GitIgnoreSpec.from_lines([*ALWAYS_IGNORED, *own, IGNORE_FILE])
    except ValueError as error:
        raise ContextError(f"cannot understand {root / IGNORE_FILE}: {error}") from error


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        _skip(folder, error)
        return []


def _entry(source: Path, path: str) -> _Entry | None:
    """Return None for entries that cannot be sent: broken links, sockets, names that are not UTF-8."""
    try:
        path.encode("utf-8")
        status = source.stat()
    except (UnicodeEncodeError, OSError) as error:
        _skip(source, error)
        return None
    if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
        return _Entry(path, source, status)
    _skip(source, "neither a file nor a directory")
    return None


def _skip(source: Path, reason: object) -> None:
    shown = str(source).encode("utf-8", "backslashreplace").decode()
    logger.warning("'%s' is not sent: %s", shown, getattr(reason, "strerror", None) or reason)


def _is_dir(entry: _Entry) -> bool:
    return stat.S_ISDIR(entry.status.st_mode)


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        mebibytes = f" ({limit >> 20} MiB)" if limit == LIMIT_BYTES else ""
        raise ContextError(
            f"the files to send have {size:,} bytes, the limit is {limit:,}{mebibytes}; "
            f"name files that the code does not need in {IGNORE_FILE}, and keep data sets elsewhere"
        )


def _packed(entries: Iterable[_Entry], on_file: OnFile | None, limit: int) -> Iterator[dict[str, Any]]:
    size = count = 0
    for entry in entries:
        if _is_dir(entry):
            # Also empty ones, which the script may write to.
            yield _item(entry, DIRECTORY, b"")
            continue
        try:
            content = entry.source.read_bytes()
        except OSError as error:
            _skip(entry.source, error)
            continue
        size += len(content)
        count += 1
        _check_size(size, limit)  # a file may have grown since it was listed
        if on_file is not None:
            on_file(size, count)
        yield _item(entry, FILE, content)


def _item(entry: _Entry, kind: int, content: bytes) -> dict[str, Any]:
    return {
        "path": entry.path,
        "type": kind,
        "content": base64.b64encode(content).decode("ascii"),
        "mtime": str(int(entry.status.st_mtime)),
        "mode": stat.S_IMODE(entry.status.st_mode),
        "uid": 0,
        "gid": 0,
    }
