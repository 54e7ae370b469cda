"""A node of an allocation, on which launchers start real ranks without a cluster."""

import json
import os

import pytest

from tests.fixtures.ports import reserved_port


class Node:
    """One node of an allocation, its description in files."""

    def __init__(self, folder, addresses, slots, rank, port, python):
        folder.mkdir()
        self.port = port
        self._python = python
        self._folder = folder
        files = {
            "cluster": {
                "master_url": "http://127.0.0.1:1",
                "cluster_id": "c",
                "agent_id": f"a{rank}",
                "slot_ids": list(range(slots[rank])),
                "task_id": "1.t1",
                "allocation_id": f"1.t{port}.1",
                "session_token": "",
                "task_type": "TRIAL",
            },
            "trial": {
                "trial_id": 1, "experiment_id": 1, "trial_seed": 1, "hparams": {}, "config": {},
                "steps_completed": 0, "trial_run_id": 1, "debug": False,
            },
            "rendezvous": {
                "container_addrs": addresses, "container_rank": rank, "container_slot_counts": slots
            },
            "resources": {"gpu_uuids": []},
        }  # fmt: skip
        for name, content in files.items():
            (folder / f"{name}.json").write_text(json.dumps(content))

    def start(self, *arguments, launcher="torch_distributed"):
        env = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
        env |= {
            "DET_INFO_DIR": str(self._folder),
            "C10D_PORT": str(self.port),
            "MINE": "a b",
            "DET_RESOURCES_ID": "r",
        }
        words = ["-m", f"determined.launch.{launcher}", *arguments]
        return self._python(words, env=env, stdout=-1, stderr=-1, text=True)

    def run(self, *arguments):
        process = self.start(*arguments)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err


@pytest.fixture
def node(tmp_path, fork_server):
    """A function that makes a node; `slots` has the number of slots of each node of the allocation."""

    def make(slots=(2,), rank=0, port=None, python=fork_server.start):
        addresses = ["127.0.0.1"] * len(slots)
        return Node(tmp_path / f"n{rank}", addresses, list(slots), rank, port or reserved_port(), python)

    return make
