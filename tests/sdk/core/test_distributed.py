import subprocess
import sys

import pytest

from determined.core import DistributedContext, DummyDistributedContext

ONE = {"rank": 0, "size": 1, "local_rank": 0, "local_size": 1, "cross_rank": 0, "cross_size": 1}


@pytest.mark.parametrize(
    "make", [DummyDistributedContext, DistributedContext, lambda: DistributedContext(**ONE)]
)
def test_a_job_of_one(make):
    dist = make()
    assert {name: getattr(dist, name) for name in ONE} == ONE
    assert (dist.get_rank(), dist.get_local_rank(), dist.get_size(), dist.get_num_agents()) == (0, 0, 1, 1)
    value = object()
    assert dist.gather(value) == dist.allgather(value) == [value]
    assert dist.gather_local(value) == dist.allgather_local(value) == [value]
    assert dist.broadcast(value) is dist.broadcast_local(value) is value
    assert dist.broadcast_local() is None
    dist.close()
    dist.close()


@pytest.mark.parametrize("missing", list(ONE))
def test_all_six_numbers_or_none(missing):
    with pytest.raises(ValueError, match=rf"missing: \['{missing}'\]"):
        DistributedContext(**{**ONE, missing: None})


@pytest.mark.parametrize("change", [{"rank": 1}, {"local_rank": -1}, {"cross_rank": 2}])
def test_an_index_beyond_its_count_is_refused(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        DistributedContext(**{**ONE, **change})


def test_several_nodes_need_the_chief():
    with pytest.raises(AssertionError, match="chief_ip"):
        DistributedContext(rank=0, size=2, local_rank=0, local_size=1, cross_rank=0, cross_size=2)


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (
            DistributedContext.from_torch_distributed,
            ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE"],
        ),
        (
            DistributedContext.from_deepspeed,
            ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE"],
        ),
    ],
)
def test_numbers_from_a_launcher(monkeypatch, make, names):
    for name, value in zip(names, ONE.values(), strict=True):
        monkeypatch.setenv(name, str(value))
    assert make().get_size() == 1
    monkeypatch.delenv(names[3])
    with pytest.raises(KeyError, match=names[3]):
        make()


def test_numbers_from_horovod():
    hvd = type("Hvd", (), {name: staticmethod(lambda value=value: value) for name, value in ONE.items()})
    assert DistributedContext.from_horovod(hvd).rank == 0


def test_default_ports_come_from_the_environment():
    code = "from determined.core import _distributed as d; print(d.port_1(), d.port_2())"
    for variables, printed in [
        ({}, "12360 12376"),
        ({"INTER_TRAIN_PROCESS_COMM_PORT_1": "9000"}, "9000 9016"),
        ({"INTER_TRAIN_PROCESS_COMM_PORT_1": "9000", "INTER_TRAIN_PROCESS_COMM_PORT_2": "9001"}, "9000 9001"),
    ]:
        ran = subprocess.run(
            [sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True
        )
        assert ran.stdout.strip() == printed
