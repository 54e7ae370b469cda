"""What every storage promises; runs against each of them."""

import os
import random

import pytest

from determined import errors
from determined.storage import SharedFSStorageManager, validate_manager

FILES = {"root.txt": b"root file", "subdir/file1.txt": b"nested file 1", "subdir/file2.txt": b"nested file 2"}
RESOURCES = {"root.txt": 9, "subdir/": 0, "subdir/file1.txt": 13, "subdir/file2.txt": 13}


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    for name, content in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    (root / "empty_dir").mkdir()
    return root


def files_below(root):
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def kept_empty(storage):
    """Directories without files are kept by directories only."""
    return {"empty_dir/": 0} if isinstance(storage, SharedFSStorageManager) else {}


def test_up_list_down_and_away(storage, tree, tmp_path):
    storage.upload(tree, "one")
    assert storage.list_resources("one") == {**RESOURCES, **kept_empty(storage)}
    storage.download("one", tmp_path / "back")
    assert files_below(tmp_path / "back") == FILES
    with storage.restore_path("one") as path:
        assert files_below(path) == FILES
    assert path.exists() == storage.store_path_is_direct_access()
    assert storage.delete("one", ["**/*"]) == {}
    assert storage.delete("one", ["**/*"]) == {}
    for ask in (storage.list_resources, lambda i: storage.download(i, tmp_path / "no"), enter(storage)):
        with pytest.raises(errors.CheckpointNotFound, match="one"):
            ask("one")
    assert not (tmp_path / "no").exists()


def enter(storage):
    def ask(storage_id):
        with storage.restore_path(storage_id):
            pass

    return ask


def test_upload_of_some_names(storage, tree, tmp_path):
    storage.upload(tree, "some", ["subdir/", "subdir/file1.txt"])
    assert storage.list_resources("some") == {"subdir/": 0, "subdir/file1.txt": 13}
    storage.upload(tree, "none", [])
    with pytest.raises(errors.CheckpointNotFound):
        storage.list_resources("none")


def test_download_of_a_selection(storage, tree, tmp_path):
    storage.upload(tree, "one")
    storage.download("one", tmp_path / "a", lambda name: name == "subdir/file2.txt")
    assert files_below(tmp_path / "a") == {"subdir/file2.txt": b"nested file 2"}
    storage.download("one", tmp_path / "b", lambda name: name == "subdir/")
    assert [p.name for p in (tmp_path / "b").rglob("*")] == ["subdir"]
    storage.download("one", tmp_path / "c", lambda name: False)
    assert not (tmp_path / "c").exists()


def test_store_path(storage, tmp_path):
    with storage.store_path("mine") as path:
        (path / "deep" / "er").mkdir(parents=True)
        (path / "deep" / "er" / "state").write_text("x")
    assert storage.list_resources("mine") == {"deep/": 0, "deep/er/": 0, "deep/er/state": 1}
    with pytest.raises(FileExistsError), storage.store_path("broken") as path:
        (path / "state").mkdir() or (path / "state").mkdir()
    assert not path.exists()
    with pytest.raises(errors.CheckpointNotFound):
        storage.list_resources("broken")


@pytest.mark.parametrize(
    ("globs", "left"),
    [
        (["empty_dir/*", "subdir/*"], ["root.txt", "subdir/", "empty_dir/"]),
        (["empty_dir"], [*RESOURCES]),
        (["subdir"], ["root.txt", "empty_dir/"]),
        (["**/*.txt"], ["subdir/", "empty_dir/"]),
        (["**.txt"], ["subdir/", "subdir/file1.txt", "subdir/file2.txt", "empty_dir/"]),
        (["./subdir/../root.txt"], ["subdir/", "subdir/file1.txt", "subdir/file2.txt", "empty_dir/"]),
        (["**"], []),
        (["**/file?.txt"], ["root.txt", "subdir/", "empty_dir/"]),
        ([], [*RESOURCES, "empty_dir/"]),
    ],
)
def test_partial_deletion(storage, tree, globs, left):
    storage.upload(tree, "one")
    kept_files = {name.split("/")[0] for name in left if not name.endswith("/")}
    if kept_empty(storage):
        expected = {name: RESOURCES.get(name, 0) for name in left}
    else:
        expected = {name: RESOURCES[name] for name in left if name.split("/")[0] in kept_files}
    assert storage.delete("one", globs) == expected
    if expected:
        assert storage.list_resources("one") == expected
    else:
        with pytest.raises(errors.CheckpointNotFound):
            storage.list_resources("one")


def test_globs_that_lead_outside_are_ignored(storage, tree, caplog):
    storage.upload(tree, "one")
    storage.upload(tree, "two")
    before = storage.list_resources("one")
    assert storage.delete("one", ["../two/*", "/etc/*", "subdir/../../two/root.txt", ".."]) == before
    assert storage.list_resources("two") == before
    assert caplog.text.count("ignoring glob") == 4


@pytest.mark.parametrize("name", ["", ".", "..", "../other", "/absolute", "a/../.."])
def test_a_storage_id_cannot_lead_outside(storage, tree, tmp_path, name):
    for act in (
        lambda: storage.upload(tree, name),
        lambda: storage.download(name, tmp_path / "x"),
        lambda: storage.delete(name, ["**/*"]),
        lambda: storage.pre_store_path(name),
    ):
        with pytest.raises(ValueError, match="not a name inside"):
            act()


def test_links_are_followed(storage, tree, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "data").write_text("linked")
    (tree / "link_dir").symlink_to(outside)
    (tree / "link_file").symlink_to(outside / "data")
    storage.upload(tree, "one")
    storage.download("one", tmp_path / "back")
    assert (tmp_path / "back" / "link_dir" / "data").read_text() == "linked"
    assert not (tmp_path / "back" / "link_file").is_symlink()


def test_a_link_to_nothing_is_refused_with_what_to_do(storage, tree):
    (tree / "latest.pt").symlink_to(tree / "step-9.pt")
    with pytest.raises(FileNotFoundError, match=r"link to nothing.*remove it.*latest\.pt"):
        storage.upload(tree, "one")


def test_links_in_a_circle_are_refused(storage, tree):
    (tree / "loop").symlink_to(tree)
    with pytest.raises(ValueError, match="links back"):
        storage.upload(tree, "one")


def test_odd_names_survive(storage, tmp_path):
    names = {"with space", "50%", "plus+and&", "ümläut", "a" * 200, "tab\tless".replace("\t", "_")}
    source = tmp_path / "source"
    source.mkdir()
    for name in names:
        (source / name).write_text(name)
    storage.upload(source, "odd")
    storage.download("odd", tmp_path / "back")
    assert files_below(tmp_path / "back") == {name: name.encode() for name in names}


def test_empty_and_large_files(storage, tmp_path, monkeypatch):
    from determined.storage import download, transfer

    monkeypatch.setattr(transfer, "PART_SIZE_BYTES", 5 << 20)
    monkeypatch.setattr(download, "RANGE_SIZE_BYTES", 1 << 20)
    source = tmp_path / "source"
    source.mkdir()
    large = os.urandom((11 << 20) + 7)
    (source / "large.bin").write_bytes(large)
    (source / "empty.bin").write_bytes(b"")
    storage.upload(source, "large")
    assert storage.list_resources("large") == {"empty.bin": 0, "large.bin": len(large)}
    storage.download("large", tmp_path / "back")
    assert (tmp_path / "back" / "large.bin").read_bytes() == large
    assert (tmp_path / "back" / "empty.bin").read_bytes() == b""


def test_random_state_is_not_disturbed(storage, tree, tmp_path):
    random.seed(7)
    expected = random.random()
    random.seed(7)
    storage.upload(tree, "one")
    storage.download("one", tmp_path / "back")
    assert random.random() == expected


def test_validation_leaves_nothing(storage, tmp_path):
    validate_manager(storage)
    if isinstance(storage, SharedFSStorageManager):
        assert list((tmp_path / "storage").iterdir()) == []
