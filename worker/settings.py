"""The worker's settings from its environment; see `services.kit.settings`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from services.kit.allowed_paths import ReachSettings
from services.kit.settings import BadSettings


@dataclass(frozen=True)
class WorkerSettings(ReachSettings):
    """Settings of one worker process."""

    worker_id: str = ""
    """Must be unique among workers. Empty: the id last used with this folder, else the host's name."""
    worker_home: Path = Path("/var/lib/steadfast-worker")
    """Where runs keep their files. Used by this worker only, and must survive restarts of the worker."""
    worker_slots: int = 1
    """Number of CPU slots to offer if `STEADFAST_WORKER_GPU` is false."""
    worker_gpu: bool = True
    """Whether to offer GPUs. A worker that finds none offers one CPU slot."""
    worker_pool: str = "default"
    """The resource pool that this worker belongs to."""
    worker_broker_wait_s: float = 600.0
    """How long a worker that starts tries to reach the broker, in seconds, before it exits; 0: for ever.

    Later it waits for as long as the broker is away.
    """
    worker_sample_s: float = 10.0
    """Seconds between samples of a trial's CPU, memory and GPU use for its metrics: 1 or more; 0: never."""
    worker_python: str = sys.executable
    """Interpreter that runs scripts. Its environment must hold the SDK, but need not hold the platform."""
    worker_warm: bool = True
    """Whether scripts may start in a fork of an interpreter that has their packages loaded."""
    worker_launcher: str = "process"
    """How tasks are started: `process`, or in containers with `docker`, `podman` or `apptainer`."""
    worker_image: str = ""
    """Image for tasks that name none. Empty: steadfast/trial:cpu, or :cuda with GPUs."""
    worker_mount_roots: str = ""
    """Directories, separated by `:`, from which tasks in containers may mount with `bind_mounts`."""
    worker_capabilities: str = ""
    """Linux capabilities, separated by commas, that tasks may request with `add_capabilities`."""
    worker_container_network: str = "host"
    """The network of containers. With any other than `host`, their ports are published on the host."""
    worker_container_options: str = ""
    """Additional options for the engine, in shell syntax, for example `--init --ulimit memlock=-1`."""
    worker_container_paths: bool = False
    """Whether runs see their files where Determined's containers have them; its own SDK looks only there."""
    worker_run_as: str = ""
    """Account for tasks whose owner is not linked with one: `user`, `user:group` or `uid:gid`."""
    worker_tasks: Path = Path("/var/lib/steadfast-tasks")
    """Where tasks that run as other users have their folders. All users must be able to traverse it."""
    worker_processes: int = -1
    """Processes and threads that one task may have, and all tasks of one account together.

    The former needs control groups, the latter tasks that run as another user than the worker. -1: a quarter
    of what the host can have; 0: no limit.
    """
    worker_slot_memory_mib: int = 0
    """Memory that a task may use for each slot that it holds, in MiB; without slots, as for one. 0: no limit.

    Needs control groups: a worker that cannot make any does not start. Not for Docker and Podman, which have
    options.
    """
    worker_disk_mib: int = 0
    """Disk space that the folder of a task may take, in MiB: its working directory, and its own `TMPDIR`.

    A task that takes more is ended, and counts as failed. 0: no limit.
    """
    worker_cgroup: str = ""
    """Control group below which each task has one of its own, named as in /proc/self/cgroup.

    Empty: the worker's own group, where it may. `none`: tasks have no groups.
    """
    worker_output_mib: int = 4096
    """Output of one run that is kept, in MiB; a line in its log says where it was cut. 0: all of it."""
    worker_output_mib_s: float = 4.0
    """Output of one run that is taken in the long run, in MiB a second: who prints more waits. 0: all of it.
    """
    worker_address: str = ""
    """Address under which other workers reach scripts here.

    Empty: this host's address on the route to the broker.
    """
    worker_signing: Path | None = None
    """JSON file with `account` and `seed`: the key with which a worker creates credentials for its own id.

    Used if `nats_credentials` names none. Anyone who has this key can impersonate any worker.
    """
    script_credentials_s: float = 86400.0
    """Lifetime of a script's credentials in seconds; renewed at half of it. 0: they do not expire."""
    trial_signing: Path | None = None
    """JSON file with `account` and `seed`: the key that signs credentials for scripts. None: no accounts."""
    sealing_key: Path | None = None
    """File with the key that decrypts the secrets in configurations; the gateway has the same key."""
    script_nats_url: str = ""
    """Address of the broker for scripts, if it differs from the worker's."""
    blobs: str = "/var/lib/steadfast/blobs"
    """Where the code of experiments is stored: a directory or s3://bucket/prefix.

    See `services.kit.blobs`.
    """
    s3_endpoint_url: str | None = None
    s3_access_key: str = ""
    s3_secret_key: str = ""
    master_url: str = "http://127.0.0.1:8080"
    """Address of the gateway as tasks reach it."""
    master_cert_file: Path | None = None
    """PEM file with the CA of a gateway at `https://`, for tasks. None: `tls_ca`, else the system's CAs."""
    master_cert_name: str | None = None
    """The name in the gateway's certificate, if it is not that of the address."""
    cluster_id: str = "steadfast"
    """The cluster id that tasks are given."""

    def __post_init__(self) -> None:
        """Raise `BadSettings` for an interval between samples that cannot be."""
        # Samples are numbered by the second, and a trial reports each number once.
        if self.worker_sample_s and self.worker_sample_s < 1:
            raise BadSettings(
                f"STEADFAST_WORKER_SAMPLE_S={self.worker_sample_s:g}: give 1 or more seconds, or 0 for never"
            )
