"""Names of the Slurm jobs that run workers, by which they are recognised."""

from __future__ import annotations


def job_name(cluster_id: str, worker_id: str) -> str:
    """Return the name of a worker's job. With an empty id, the common prefix of a cluster's job names."""
    return f"steadfast.{cluster_id}.{worker_id}"


def worker_of(cluster_id: str, name: str) -> str:
    """Return the worker that a job runs; empty if the job is not one of ours."""
    prefix = job_name(cluster_id, "")
    return name.removeprefix(prefix) if name.startswith(prefix) else ""
