"""Ranks that somebody starts without a launcher: one that dies before it connects is named soon."""

import os
import subprocess
import sys
import time

import pytest

from determined.core import DistributedContext, _presence, _rendezvous
from tests.fixtures.other_users import BOB, needs_root
from tests.fixtures.ports import reserved_port

DIES = "import determined; raise SystemExit(3)"
JOINS = (
    "import determined as det, sys;"
    "ctx = det.core.DistributedContext(rank=1, size=2, local_rank=1, local_size=2, cross_rank=0,"
    " cross_size=1, pub_port=int(sys.argv[1]));"
    "assert ctx.allgather(1) == [0, 1]"
)


@pytest.fixture
def job(monkeypatch, tmp_path):
    """A job of two ranks whose variables somebody set by hand; returns the port of its chief."""
    for name in ("TORCHELASTIC_RUN_ID", "DET_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(_presence.tempfile, "tempdir", None)
    for name, value in {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(_rendezvous, "GRACE_S", 0.3)
    monkeypatch.setattr(_rendezvous, "_LOOK_S", 0.05)
    return reserved_port()


def start(rank, program, *words):
    environment = os.environ | {"RANK": str(rank)}
    return subprocess.Popen([sys.executable, "-c", program, *words], env=environment)


def join(monkeypatch, rank, port):
    monkeypatch.setenv("RANK", str(rank))
    numbers = {"rank": rank, "size": 2, "local_rank": rank, "local_size": 2, "cross_rank": 0, "cross_size": 1}
    return DistributedContext(**numbers, pub_port=port)


@pytest.mark.parametrize(("dead", "other"), [(1, 0), (0, 1)])
def test_a_rank_that_dies_before_it_connects_is_named(monkeypatch, job, dead, other):
    assert start(dead, DIES).wait(60) == 3
    with pytest.raises(RuntimeError, match=rf"^rank {dead} of this job.* has died before all had joined$"):
        join(monkeypatch, other, job)


@needs_root
def test_nobody_else_can_make_a_rank_look_dead(monkeypatch, job):
    """The folder lies in /tmp, and what its files are called can be guessed."""
    assert start(1, DIES).wait(60) == 3
    assert _presence.has_died(1)
    os.chown(_presence._path(1), BOB, BOB)
    assert not _presence.has_died(1)


def test_a_rank_that_is_started_again_in_time_joins(monkeypatch, job):
    assert start(1, DIES).wait(60) == 3
    monkeypatch.setattr(_rendezvous, "GRACE_S", 60.0)
    again = start(1, JOINS, str(job))
    assert join(monkeypatch, 0, job).allgather(0) == [0, 1]
    assert again.wait(60) == 0


def test_what_an_earlier_job_left_is_no_death(monkeypatch, job, tmp_path):
    assert start(1, DIES).wait(60) == 3
    (left,) = tmp_path.glob("determined-ranks-*/*.1")
    long_ago = time.time() - 3600
    os.utime(left, (long_ago, long_ago))
    monkeypatch.setenv("STEADFAST_JOIN_PATIENCE_S", "1")
    with pytest.raises(TimeoutError, match="waiting for rank 1 of 2"):
        join(monkeypatch, 0, job)


def test_a_rank_that_has_joined_leaves_nothing(monkeypatch, job, tmp_path):
    other = start(1, JOINS, str(job))
    assert join(monkeypatch, 0, job).allgather(0) == [0, 1]
    assert other.wait(60) == 0
    assert list(tmp_path.glob("determined-ranks-*/*")) == []


@pytest.mark.parametrize(
    "variables", [{"TORCHELASTIC_RUN_ID": "1"}, {"DET_SESSION_TOKEN": "1"}, {"WORLD_SIZE": "1", "RANK": "0"}]
)
def test_ranks_that_are_watched_and_single_ones_show_nothing(job, tmp_path, variables):
    environment = os.environ | {"RANK": "1"} | variables
    subprocess.run([sys.executable, "-c", "import determined"], env=environment, check=True, timeout=60)
    assert list(tmp_path.glob("determined-ranks-*")) == []


def test_a_folder_of_somebody_else_is_not_used(monkeypatch, job):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setattr(_presence.os, "getuid", lambda: 4711)
    _presence.announce()
    assert _presence.has_died(1) is False
