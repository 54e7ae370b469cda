"""What a worker is told by its environment; see `services.kit.settings`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from services.kit.allowed_paths import ReachSettings


@dataclass(frozen=True)
class WorkerSettings(ReachSettings):
    """Settings of one worker process."""

    worker_id: str = ""
    """No two workers may have the same. Empty: the one that its folder has had, else this host's name."""
    worker_home: Path = Path("/var/lib/steadfast-worker")
    """Where runs keep their files, for this worker alone; survives a restart of the worker."""
    worker_slots: int = 1
    """CPU slots to offer where there is no accelerator, or none is wanted."""
    worker_gpu: bool = True
    """Whether to look for accelerators."""
    worker_pool: str = "default"
    """The resource pool that this worker belongs to."""
    worker_sample_s: float = 10.0
    """How often CPU, memory and GPUs that trials use are sampled into their metrics; 0: not at all."""
    worker_python: str = sys.executable
    """Interpreter that scripts run with; its environment holds the SDK, not necessarily the platform."""
    worker_warm: bool = True
    """Whether scripts may start in a fork of an interpreter that has their packages loaded."""
    worker_launcher: str = "process"
    """What starts tasks: `process`, or the containers of `docker`, `podman` or `apptainer`."""
    worker_image: str = ""
    """Image of tasks in containers that name none; empty: steadfast/trial:cpu, with GPUs :cuda."""
    worker_mount_roots: str = ""
    """Directories, with `:`, of which tasks in containers may mount what they ask for with `bind_mounts`."""
    worker_capabilities: str = ""
    """Linux capabilities, with commas, that tasks in containers may ask for with `add_capabilities`."""
    worker_container_network: str = "host"
    """The network of containers; with another one than the host's their ports are published on the host."""
    worker_container_options: str = ""
    """Further options for the engine, as a shell reads them, for example `--init --ulimit memlock=-1`."""
    worker_container_paths: bool = False
    """Whether runs see their files where Determined's containers have them; its own SDK looks only there."""
    worker_run_as: str = ""
    """Who tasks run as, where their owner is linked with no account: `user`, `user:group` or `uid:gid`."""
    worker_tasks: Path = Path("/var/lib/steadfast-tasks")
    """Where tasks that run as other users have their folders; everybody must be able to pass through it."""
    worker_address: str = ""
    """Under which other workers reach scripts here; empty: this host's address on the way to the broker."""
    worker_signing: Path | None = None
    """JSON with `account` and `seed`: the key by which a worker makes its own credentials, under its id,
    where `nats_credentials` names none. Whoever has it can be any worker."""
    script_credentials_s: float = 86400.0
    """How long a script's credentials last; they are renewed at half of that. 0: for ever."""
    trial_signing: Path | None = None
    """JSON with `account` and `seed`: the key that mints credentials for scripts; none without accounts."""
    sealing_key: Path | None = None
    """File with the key that the secrets of configurations are opened with; the gateway has the same."""
    script_nats_url: str = ""
    """Address of the broker for scripts, where it differs from the worker's."""
    blobs: str = "/var/lib/steadfast/blobs"
    """Where the code of experiments lies: a directory or s3://bucket/prefix; see `services.kit.blobs`."""
    s3_endpoint_url: str | None = None
    s3_access_key: str = ""
    s3_secret_key: str = ""
    master_url: str = "http://127.0.0.1:8080"
    """Address of the gateway as tasks reach it."""
    master_cert_file: Path | None = None
    """PEM file of who vouches for a gateway at `https://`, for tasks; none: `tls_ca`, else the system's."""
    master_cert_name: str | None = None
    """The name in its certificate, where it is not that of the address."""
    cluster_id: str = "steadfast"
    """What tasks are told the cluster's id is."""
