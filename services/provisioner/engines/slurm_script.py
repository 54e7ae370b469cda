"""A worker as a Slurm job: the settings of a pool, and the script for `sbatch`. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import msgspec

from services.kit.slurm_jobs import job_name


class SlurmSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`provider.slurm` of a pool. Empty fields are left to Slurm's defaults."""

    partition: str = ""
    account: str = ""
    qos: str = ""
    time_limit: str = ""
    """In Slurm syntax: `4:00:00`, `2-00:00:00`."""
    gpus_per_node: int = 0
    """Number of GPUs per worker; 0: its slots are CPU slots."""
    cpus_per_task: int = 0
    memory: str = ""
    """In Slurm syntax: `64G`."""
    extra: tuple[str, ...] = ()
    """Additional directives, such as `--constraint=a100`."""
    setup: tuple[str, ...] = ()
    """Shell lines that run before the worker, such as `module load cuda`."""
    python: str = "python3"
    """Interpreter on the nodes that has steadfast installed; scripts run with it, too."""
    home: str = "/tmp/steadfast-$USER"  # noqa: S108 - a folder of the job's user
    """Folder on the nodes that contains a folder for each worker. May contain shell variables."""
    output: str = ""
    """File for the worker's output, with Slurm's `%j`; empty: none."""
    environment: dict[str, str] = {}
    """Additional settings of the workers, besides those of the provisioner's environment."""
    command_timeout_s: float = 30.0
    """Maximum time for Slurm's commands, in seconds."""


def script(
    settings: SlurmSettings,
    *,
    cluster_id: str,
    worker_id: str,
    pool: str,
    slots: int,
    environment: Mapping[str, str],
) -> str:
    """The script that `sbatch` gets for one worker. `environment` holds the settings common to all workers.

    The worker replaces the shell, so it receives Slurm's signals: SIGTERM ends it and everything it runs.
    """
    variables = {
        **environment,
        "STEADFAST_WORKER_ID": worker_id,
        "STEADFAST_WORKER_POOL": pool,
        "STEADFAST_WORKER_SLOTS": str(slots),
        "STEADFAST_WORKER_GPU": str(settings.gpus_per_node > 0).lower(),
    }
    python = shlex.quote(settings.python)
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH {option}" for option in _options(settings, job_name(cluster_id, worker_id))),
        *settings.setup,
        *_exports(variables),
        # In double quotes, so that `$USER` is the one on the node; everything else is quoted literally.
        f'export STEADFAST_WORKER_HOME="{settings.home}/{worker_id}"',
        f'export STEADFAST_WORKER_PYTHON="$(command -v {python})"',
        *_exports(settings.environment),
        f"exec {python} -P -m worker",
    ]
    return "\n".join(lines) + "\n"


def _exports(variables: Mapping[str, str]) -> list[str]:
    return [f"export {name}={shlex.quote(value)}" for name, value in sorted(variables.items())]


def _options(settings: SlurmSettings, name: str) -> list[str]:
    chosen = {
        "partition": settings.partition,
        "account": settings.account,
        "qos": settings.qos,
        "time": settings.time_limit,
        "gpus-per-node": str(settings.gpus_per_node or ""),
        "cpus-per-task": str(settings.cpus_per_task or ""),
        "mem": settings.memory,
    }
    options = [f"--{option}={value}" for option, value in chosen.items() if value]
    # `--requeue`: a job that Slurm preempts or loses with its node waits for another one, under the same
    # worker id.
    usual = [f"--job-name={name}", "--nodes=1", "--ntasks=1", "--requeue", "--open-mode=append"]
    return [*usual, f"--output={settings.output or '/dev/null'}", *options, *settings.extra]
