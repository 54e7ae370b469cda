"""Folders of ended tasks that another task of the same user fills again while they are removed."""

import os
import subprocess
import sys
import threading

import pytest

from tests.fixtures.other_users import ANN, needs_root, open_folder
from worker.user_folders import UserFolders

pytestmark = [pytest.mark.live, needs_root, pytest.mark.timeout(120)]

REFILLS = """
import os, sys
os.setgid(int(sys.argv[2])), os.setuid(int(sys.argv[2]))
os.chdir(sys.argv[1])
print("here", flush=True)
number = 0
while True:
    number += 1
    try:
        os.makedirs(f"{number}/inner")
        open(f"{number}/inner/file", "w").close()
    except OSError:
        print("out", flush=True)
        break
"""


@pytest.fixture
def folders():
    with open_folder("refilled-") as root:
        yield UserFolders(root / "tasks", "worker")


def task_of(folders, id, *, uid=ANN):
    folder = folders.make(id)
    for path in (folder, folder / "tmp"):
        os.chown(path, uid, uid)
    return folder


@pytest.fixture
def refill():
    refillers = []

    def refill(folder, uid=ANN):
        command = [sys.executable, "-S", "-c", REFILLS, str(folder), str(uid)]
        refillers.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        assert refillers[-1].stdout.readline() == "here\n"
        return refillers[-1]

    yield refill
    for refiller in refillers:
        refiller.kill()
        refiller.communicate()


def test_who_fills_a_folder_again_does_not_keep_it(folders, refill):
    folder = task_of(folders, "1.r.1")
    refiller = refill(folder / "tmp")
    removal = threading.Thread(target=folders.clear, args=("1.r.1",), daemon=True)
    removal.start()
    removal.join(60)
    assert not removal.is_alive()
    assert list(folders.folder.iterdir()) == []
    assert refiller.stdout.readline() == "out\n"


def test_folders_of_any_depth_and_permissions_go_and_nothing_that_links_name(folders, tmp_path):
    folder = task_of(folders, "1.r.1")
    (tmp_path / "kept").write_text("kept")
    os.symlink(tmp_path, folder / "tmp" / "link")
    os.mkfifo(folder / "tmp" / "pipe")
    (folder / "tmp" / "closed").mkdir(mode=0)
    held = os.open(folder / "tmp", os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("deep", dir_fd=held)
        inner = os.open("deep", os.O_RDONLY, dir_fd=held)
        os.close(held)
        held = inner
    os.close(held)
    folders.clear("1.r.1")
    assert list(folders.folder.iterdir()) == []
    assert (tmp_path / "kept").read_text() == "kept"


def test_what_is_left_at_a_start_is_set_aside_at_once_and_removed_later(folders, refill):
    for id in ("1.r.1", "2.r.1"):
        task_of(folders, id)
    refill(folders.folder_of("1.r.1") / "tmp")
    folders.set_aside_all_except({"2.r.1"})
    assert not folders.folder_of("1.r.1").exists()
    assert folders.folder_of("2.r.1").exists()
    folders.remove_set_aside()
    assert list(folders.folder.iterdir()) == [folders.folder_of("2.r.1")]


def test_a_worker_killed_while_it_removed_goes_on_where_it_was(folders):
    task_of(folders, "1.r.1")
    folders.set_aside_all_except(())
    later = UserFolders(folders.folder.parent, "worker")
    task_of(later, "1.r.1")
    later.set_aside_all_except(())
    later.remove_set_aside()
    assert list(later.folder.iterdir()) == []
