"""In a storage that tasks of several users share, the folder of their TensorBoard files is nobody's."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from det_contracts.roots import Roots
from determined.core._tensorboard import stored_under, stored_under_experiment
from determined.storage import SharedFSStorageManager
from services.kit.allowed_paths import make_for_all, storage_folder
from tests.fixtures.other_users import needs_root
from worker.account import Account, file_access_as
from worker.run_setup import tensorboard_folders

pytestmark = needs_root
ANN, BOB = Account(60001, 60001, "ann"), Account(60002, 60002, "bob")
CLUSTER = "a-cluster"


@pytest.fixture
def storage():
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    (made / "source").mkdir()
    (made / "source" / "events").write_text("x")
    (made / "all").mkdir()
    (made / "all").chmod(0o1733)
    yield made / "all"
    shutil.rmtree(made)


def prepare(storage):
    description = {"type": "shared_fs", "host_path": str(storage)}
    make_for_all(storage_folder(description, Roots((str(storage),))), tensorboard_folders(CLUSTER))


def upload(storage, account, experiment):
    with file_access_as(account):
        SharedFSStorageManager(storage).upload(
            storage.parent / "source", stored_under(CLUSTER, experiment, experiment)
        )


def test_each_user_stores_and_removes_its_own_and_nobody_elses(storage):
    """The folder was the first user's, who could replace what others had stored, and no other could store."""
    for _ in range(2):
        prepare(storage)
    for account, experiment in ((ANN, 1), (BOB, 2)):
        upload(storage, account, experiment)
    of_bob = storage / stored_under_experiment(CLUSTER, 2)
    assert (of_bob / "trial" / "2" / "events").stat().st_uid == BOB.uid
    with file_access_as(ANN):
        for change in (
            lambda: of_bob.rename(of_bob.with_name("3")),
            lambda: of_bob.parent.rename(of_bob.parent.with_name("mine")),
            lambda: (of_bob / "more").touch(),
            lambda: os.listdir(of_bob.parent),
        ):
            with pytest.raises(PermissionError):
                change()
    with file_access_as(BOB):
        SharedFSStorageManager(storage).delete(stored_under_experiment(CLUSTER, 2), ["**/*"])
    assert not of_bob.exists()


def test_what_a_user_owns_is_left_alone(storage):
    """A folder that a user has put there, or a link: root makes nothing below."""
    with file_access_as(ANN):
        (storage / CLUSTER).mkdir()
    prepare(storage)
    assert list((storage / CLUSTER).iterdir()) == []
    (storage / CLUSTER).rmdir()
    (storage.parent / "secret").mkdir(mode=0o700)
    with file_access_as(ANN):
        (storage / CLUSTER).symlink_to(storage.parent / "secret")
    with pytest.raises(NotADirectoryError):
        prepare(storage)
    assert list((storage.parent / "secret").iterdir()) == []
    assert (storage.parent / "secret").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("mode", "owner"), [(0o755, 0), (0o777, 0), (0o1777, ANN.uid)])
def test_nothing_is_made_in_a_folder_that_is_not_for_all(storage, mode, owner):
    os.chown(storage, owner, owner)
    storage.chmod(mode)
    prepare(storage)
    assert list(storage.iterdir()) == []
