"""Command lines that launchers build, as text (launchers spec, sections 4-6)."""

import os
import re
import tempfile

import pytest

from determined.launch import _supervised, deepspeed, horovod, torch_distributed
from determined.launch._node import Node
from tests.fixtures.other_users import BOB, needs_root

SCRIPT = ["python3", "train.py", "--", "a b"]


def node(nodes=1, slots=1, rank=0, **config):
    addresses = tuple(f"10.0.0.{at}" for at in range(1, nodes + 1))
    return Node(addresses, (slots,) * nodes, rank, slots, "1.t1.1", config=config)


def text(command):
    return " ".join(command).replace(tempfile.gettempdir(), "/tmp").replace(node().name_of_files, "NAME")


def test_files_of_two_clusters_on_one_host_have_different_names():
    """Both have an allocation 1.t1.1: one would remove the socket of the other, and hear its processes."""
    first, second = (node()._replace(cluster_id=id) for id in ("a", "b"))
    assert _supervised.socket_path(first) != _supervised.socket_path(second)
    assert first.name_of_files != node()._replace(cluster_id="a", allocation_id="1.t2.1").name_of_files
    # The processes of the other nodes are started by a command that the first node made.
    assert first._replace(rank=1).name_of_files == first.name_of_files


@pytest.fixture(autouse=True)
def ports(monkeypatch):
    monkeypatch.setenv("DTRAIN_SSH_PORT", "12351")
    monkeypatch.setenv("C10D_PORT", "29401")


@pytest.mark.parametrize(("slots", "processes"), [(0, 1), (1, 1), (4, 4)])
@pytest.mark.parametrize(("nodes", "rank", "address"), [(1, 0, "localhost"), (4, 2, "10.0.0.1")])
def test_torchrun(slots, processes, nodes, rank, address):
    arguments = torch_distributed.torchrun_args(node(nodes, slots, rank), ["--rdzv_backend=c10d"], SCRIPT)
    assert text(arguments) == (
        f"--nnodes {nodes} --nproc_per_node {processes} --node_rank {rank} --max_restarts 0 "
        f"--master_addr {address} --master_port 29401 --module --rdzv_backend=c10d "
        "determined.launch.wrap_rank RANK -- python3 train.py -- a b"
    )


PID_CLIENT = "python3 -m determined.exec.pid_client /tmp/pid_server-NAME-0 -- "
SUPERVISED = f"{PID_CLIENT}python3 -m determined.launch.wrap_rank "


def test_horovodrun():
    assert text(horovod.horovodrun_command(node(1, 4), ["--min-np", "2"], SCRIPT)) == (
        "python3 -m determined.exec.pid_server --on-fail SIGINT --on-exit WAIT /tmp/pid_server-NAME-0 4 -- "
        "horovodrun -np 4 -p 12351 -H localhost:4 --start-timeout 1200 --gloo-timeout-seconds 240 "
        "--fusion-threshold-mb 64 --cycle-time-ms 1 --cache-capacity 1024 --no-hierarchical-allreduce "
        f"--no-hierarchical-allgather --min-np 2 -- {SUPERVISED}HOROVOD_RANK,OMPI_COMM_WORLD_RANK,PMI_RANK "
        "-- python3 train.py -- a b"
    )


def test_horovodrun_over_nodes_and_tuned():
    config = {
        "debug": True,
        "optimizations": {"auto_tune_tensor_fusion": True},
        "data": {"__det_dtrain_args": ["--x", "y"]},
    }
    command = text(horovod.horovodrun_command(node(4, 2, **config)._replace(interface="eth1"), [], SCRIPT))
    assert "-np 8 -p 12351 -H localhost:2,10.0.0.2:2,10.0.0.3:2,10.0.0.4:2 " in command
    assert " --network-interface eth1 --autotune --autotune-log-file " in command
    assert " --verbose --x y --mpi-args=-v --display-map -- " in command


def test_horovodrun_takes_numbers_of_the_configuration():
    optimizations = {"tensor_fusion_threshold": 100, "tensor_fusion_cycle_time": 20}
    command = text(horovod.horovodrun_command(node(1, 2, optimizations=optimizations), [], SCRIPT))
    assert "--fusion-threshold-mb 100 --cycle-time-ms 20 " in command


@pytest.mark.parametrize(
    ("version", "check"), [((0, 6, 0), ""), ((0, 6, 5), "--no_ssh_check "), ((0, 14, 1), "--no_ssh_check ")]
)
def test_deepspeed(version, check, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert text(deepspeed.deepspeed_command(node(1, 2), [], SCRIPT, version, None)) == (
        "python3 -m determined.exec.pid_server --on-fail SIGTERM --on-exit SIGTERM --grace-period 5 "
        "--signal-children /tmp/pid_server-NAME-0 2 -- deepspeed --num_gpus 2 --master_addr localhost "
        f"--no_python --no_local_rank {check}-- {SUPERVISED}RANK -- python3 train.py -- a b"
    )


def test_deepspeed_counts_gpus_itself_where_there_are_some(monkeypatch):
    # Told a number, it would take the first ones of the machine instead of the trial's.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1,GPU-3")
    assert "--num_gpus" not in text(deepspeed.deepspeed_command(node(1, 2), [], SCRIPT, (0, 19, 8), None))


def test_deepspeed_over_nodes(tmp_path):
    command = text(deepspeed.deepspeed_command(node(4, 2), ["--x"], SCRIPT, (0, 14, 0), tmp_path / "hosts"))
    assert f"deepspeed -H {tmp_path / 'hosts'} --master_addr 10.0.0.1 " in command.replace(
        "/tmp/pytest", f"{tempfile.gettempdir()}/pytest"
    )
    assert "--no_ssh_check --x -- " in command


def test_the_environment_for_other_nodes():
    environment = {
        "BASH_FUNC_which%%": "x",
        "KEEP_BASH_FUNC": "1",
        "OLDPWD": "/",
        "HOSTNAME": "h",
        "MY_CUDA_VISIBLE_DEVICES": "0",
        "SLURM_PROCID": "1",
        "DET_SLOT_IDS": "[0]",
        "DET_AGENT_ID": "a",
        "DET_SESSION_TOKEN": "t",
        "DET_USER_TOKEN": "u",
        "WITH": "a 'b'",
    }
    lines = deepspeed.environment_file(environment, (0, 14, 0)).splitlines()
    assert [re.split("=", line)[0] for line in lines] == [
        "KEEP_BASH_FUNC",
        "DET_SESSION_TOKEN",
        "DET_USER_TOKEN",
        "WITH",
    ]
    assert lines[-1] == """WITH='a '"'"'b'"'"''"""
    assert "WITH=a 'b'\n" in deepspeed.environment_file(environment, (0, 6, 1))


@needs_root
def test_a_hostfile_that_somebody_else_made_sends_nothing_to_their_hosts(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own = deepspeed._hostfile(node(2))
    assert own.read_text() == "10.0.0.1 slots=1\n10.0.0.2 slots=1\n"
    assert deepspeed._hostfile(node(2, rank=1)) == own
    own.write_text("10.6.6.6 slots=1\n")
    os.chown(own, BOB, BOB)
    with pytest.raises(PermissionError, match="was made by another user"):
        deepspeed._hostfile(node(2))
