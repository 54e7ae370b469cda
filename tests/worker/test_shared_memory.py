"""What a task leaves in the host's memory goes with the last process of its user."""

import ctypes
import os
import subprocess
import uuid

import pytest

from tests.fixtures.other_users import needs_root
from worker import shared_memory
from worker.account import Account
from worker.user_folders import UserFolders, chown_tree

pytestmark = [pytest.mark.live, needs_root]

LEAVES = """
import ctypes, os, sys
name = sys.argv[1]
open(f"/dev/shm/{name}", "wb").write(b"x" * 1000)
os.makedirs(f"/dev/shm/{name}-folder/inner")
os.symlink("/etc", f"/dev/shm/{name}-folder/link")
os.symlink(sys.argv[2], f"/dev/shm/{name}-link")
print(ctypes.CDLL(None).shmget(0, 4096, 0o1600))
"""


@pytest.fixture
def user():
    """A user without an account, and without anything on this host."""
    return 2_000_000 + os.getpid()


@pytest.fixture
def left(user, tmp_path):
    """The paths and the segment that a program of this user left."""
    name = f"left-{uuid.uuid4().hex}"
    kept_folder = tmp_path / "kept"
    kept_folder.mkdir()
    command = ["/usr/bin/python3", "-c", LEAVES, name, str(kept_folder)]
    done = subprocess.run(command, user=user, group=user, capture_output=True, text=True, check=True)
    paths = [shared_memory.FOLDER / f"{name}{ending}" for ending in ("", "-folder", "-link")]
    assert all(os.path.lexists(path) for path in paths)
    yield paths, int(done.stdout), kept_folder
    shared_memory.free(user)


def segments(user):
    return shared_memory._segments(user)


def test_it_is_freed_with_the_folder_of_the_last_task(user, left, tmp_path):
    paths, segment, kept_folder = left
    assert segments(user) == [segment]
    folders = UserFolders(tmp_path / "tasks", "w")
    for task in ("first", "last"):
        chown_tree(folders.make(task), Account(user, user, "x"))
    with subprocess.Popen(["sleep", "1000"], user=user, group=user) as other:
        folders.clear("first")
        assert all(os.path.lexists(path) for path in paths), "another task of the user may use it"
        assert segments(user) == [segment]
        other.kill()
    folders.clear("last")
    assert not any(os.path.lexists(path) for path in paths)
    assert segments(user) == []
    assert kept_folder.is_dir()
    assert os.path.isdir("/etc")


def test_what_is_not_the_users_stays(user, left):
    paths, _, _ = left
    os.chown(paths[0], user + 1, user + 1)
    own = ctypes.CDLL(None).shmget(0, 4096, 0o1600)
    try:
        shared_memory.free(user)
        assert [os.path.lexists(path) for path in paths] == [True, False, False]
        assert own in segments(os.getuid())
    finally:
        ctypes.CDLL(None).shmctl(own, shared_memory.IPC_RMID, None)
        paths[0].unlink()
