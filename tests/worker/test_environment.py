"""Variables and info files of a task."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from det_contracts.events.worker import Slot
from det_contracts.ids import container_id
from worker.environment import (
    Cluster,
    Placement,
    Task,
    Trial,
    info_files,
    interpreter_dirs,
    variables,
    write_info,
)
from worker.ports import Ports

CLUSTER = Cluster(master_url="http://10.0.0.1:8080", cluster_id="c-1", agent_id="w1")
CPU = (Slot(0, "cpu", "cpu-0", "EPYC"), Slot(1, "cpu", "cpu-1", "EPYC"))
CUDA = (Slot(1, "cuda", "GPU-bb", "H200"), Slot(3, "cuda", "GPU-dd", "H200"))


def task(*, config=None, latest=None, interface=None, hparams=None):
    trial = Trial(
        trial_id=12,
        experiment_id=7,
        run=3,
        seed=99,
        hparams=hparams or {"lr": 0.1, "net": {"n": 4}},
        config=config or {"name": "x"},
        steps_completed=50,
        network_interface=interface,
    )
    return Task(
        task_id="7.abc",
        allocation_id="7.abc.3",
        resources_id="7.abc.3-w1",
        task_type="TRIAL",
        session_token="st",
        user="ann",
        user_token="ut",
        latest_checkpoint=latest,
        trial=trial,
    )


def place(slots=CPU):
    return Placement(
        workdir=Path("/r/workdir"),
        info_dir=Path("/r/info"),
        slots=slots,
        visible_devices=",".join(str(slot.id) for slot in slots if slot.kind == "cuda"),
        ports=Ports(12351, 12361, 12366, 29401),
        python_path=(Path("/env/bin"),),
    )


def env(*, inherited=None, slots=CPU, cluster=CLUSTER, **more):
    return variables(task(**more), cluster, place(slots), inherited or {})


def with_variables(value):
    return {"environment": {"environment_variables": value}}


def test_the_table():
    environment = env(latest="uuid-1", interface="eth0")
    expected = {
        "DET_MASTER": "http://10.0.0.1:8080",
        "DET_MASTER_HOST": "10.0.0.1",
        "DET_MASTER_ADDR": "10.0.0.1",
        "DET_MASTER_PORT": "8080",
        "DET_MASTER_ID": "c-1",
        "DET_CLUSTER_ID": "c-1",
        "DET_AGENT_ID": "w1",
        "DET_SLOT_IDS": "[0,1]",
        "DET_TASK_ID": "7.abc",
        "DET_ALLOCATION_ID": "7.abc.3",
        "DET_TASK_TYPE": "TRIAL",
        "DET_SESSION_TOKEN": "st",
        "DET_USER": "ann",
        "DET_USER_TOKEN": "ut",
        "DET_RESOURCES_ID": "7.abc.3-w1",
        "DET_RESOURCES_TYPE": "process",
        "DET_CONTAINER_ID": container_id("7.abc.3", "w1"),
        "DET_TRIAL_ID": "12",
        "DET_EXPERIMENT_ID": "7",
        "DET_TRIAL_RUN_ID": "3",
        "DET_TRIAL_SEED": "99",
        "DET_STEPS_COMPLETED": "50",
        "DET_LATEST_CHECKPOINT": "uuid-1",
        "DET_USE_TLS": "false",
        "DET_INTER_NODE_NETWORK_INTERFACE": "eth0",
        "DET_WORKDIR": "/r/workdir",
        "DET_INFO_DIR": "/r/info",
        "DTRAIN_SSH_PORT": "12351",
        "INTER_TRAIN_PROCESS_COMM_PORT_1": "12361",
        "INTER_TRAIN_PROCESS_COMM_PORT_2": "12366",
        "C10D_PORT": "29401",
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONUNBUFFERED": "1",
        "DET_PYTHON_EXECUTABLE": "python3",
    }
    assert {name: environment.get(name) for name in expected} == expected
    assert json.loads(environment["DET_HPARAMS"]) == {"lr": 0.1, "net": {"n": 4}}
    assert json.loads(environment["DET_EXPERIMENT_CONFIG"]) == {"name": "x"}
    assert all(isinstance(value, str) for value in environment.values())


def test_absent_when_there_is_none():
    optional = {"DET_LATEST_CHECKPOINT", "DET_INTER_NODE_NETWORK_INTERFACE", "DET_MASTER_CERT_FILE"}
    assert not optional & env().keys()


def test_tls():
    named = {"cert_file": "noverify", "cert_name": "m"}
    environment = env(cluster=Cluster(master_url="https://m", cluster_id="c", agent_id="w", **named))
    assert (environment["DET_USE_TLS"], environment["DET_MASTER_PORT"]) == ("true", "443")
    assert (environment["DET_MASTER_CERT_FILE"], environment["DET_MASTER_CERT_NAME"]) == ("noverify", "m")


def test_exactly_its_gpus_are_visible():
    assert env(slots=CUDA)["CUDA_VISIBLE_DEVICES"] == "1,3"
    assert env(slots=CUDA)["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert env(slots=CUDA)["DET_SLOT_IDS"] == "[1,3]"


def test_a_task_without_slots_sees_no_device():
    assert env(slots=(), inherited={"CUDA_VISIBLE_DEVICES": "0"})["CUDA_VISIBLE_DEVICES"] == ""


def test_secrets_and_paths_of_the_platform_stay_behind():
    inherited = {
        "STEADFAST_NATS_CREDENTIALS": "/secret",
        "PYTHONPATH": "/platform",
        "PYTHONHOME": "/p",
        "PYTHONSAFEPATH": "1",
        "VIRTUAL_ENV": "/v",
        "DET_MASTER_X": "old",
        "LANG": "C.UTF-8",
        "HOME": "/root",
        "AWS_PROFILE": "team",
    }
    environment = env(inherited=inherited)
    assert (
        not {
            "STEADFAST_NATS_CREDENTIALS",
            "PYTHONPATH",
            "PYTHONHOME",
            "PYTHONSAFEPATH",
            "VIRTUAL_ENV",
            "DET_MASTER_X",
        }
        & environment.keys()
    )
    assert (environment["LANG"], environment["HOME"], environment["AWS_PROFILE"]) == (
        "C.UTF-8",
        "/root",
        "team",
    )


def test_bytes_that_are_no_text_are_not_passed_on():
    assert "ODD" not in env(inherited={"ODD": "\udcff"})


def test_a_home_is_made_up():
    assert env()["HOME"] == "/r/workdir"


def test_users_variables_win_except_over_identity():
    environment = env(
        config=with_variables(
            [
                "A=1",
                "A=2=3",
                "PYTHONUNBUFFERED=0",
                "DET_MASTER=http://proxy",
                "DET_TRIAL_ID=1",
                "DET_SESSION_TOKEN=x",
                "DET_USER_TOKEN=x",
                "DET_INFO_DIR=/x",
                "PYTHONPATH=lib",
                "EMPTY=",
                "DET_PYTHON_EXECUTABLE=python3.12",
            ]
        )
    )
    assert (environment["A"], environment["EMPTY"], environment["PYTHONPATH"]) == ("2=3", "", "lib")
    assert (environment["PYTHONUNBUFFERED"], environment["DET_MASTER"]) == ("0", "http://proxy")
    assert environment["DET_PYTHON_EXECUTABLE"] == "python3.12"
    assert (environment["DET_TRIAL_ID"], environment["DET_SESSION_TOKEN"], environment["DET_USER_TOKEN"]) == (
        "12",
        "st",
        "ut",
    )
    assert environment["DET_INFO_DIR"] == "/r/info"


def test_a_name_alone_takes_the_workers_value_or_unsets():
    environment = env(
        config=with_variables(["LANG", "PYTHONUNBUFFERED", "STEADFAST_KEY"]),
        inherited={"LANG": "de_DE.UTF-8", "STEADFAST_KEY": "secret"},
    )
    assert environment["LANG"] == "de_DE.UTF-8"
    assert not {"PYTHONUNBUFFERED", "STEADFAST_KEY"} & environment.keys()


@pytest.mark.parametrize(("slots", "value"), [(CPU, "on-cpu"), (CUDA, "on-cuda"), ((), "on-cpu")])
def test_users_variables_by_kind_of_slot(slots, value):
    config = with_variables({"cpu": ["WHERE=on-cpu"], "cuda": ["WHERE=on-cuda"]})
    assert env(config=config, slots=slots)["WHERE"] == value


def test_the_interpreter_comes_first_also_before_the_users_path():
    assert env(inherited={"PATH": "/usr/bin:/bin"})["PATH"] == "/env/bin:/usr/bin:/bin"
    assert env(config=with_variables(["PATH=/mine"]))["PATH"] == "/env/bin:/mine"
    assert env()["PATH"].startswith("/env/bin:/")


def test_a_variable_too_long_for_a_process_is_left_to_the_file():
    big = {"name": "x" * 200_000}
    assert "DET_EXPERIMENT_CONFIG" not in env(config=big)
    assert info_files(task(config=big), CLUSTER, place())["trial.json"]["config"] == big


def test_files_of_a_trial():
    files = info_files(task(latest="uuid-1", config={"debug": True}), CLUSTER, place(CUDA))
    assert files["cluster.json"] == {
        "master_url": "http://10.0.0.1:8080",
        "cluster_id": "c-1",
        "agent_id": "w1",
        "slot_ids": [1, 3],
        "task_id": "7.abc",
        "allocation_id": "7.abc.3",
        "session_token": "st",
        "task_type": "TRIAL",
        "master_cert_name": None,
        "master_cert_file": None,
        "latest_checkpoint": "uuid-1",
    }
    assert files["trial.json"] == {
        "trial_id": 12,
        "experiment_id": 7,
        "trial_seed": 99,
        "hparams": {"lr": 0.1, "net": {"n": 4}},
        "config": {"debug": True},
        "steps_completed": 50,
        "trial_run_id": 3,
        "debug": True,
        "inter_node_network_interface": None,
    }
    assert files["rendezvous.json"] == {
        "container_addrs": ["127.0.0.1"],
        "container_rank": 0,
        "container_slot_counts": [2],
    }
    assert files["resources.json"] == {"gpu_uuids": ["GPU-bb", "GPU-dd"]}


def test_a_task_that_is_no_trial():
    other = Task(
        task_id="7.gc-1",
        allocation_id="7.gc-1.1",
        resources_id="r",
        task_type="CHECKPOINT_GC",
        session_token="st",
        user="ann",
        user_token="ut",
    )
    files = info_files(other, CLUSTER, place(()))
    assert "trial.json" not in files
    assert files["rendezvous.json"]["container_slot_counts"] == [0]
    assert "DET_TRIAL_ID" not in variables(other, CLUSTER, place(()), {})


def test_written_whole_and_private(tmp_path):
    files = info_files(task(), CLUSTER, place())
    for _ in range(2):
        write_info(tmp_path / "info", files, {"bus.json": {"urls": ["nats://x"]}})
    assert {path.name for path in (tmp_path / "info").iterdir()} == {*files, "bus.json"}
    assert json.loads((tmp_path / "info" / "cluster.json").read_text()) == files["cluster.json"]
    assert (tmp_path / "info" / "bus.json").stat().st_mode & 0o777 == 0o600
    assert list(files)[-1] == "cluster.json"


def interpreter(folder, *names):
    folder.mkdir()
    real = folder / "python3.11"
    real.write_text("#!/bin/sh\n")
    for name in names:
        (folder / name).symlink_to("python3.11")
    return real


def test_both_names_there(tmp_path):
    real = interpreter(tmp_path / "bin", "python", "python3")
    assert interpreter_dirs(real, tmp_path / "w") == (tmp_path / "bin",)
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize("names", [(), ("python3",), ("python",)])
def test_a_missing_name_is_made(tmp_path, names):
    real = interpreter(tmp_path / "bin", *names)
    assert interpreter_dirs(real, tmp_path / "w") == (tmp_path / "w", tmp_path / "bin")
    assert {path.name for path in (tmp_path / "w").iterdir()} == {"python", "python3"}


def test_another_interpreter_by_that_name_does_not_count(tmp_path):
    real = interpreter(tmp_path / "bin", "python")
    (tmp_path / "bin" / "python3").write_text("#!/bin/sh\n")
    assert interpreter_dirs(real, tmp_path / "w")[0] == tmp_path / "w"


@pytest.mark.live
def test_a_wrapper_is_the_interpreter_with_its_packages(tmp_path):
    folder = tmp_path / "it's a bin"
    folder.mkdir()
    (folder / "python3.99").symlink_to(sys.executable)
    first, _ = interpreter_dirs(folder / "python3.99", tmp_path / "w")
    assert subprocess.check_output([first / "python", "-c", "print('a b')"], text=True) == "a b\n"
