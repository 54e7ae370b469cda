"""What jobs of Slurm are called that are workers, so that they are found again and told from all others."""

from __future__ import annotations


def job_name(cluster_id: str, worker_id: str) -> str:
    """Of the job of a worker; with an empty id what the names of all of a cluster's jobs begin with."""
    return f"steadfast.{cluster_id}.{worker_id}"


def worker_of(cluster_id: str, name: str) -> str:
    """The worker of a job; empty for a job of anything else."""
    prefix = job_name(cluster_id, "")
    return name.removeprefix(prefix) if name.startswith(prefix) else ""
