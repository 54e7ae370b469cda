"""What the platform's own tasks delete and read: nothing outside of the roots, and through no link."""

import json
import os
import sys
from types import SimpleNamespace

import pytest

from det_contracts.roots import OutsideRoots, Roots
from determined import storage
from determined.exec import gc_checkpoints
from determined.storage.privileged import fenced

UUID = "0b2f6f0e-6f0c-4a39-9a55-0d8ad7ad3a51"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tasks run on Linux")


@pytest.fixture
def home(tmp_path):
    """The home of a cluster: keys beside the checkpoints."""
    for folder in ("secrets", f"secrets/{UUID}", f"checkpoints/{UUID}/inner", f"elsewhere/{UUID}"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("secrets/token-key", f"secrets/{UUID}/key", f"elsewhere/{UUID}/data"):
        (tmp_path / file).write_text("kept")
    (tmp_path / "checkpoints" / UUID / "model.pt").write_text("weights")
    (tmp_path / "checkpoints" / UUID / "inner" / "more.pt").write_text("weights")
    return tmp_path


@pytest.fixture
def roots(home):
    """The whole home is a root, and the keys in it are not."""
    return {"roots": [str(home)], "private": [str(home / "secrets")]}


def rest_is_untouched(home):
    files = [path for name in ("secrets", "elsewhere") for path in (home / name).rglob("*") if path.is_file()]
    return len(files) == 3 and all(path.read_text() == "kept" for path in files)


@pytest.fixture
def collect(home, roots, monkeypatch):
    """Delete as a collection task would; returns its status."""
    monkeypatch.setenv("DET_INFO_DIR", str(home / "info"))
    (home / "info").mkdir()
    received = []
    monkeypatch.setattr(gc_checkpoints, "_tell", lambda uuid, left: received.append(left))

    def run(host_path, uuid=UUID, globs=None, **more):
        order = {"storage": {"type": "shared_fs", "host_path": str(host_path)}, "uuids": [uuid]}
        order |= {"globs": globs, "roots": more or roots}
        (home / "info" / "deletion.json").write_text(json.dumps(order))
        return gc_checkpoints.main()

    run.received = received
    return run


def test_what_is_a_checkpoint_goes(home, collect):
    assert collect(home / "checkpoints") == 0
    assert list((home / "checkpoints").iterdir()) == []
    assert collect(home / "checkpoints") == 0


@pytest.mark.parametrize(("patience_s", "tried"), [(0, 1), (60, 3)])
def test_a_storage_that_hangs_is_not_waited_for_with_each_checkpoint(
    home, roots, monkeypatch, caplog, patience_s, tried
):
    uuids_tried = []

    class Hanging:
        def delete(self, uuid, globs):
            uuids_tried.append(uuid)
            raise OSError("nothing came for 120 s")

    monkeypatch.setenv("DET_INFO_DIR", str(home / "info"))
    monkeypatch.setattr(gc_checkpoints, "fenced", lambda storage, roots: Hanging())
    monkeypatch.setattr(gc_checkpoints, "PATIENCE_S", patience_s)
    (home / "info").mkdir()
    uuids = [UUID[:-1] + end for end in "123"]
    order = {"storage": {"type": "s3", "bucket": "b"}, "uuids": uuids, "globs": None, "roots": roots}
    (home / "info" / "deletion.json").write_text(json.dumps(order))
    assert gc_checkpoints.main() == 1
    assert uuids_tried == uuids[:tried]
    assert ("2 more checkpoints are left to the next attempt" in caplog.text) == (tried == 1)


@pytest.mark.parametrize(
    ("place", "uuid"),
    [
        ("", "secrets"),
        ("", "elsewhere"),
        ("", "."),
        ("checkpoints", f"../elsewhere/{UUID}"),
    ],
)
def test_what_has_another_name_was_reported_by_hand_and_stays(home, collect, place, uuid):
    # No failure: else an experiment that has one could never be deleted.
    assert collect(home / place, uuid) == 0
    assert rest_is_untouched(home)


def test_event_files_of_all_experiments_are_no_checkpoint(home, collect, monkeypatch):
    """They lie under the cluster's id, which may be a UUID, and a script names its checkpoints itself."""
    monkeypatch.setattr(gc_checkpoints.det, "get_cluster_info", lambda: SimpleNamespace(cluster_id=UUID))
    assert collect(home / "checkpoints") == 0
    assert (home / "checkpoints" / UUID / "model.pt").read_text() == "weights"


def test_nothing_of_the_platforms_goes(home, collect):
    assert collect(home / "secrets", UUID) == 1
    assert rest_is_untouched(home)


def test_nothing_goes_outside_of_the_roots(home, collect):
    assert collect(home / "elsewhere", roots=[str(home / "checkpoints")], private=[]) == 1
    assert rest_is_untouched(home)


def test_a_folder_that_holds_what_is_the_platforms_stays(home, collect):
    (home / UUID).mkdir()
    (home / "secrets").rename(home / UUID / "secrets")
    assert collect(home, roots=[str(home)], private=[str(home / UUID / "secrets")]) == 1
    assert (home / UUID / "secrets" / "token-key").exists()


@pytest.mark.parametrize("globs", [None, ["**/*"], ["*/*"], ["link/*"], ["link"]])
def test_a_link_goes_and_what_it_leads_to_stays(home, collect, globs):
    checkpoint = home / "checkpoints" / UUID
    (checkpoint / "link").symlink_to(home / "elsewhere" / UUID)
    (checkpoint / "key").symlink_to(home / "secrets" / "token-key")
    assert collect(home / "checkpoints", globs=globs) == 0
    assert rest_is_untouched(home)
    assert all("link/" not in name and "data" not in name for left in collect.received for name in left)


def test_a_checkpoint_that_is_a_link_stays(home, collect):
    (home / "elsewhere" / UUID).rename(home / "elsewhere" / "moved")
    (home / "elsewhere" / UUID).symlink_to(home / "elsewhere" / "moved")
    assert collect(home / "elsewhere") == 1
    assert (home / "elsewhere" / "moved" / "data").exists()


def test_a_link_on_the_way_to_event_files_is_not_followed(home, roots):
    manager = fenced({"type": "shared_fs", "host_path": str(home / "checkpoints")}, Roots(**roots))
    (home / "checkpoints" / "cluster").symlink_to(home / "elsewhere")
    with pytest.raises(OSError, match="Not a directory"):
        manager.delete(f"cluster/{UUID}", ["**/*"])
    assert rest_is_untouched(home)


def test_what_links_show_of_other_places_is_not_listed(home, roots):
    checkpoint = home / "checkpoints" / UUID
    (checkpoint / "link").symlink_to(home / "elsewhere" / UUID)
    (checkpoint / "key").symlink_to(home / "secrets" / "token-key")
    (checkpoint / "best.pt").symlink_to("model.pt")
    manager = fenced({"type": "shared_fs", "host_path": str(home / "checkpoints")}, Roots(**roots))
    names = {"best.pt", "model.pt", "inner/", "inner/more.pt"}
    assert set(manager.list_resources(UUID)) == names
    manager.download(UUID, home / "back")
    assert {path.relative_to(home / "back").as_posix() for path in (home / "back").rglob("*.*")} == {
        name for name in names if not name.endswith("/")
    }
    assert not (home / "back" / "key").exists()


def link_to_a_file(inner, other):
    (inner / "more.pt").unlink()
    (inner / "more.pt").symlink_to(other / "more.pt")


def link_to_a_folder(inner, other):
    inner.rename(inner.with_name("moved"))
    inner.symlink_to(other)


def pipe(inner, other):
    (inner / "more.pt").unlink()
    os.mkfifo(inner / "more.pt")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("swap", [link_to_a_file, link_to_a_folder, pipe])
def test_what_becomes_a_link_while_it_is_copied_is_not_followed(home, roots, swap):
    """Its author can change it at any moment, and whoever copies it may read what its author may not."""
    manager = fenced({"type": "shared_fs", "host_path": str(home / "checkpoints")}, Roots(**roots))
    inner, other = home / "checkpoints" / UUID / "inner", home / "elsewhere" / UUID
    (other / "data").rename(other / "more.pt")

    def choose(name):
        # Called between the list and the copies.
        if name == "inner/more.pt":
            swap(inner, other)
        return True

    with pytest.raises((OutsideRoots, OSError)):
        manager.download(UUID, home / "back", choose)
    assert all(path.read_text() == "weights" for path in (home / "back").rglob("*") if path.is_file())


def test_a_storage_outside_is_refused_with_what_to_do(home):
    with pytest.raises(OutsideRoots, match="STEADFAST_STORAGE_ROOTS"):
        fenced({"type": "shared_fs", "host_path": "/"}, Roots((str(home),)))
    other = fenced({"type": "s3", "bucket": "b"}, Roots())
    assert isinstance(other, storage.S3StorageManager)
