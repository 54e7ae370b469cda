"""Folders of tasks that run as other users. They are outside the worker's own folder, which is closed.

Each task has one that belongs to its user and that no other user can read.
"""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Collection
from pathlib import Path

from worker import shared_memory
from worker.account import Account
from worker.workdir import remove_of_another

NAME_LENGTH = 12
"""Number of characters of the worker's instance id that name its folder: paths must stay short."""
SET_ASIDE = "removed-"
"""Beginning of the names of folders that belong to no task any more."""


class UserFolders:
    """The folders of one worker's tasks."""

    def __init__(self, root: Path, instance: str) -> None:
        self._root = root
        self.folder = root / instance[:NAME_LENGTH]

    def folder_of(self, allocation_id: str) -> Path:
        """The folder with the files of another user's task."""
        return self.folder / allocation_id

    def make(self, allocation_id: str) -> Path:
        """Create a fresh folder, which belongs to root until it is handed over."""
        for folder in (self._root, self.folder):
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            _check(folder)
        self.folder.chmod(0o711)
        self.clear(allocation_id)
        task_folder = self.folder_of(allocation_id)
        task_folder.mkdir(mode=0o700)
        (task_folder / "tmp").mkdir(mode=0o700)
        return task_folder

    def clear(self, allocation_id: str) -> None:
        """Remove a task's folder, if it exists, and what its user left in shared memory."""
        if self.folder_of(allocation_id).exists():
            _clear(self.folder_of(allocation_id))

    def set_aside_all_except(self, allocations: Collection[str]) -> None:
        """Rename, at once, what is left of tasks that are no longer known. See `remove_set_aside`."""
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                if path.name not in allocations:
                    path.rename(path.with_name(f"{SET_ASIDE}{uuid.uuid4().hex}"))

    def remove_set_aside(self) -> None:
        """Remove what was set aside, which takes as long as there are files."""
        for path in self.folder.glob(f"{SET_ASIDE}*"):
            _clear(path)


def _clear(task_folder: Path) -> None:
    uid = task_folder.lstat().st_uid
    remove_of_another(task_folder)
    # A folder that was not handed over yet is root's.
    if uid:
        shared_memory.free(uid)


def _check(folder: Path) -> None:
    """Raise `OSError` if any user but root could replace what is in the folder."""
    status = folder.lstat()
    swappable = status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX
    if status.st_uid != 0 or not stat.S_ISDIR(status.st_mode) or swappable:
        raise OSError(
            f"{folder} must be a folder that belongs to root and that no other user can write to: change its "
            "owner and mode, or set STEADFAST_WORKER_TASKS to another folder"
        )


def chown_tree(root: Path, account: Account) -> None:
    """Give a folder and everything in it to a user. Nothing of that user may run in it yet."""
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            os.chown(os.path.join(folder, name), account.uid, account.gid, follow_symlinks=False)
    os.chown(root, account.uid, account.gid)
