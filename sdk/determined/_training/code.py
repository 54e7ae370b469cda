"""Storing the training code in checkpoints (Trainer spec, section 12 and D15)."""

from __future__ import annotations

import importlib
import logging
import os
import pathlib
import shutil
import uuid
from typing import Any

from determined import context as packing
from determined import import_from_path
from determined._info import info_directory

logger = logging.getLogger("determined.pytorch")
FOLDER = "code"


def trial_class(checkpoint: pathlib.Path, name: str) -> Any:
    """Import `module:Class` from the code of a checkpoint, which runs that code.

    Raises ValueError on failure.
    """
    module, _, path = name.partition(":")
    try:
        with import_from_path(checkpoint / FOLDER):
            member: Any = importlib.import_module(module)
            for part in path.split("."):
                member = getattr(member, part)
    except Exception as error:
        raise ValueError(f"the trial class '{name}' of the checkpoint cannot be imported: {error}") from error
    return member


class Code:
    """Copies the code into successive checkpoints, hard-linking files that an earlier one already has."""

    def __init__(self, on_cluster: bool) -> None:
        submitted = info_directory().parent / "model"
        self._source = submitted if on_cluster and submitted.is_dir() else pathlib.Path.cwd()
        self._last: pathlib.Path | None = None
        self._warned = False

    def copy_to(self, checkpoint: pathlib.Path) -> None:
        """Write `code/`, except what `.detignore` names.

        Code beyond the size limit is left out with a warning.
        """
        target = checkpoint / FOLDER
        target.mkdir()
        left = packing.LIMIT_BYTES
        storage = checkpoint.resolve().parent
        for entry in packing._walk(self._source, ""):
            if _is_stored(entry.source.resolve(), storage):
                continue
            place = target / entry.path
            if packing._is_dir(entry):
                place.mkdir(parents=True, exist_ok=True)
                continue
            left -= entry.status.st_size
            # Cut and not refused: a checkpoint without all of its code is better than none.
            if left < 0:
                self._warn()
                break
            place.parent.mkdir(parents=True, exist_ok=True)
            self._copy(entry.source, entry.path, place)
        self._last = target

    def _copy(self, source: pathlib.Path, path: str, place: pathlib.Path) -> None:
        before = self._last / path if self._last is not None else None
        try:
            if before is not None and _same(before, source):
                os.link(before, place)
                return
        # Some file systems know no hard links, and the earlier checkpoint may have been deleted by now.
        except OSError:
            pass
        # With its time, by which the next checkpoint recognizes an unchanged file.
        shutil.copy2(source, place)

    def _warn(self) -> None:
        if not self._warned:
            self._warned = True
            logger.warning(
                "%s holds more than %d MB: code/ of checkpoints is cut; name data and weights in .detignore",
                self._source,
                packing.LIMIT_BYTES // 2**20,
            )


def _is_stored(path: pathlib.Path, storage: pathlib.Path) -> bool:
    """Whether the path is inside a stored checkpoint. Copying those would nest checkpoints in each other."""
    if not path.is_relative_to(storage) or path == storage:
        return False
    try:
        uuid.UUID(path.relative_to(storage).parts[0])
    except ValueError:
        return False
    return True


def _same(path: pathlib.Path, other: pathlib.Path) -> bool:
    first, second = path.stat(), other.stat()
    return (first.st_size, first.st_mtime_ns) == (second.st_size, second.st_mtime_ns)
