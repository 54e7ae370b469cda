"""The files that a worker writes for an allocation."""

import json
import pathlib
from typing import Any

CLUSTER: dict[str, Any] = {
    "master_url": "http://127.0.0.1:8080",
    "cluster_id": "cluster-1",
    "agent_id": "agent-1",
    "slot_ids": [0],
    "task_id": "3.c0ffee",
    "allocation_id": "3.c0ffee.1",
    "session_token": "secret",
    "task_type": "TRIAL",
    "master_cert_name": None,
    "master_cert_file": None,
    "latest_checkpoint": None,
}
TRIAL: dict[str, Any] = {
    "trial_id": 7,
    "experiment_id": 3,
    "trial_seed": 42,
    "hparams": {"increment_by": 2},
    "config": {
        "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 20}},
        "data": {"path": "/data"},
    },
    "steps_completed": 0,
    "trial_run_id": 1,
    "debug": False,
    "inter_node_network_interface": None,
}
RENDEZVOUS = {"container_addrs": ["10.0.0.1"], "container_rank": 0, "container_slot_counts": [1]}


def write_cluster_files(
    directory: pathlib.Path,
    *,
    storage: pathlib.Path | None = None,
    rendezvous: dict[str, Any] = RENDEZVOUS,
    **cluster: Any,
) -> pathlib.Path:
    """Describe an allocation in `directory`; `cluster` overrides fields of cluster.json."""
    directory.mkdir(parents=True, exist_ok=True)
    config = dict(TRIAL["config"])
    if storage:
        config["checkpoint_storage"] = {"type": "shared_fs", "host_path": str(storage), "save_trial_best": 1}
    files = {
        "cluster": {**CLUSTER, **cluster},
        "trial": {**TRIAL, "config": config},
        "rendezvous": rendezvous,
        "resources": {"gpu_uuids": ["GPU-1"]},
    }
    for name, content in files.items():
        (directory / f"{name}.json").write_text(json.dumps(content))
    return directory
