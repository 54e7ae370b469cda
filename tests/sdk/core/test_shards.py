"""One checkpoint of several ranks, over real connections; nodes are told apart by their index."""

import json
import re
import subprocess
import sys

import pytest

from determined.core import CheckpointContext, DummyCheckpointContext
from determined.storage import SharedFSStorageManager
from tests.fixtures.ports import reserved_port
from tests.sdk.core.copying_storage import Copying
from tests.sdk.core.fake_transport import FakeTransport
from tests.sdk.core.socket_ranks import PATIENCE_S, run_ranks

STEPS = {"steps_completed": 10}
KINDS = pytest.mark.parametrize("manager", [SharedFSStorageManager, Copying])
PLACES = pytest.mark.parametrize(("nodes", "per_node"), [(1, 3), (3, 1)])


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def transport():
    return FakeTransport()


def write(directory, **files):
    for name, text in files.items():
        path = directory / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


def files_below(root):
    return {p.relative_to(root).as_posix(): p.read_text() for p in root.rglob("*") if p.is_file()}


def left_of(store):
    """Everything that lies in the store, and scratch directories beside it."""
    return [*store.glob("*"), *store.parent.glob("store-scratch-*")]


def uploads(store, transport, ranks, manager=Copying, **group):
    """Upload what `ranks` says (directory, metadata, selector) of each rank; outcomes by rank."""
    group = group or {"nodes": 1, "per_node": len(ranks)}

    def body(dist):
        directory, metadata, selector = ranks[dist.rank]
        checkpoint = CheckpointContext(dist, manager(store), transport)
        return checkpoint.upload(directory, metadata, shard=True, selector=selector)

    return run_ranks(body, **group)


def the_stored(transport):
    (entry,) = transport.log
    return entry[1]


@PLACES
@KINDS
def test_the_ranks_files_and_metadata_become_one(store, transport, tmp_path, manager, nodes, per_node):
    ranks = [
        (write(tmp_path / f"r{r}", **{f"part{r}": "x" * r, f"deep__{r}": "y"}), {f"key{r}": r}, None)
        for r in range(3)
    ]
    ranks[1][1].update(STEPS)
    ids = uploads(store, transport, ranks, manager, nodes=nodes, per_node=per_node)
    assert len(set(ids)) == 1
    stored = the_stored(transport)
    metadata = {"key0": 0, "key1": 1, "key2": 2, "steps_completed": 10}
    assert stored.metadata == metadata
    files = files_below(store / ids[0])
    assert json.loads(files["metadata.json"]) == metadata
    assert stored.resources == {name: len(text) for name, text in files.items()} | {"deep/": 0}
    assert files.keys() == {"metadata.json"} | {f"part{r}" for r in range(3)} | {
        f"deep/{r}" for r in range(3)
    }


def test_a_shared_directory_is_sent_once(store, transport, tmp_path):
    shared = write(tmp_path / "shared", a="1", b="2")
    sent = []

    class Counting(SharedFSStorageManager):
        def upload(self, src, dst, paths=None, **how):
            sent.append(sorted(paths))
            super().upload(src, dst, paths, **how)

    ids = uploads(store, transport, [(shared, STEPS, None)] * 4, Counting, nodes=2, per_node=2)
    # Two nodes may have equal inode numbers: the files of the second are compared, not taken for the same.
    assert sent == [["a", "b", "metadata.json"]]
    assert files_below(store / ids[0]).keys() == {"a", "b", "metadata.json"}
    assert the_stored(transport).resources.keys() == {"a", "b", "metadata.json"}


def test_a_rank_without_files_and_one_that_selects(store, transport, tmp_path):
    first, second = write(tmp_path / "first", a="1", sub__b="2", c="3"), write(tmp_path / "second", d="4")
    ranks = [
        (None, STEPS, None),
        (first, None, lambda name: name == "sub/b"),
        (first, None, lambda name: name == "a"),
        (second, None, None),
    ]
    ids = uploads(store, transport, ranks)
    assert files_below(store / ids[0]).keys() == {"a", "sub/b", "d", "metadata.json"}
    assert the_stored(transport).resources.keys() == {"a", "sub/", "sub/b", "d", "metadata.json"}


@KINDS
def test_equal_files_of_several_ranks_are_one(store, transport, tmp_path, manager):
    same = {f"same{n}": f"content {n}" for n in range(5)}
    ranks = [(write(tmp_path / f"r{r}", **same, **{f"own{r}": "z"}), STEPS, None) for r in range(3)]
    for r in range(3):
        (tmp_path / f"r{r}" / "metadata.json").write_text(f"of an earlier upload {r}")
    ids = uploads(store, transport, ranks, manager, nodes=3, per_node=1)
    assert files_below(store / ids[0]).keys() == {*same, "own0", "own1", "own2", "metadata.json"}
    assert the_stored(transport).metadata == STEPS


def test_different_files_of_one_name_are_refused_on_all_ranks(store, transport, tmp_path):
    ranks = [
        (write(tmp_path / "r0", same="s", state="aaa", longer="1"), STEPS, None),
        (write(tmp_path / "r1", same="s", state="bbb", longer="22"), STEPS, None),
        (write(tmp_path / "r2", same="s", state__inner="x"), STEPS, None),
    ]
    for outcome in uploads(store, transport, ranks):
        assert isinstance(outcome, RuntimeError)
        assert str(outcome).splitlines() == [
            "refusing to upload with files conflicts: ",
            "    longer: ranks 0, 1",
            "    state: ranks 0, 1, 2",
        ]
    assert transport.log == []
    assert left_of(store) == []


def test_contradicting_metadata_is_refused_on_all_ranks(store, transport, tmp_path):
    ranks = [(write(tmp_path / f"r{r}", **{f"f{r}": ""}), STEPS | {"a": {"b": r}}, None) for r in range(2)]
    for outcome in uploads(store, transport, ranks):
        assert isinstance(outcome, RuntimeError)
        assert re.fullmatch(
            r"refusing to upload with metadata conflicts: \n    /a/b: ranks 0, 1", str(outcome)
        )
    assert transport.log == []


def test_nobody_has_files_or_steps(store, transport, tmp_path):
    for outcome in uploads(store, transport, [(None, STEPS, None)] * 2):
        assert isinstance(outcome, RuntimeError)
        assert "no rank gave a directory" in str(outcome)
    files = write(tmp_path / "files", a="1")
    for outcome in uploads(store, transport, [(files, {"epoch": 1}, None), (None, None, None)]):
        assert isinstance(outcome, ValueError)
        assert "steps_completed" in str(outcome)
    assert not (files / "metadata.json").exists()
    assert left_of(store) == []


def test_an_error_of_one_rank_raises_on_all_ranks(store, transport, tmp_path):
    good = (write(tmp_path / "files", a="1"), STEPS, None)
    wrong = {
        FileNotFoundError: (tmp_path / "missing", STEPS, None),
        TypeError: (tmp_path / "files", {"x": object()}, None),
        RuntimeError: (None, STEPS, lambda name: True),
    }
    for kind, bad in wrong.items():
        first, second, third = uploads(store, transport, [good, bad, good])
        assert isinstance(second, kind)
        for other in (first, third):
            assert isinstance(other, RuntimeError)
            assert f"rank 1: {kind.__name__}: {second}" in str(other)
    assert transport.log == []


@PLACES
def test_a_rank_whose_upload_fails(store, transport, tmp_path, nodes, per_node):
    ranks = [write(tmp_path / f"r{r}", **{f"part{r}": "x"}) for r in range(3)]

    def body(dist):
        def fails():
            if dist.rank == 2:
                raise OSError("the store went away")

        checkpoint = CheckpointContext(dist, Copying(store, fails), transport)
        return checkpoint.upload(ranks[dist.rank], STEPS, shard=True)

    first, second, third = run_ranks(body, nodes, per_node)
    assert isinstance(third, OSError)
    for outcome in (first, second):
        assert isinstance(outcome, RuntimeError)
        assert "rank 2: OSError: the store went away" in str(outcome)
    assert transport.log == []
    assert left_of(store) == []


class Refusing(FakeTransport):
    def checkpoint(self, stored):
        raise RuntimeError("outdated run")


def test_a_refused_report_is_raised_by_all(store, tmp_path):
    files = write(tmp_path / "files", a="1")
    for outcome in uploads(store, Refusing(), [(files, STEPS, None)] * 2):
        assert isinstance(outcome, RuntimeError)
        assert "outdated run" in str(outcome)


@PLACES
@KINDS
def test_store_path(store, transport, manager, nodes, per_node):
    def body(dist):
        checkpoint = CheckpointContext(dist, manager(store), transport)
        with checkpoint.store_path({f"key{dist.rank}": 1, **STEPS}, shard=True) as (path, storage_id):
            assert path.is_dir()
            dist.allgather(0)
            write(path, **{f"part{dist.rank}": "x", f"deep__{dist.rank}": "y"})
        assert path.exists() == (manager is SharedFSStorageManager)
        return storage_id, str(path), transport.kinds()

    outcomes = run_ranks(body, nodes, per_node)
    ids, paths, kinds = zip(*outcomes, strict=True)
    assert len(set(ids)) == 1
    assert len(set(paths)) == (1 if manager is SharedFSStorageManager else nodes)
    assert set(map(tuple, kinds)) == {("checkpoint",)}
    files = files_below(store / ids[0])
    assert the_stored(transport).resources == {name: len(text) for name, text in files.items()} | {"deep/": 0}
    assert json.loads(files["metadata.json"]) == STEPS | {"key0": 1, "key1": 1, "key2": 1}
    assert {"part0", "part1", "part2", "deep/2"} < files.keys()
    assert left_of(store) == [store / ids[0]]


@PLACES
@KINDS
def test_an_exception_inside_of_one_rank_is_raised_by_all(store, transport, manager, nodes, per_node):
    def body(dist):
        checkpoint = CheckpointContext(dist, manager(store), transport)
        with checkpoint.store_path(STEPS, shard=True) as (path, _):
            write(path, **{f"part{dist.rank}": "x"})
            if dist.rank == 1:
                raise KeyError("state")

    first, second, third = run_ranks(body, nodes, per_node)
    assert isinstance(second, KeyError)
    for outcome in (first, third):
        assert isinstance(outcome, RuntimeError)
        assert "rank 1: KeyError: 'state'" in str(outcome)
    assert transport.log == []
    assert left_of(store) == []


@KINDS
def test_metadata_is_checked_before_the_body_runs(store, transport, manager):
    def body(dist):
        checkpoint = CheckpointContext(dist, manager(store), transport)
        with checkpoint.store_path({"epoch": 1, "steps_completed": "many"}, shard=True):
            pytest.fail("the body must not run")

    for outcome in run_ranks(body):
        assert isinstance(outcome, ValueError)
        assert "steps_completed" in str(outcome)
    assert left_of(store) == []


@KINDS
def test_one_rank_may_say_inside_the_body_how_far_it_is(store, transport, manager):
    def body(dist):
        checkpoint = CheckpointContext(dist, manager(store), transport)
        metadata = {} if dist.rank == 0 else None
        with checkpoint.store_path(metadata, shard=True) as (path, _):
            (path / f"part{dist.rank}").write_text("x")
            if metadata is not None:
                metadata["steps_completed"] = 7.0

    outcomes = run_ranks(body)
    assert outcomes == [None] * len(outcomes)
    assert transport.log[0][1].metadata == {"steps_completed": 7}


@KINDS
def test_nobody_says_how_far_it_is(store, transport, manager):
    def body(dist):
        checkpoint = CheckpointContext(dist, manager(store), transport)
        with checkpoint.store_path({}, shard=True) as (path, _):
            (path / f"part{dist.rank}").write_text("x")

    for outcome in run_ranks(body):
        assert isinstance(outcome, ValueError)
        assert "steps_completed" in str(outcome)
    assert left_of(store) == []


def test_a_storage_that_cannot_be_written_on_one_node(store, transport):
    class Full(Copying):
        def pre_store_path(self, dst):
            raise OSError("no space left")

    def body(dist):
        manager = Full if dist.rank == 1 else Copying
        with CheckpointContext(dist, manager(store), transport).store_path(STEPS, shard=True):
            pytest.fail("the body must not run")

    first, second = run_ranks(body, nodes=2, per_node=1)
    assert isinstance(second, OSError)
    assert "rank 1: OSError: no space left" in str(first)
    assert left_of(store) == []


def test_off_cluster_shards_need_no_steps(store, tmp_path):
    files = write(tmp_path / "files", a="1")

    def body(dist):
        return DummyCheckpointContext(dist, SharedFSStorageManager(store)).upload(files, shard=True)

    first, second = run_ranks(body)
    assert first == second
    assert files_below(store / first) == {"a": "1", "metadata.json": "{}"}


PROCESS = """
import sys
from determined.core import DistributedContext, DummyCheckpointContext
from determined.storage import SharedFSStorageManager
rank, port, root = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
dist = DistributedContext(rank=rank, size=2, local_rank=rank, local_size=2, cross_rank=0, cross_size=1,
                          pub_port=port)
checkpoint = DummyCheckpointContext(dist, SharedFSStorageManager(root + "/store"))
for step in ("alike", "apart"):
    try:
        print(checkpoint.upload(f"{root}/{step}{rank}", shard=True), flush=True)
    except RuntimeError as error:
        print(str(error).splitlines()[1:], flush=True)
dist.close()
"""


@pytest.mark.live
def test_processes_agree_on_which_files_are_the_same(tmp_path, store):
    same = {f"same{n}": f"{n}" for n in range(3)}
    for rank in range(2):
        write(tmp_path / f"alike{rank}", **same, **{f"own{rank}": ""})
        write(tmp_path / f"apart{rank}", **same, state=f"of {rank}")
    port = str(reserved_port())
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(rank), port, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    first, second = (process.communicate(timeout=PATIENCE_S)[0].splitlines() for process in processes)
    assert first == second
    assert files_below(store / first[0]).keys() == {*same, "own0", "own1", "metadata.json"}
    assert first[1] == "['    state: ranks 0, 1']"
    assert left_of(store) == [store / first[0]]


def test_a_used_up_quota_refuses_all_ranks_before_the_first_byte(store, transport, tmp_path):
    transport.no_storage = "workspace 'nlp' stores 2 TB"
    ranks = [(write(tmp_path / f"r{rank}", part="x"), STEPS, None) for rank in range(2)]
    outcomes = uploads(store, transport, ranks)
    assert all("workspace 'nlp' stores 2 TB" in str(outcome) for outcome in outcomes), outcomes
    assert (transport.log, left_of(store)) == ([], [])
    assert transport.calls == ["storage_refusal 0"]
