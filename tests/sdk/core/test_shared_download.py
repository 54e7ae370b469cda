"""Downloads of a job on two nodes: one per node, or one per call."""

import contextlib
import pathlib
import tempfile
import threading

import pytest

from determined import errors
from determined.core import DownloadMode, DummyCheckpointContext, DummyDistributedContext
from determined.storage import SharedFSStorageManager
from tests.sdk.core.copying_storage import Copying
from tests.sdk.core.socket_ranks import PATIENCE_S, run_ranks

ALL = ["a", "b", "metadata.json"]


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def storage_id(store):
    checkpoint = DummyCheckpointContext(DummyDistributedContext(), SharedFSStorageManager(store))
    with checkpoint.store_path() as (path, storage_id):
        (path / "a").write_text("1")
        (path / "b").write_text("2")
    return storage_id


class Counting(Copying):
    """Names that were asked for, by rank."""

    def __init__(self, base, rank, downloads):
        super().__init__(base)
        self.rank, self.downloads = rank, downloads

    def download(self, src, dst, selector=None):
        self.downloads.append((self.rank, [name for name in ALL if selector is None or selector(name)]))
        super().download(src, dst, selector)


def download(store, storage_id, target, selectors, mode=DownloadMode.LocalWorkersShareDownload):
    """Four ranks on two nodes; gives what each found in its node's directory, and who fetched what."""
    downloads = []

    def body(dist):
        checkpoint = DummyCheckpointContext(dist, Counting(store, dist.rank, downloads))
        own = target / f"{dist.cross_rank}"
        checkpoint.download(storage_id, own, mode, selector=selectors[dist.rank])
        return sorted(p.name for p in own.iterdir())

    return run_ranks(body, nodes=2, per_node=2), sorted(downloads)


def test_each_node_fetches_once(store, storage_id, tmp_path):
    files, downloads = download(store, storage_id, tmp_path / "to", [None] * 4)
    assert files == [ALL] * 4
    assert downloads == [(0, ALL), (2, ALL)]


def test_a_node_fetches_what_its_own_ranks_want(store, storage_id, tmp_path):
    selectors = ["a".__eq__, "b".__eq__, "a".__eq__, "a".__eq__]
    files, downloads = download(store, storage_id, tmp_path / "to", selectors)
    assert files == [["a", "b"], ["a", "b"], ["a"], ["a"]]
    assert downloads == [(0, ["a", "b"]), (2, ["a"])]


def test_a_selector_anywhere_keeps_all_nodes_in_step(store, storage_id, tmp_path):
    files, downloads = download(store, storage_id, tmp_path / "to", [None, None, None, "b".__eq__])
    assert files == [ALL] * 4
    assert downloads == [(0, ALL), (2, ALL)]


def test_one_rank_alone_may_fetch_for_itself(store, storage_id, tmp_path):
    def body(dist):
        if dist.rank != 3:
            return None
        checkpoint = DummyCheckpointContext(dist, Copying(store))
        checkpoint.download(storage_id, tmp_path / "own", "NO_SHARED_DOWNLOAD", selector="b".__eq__)
        with checkpoint.restore_path(storage_id, DownloadMode.NoSharedDownload) as path:
            return sorted(p.name for p in path.iterdir())

    assert run_ranks(body, nodes=2, per_node=2) == [None, None, None, ALL]
    assert [p.name for p in (tmp_path / "own").iterdir()] == ["b"]


class Scratch(Copying):
    """Restores into a temporary directory, as an object store does."""

    @contextlib.contextmanager
    def restore_path(self, src, selector=None):
        with tempfile.TemporaryDirectory() as scratch:
            self.download(src, scratch, selector)
            yield pathlib.Path(scratch)


def test_a_restored_directory_lives_until_the_slowest_rank_leaves(store, storage_id):
    left = threading.Event()

    def body(dist):
        checkpoint = DummyCheckpointContext(dist, Scratch(store))
        with checkpoint.restore_path(storage_id) as path:
            if dist.local_rank == 1:
                assert left.wait(PATIENCE_S)
                return (path / "a").read_text()
            left.set()
        return path.exists()

    assert run_ranks(body, nodes=1, per_node=2) == [False, "1"]


def test_an_unknown_id_is_an_error_of_all_ranks(store, tmp_path):
    for selectors in ([None] * 4, [None, None, None, "a".__eq__]):
        outcomes, _ = download(store, "unknown", tmp_path / "to", selectors)
        assert [type(outcome) for outcome in outcomes] == [errors.CheckpointNotFound] * 4
