"""What the provisioner tells the scheduler about the workers that pools asked for."""

from __future__ import annotations

import msgspec

from det_contracts.events.scheduler import Phase


class SeenWorker(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine of a pool says of one worker that was asked for."""

    worker_id: str
    phase: Phase
    detail: str = ""
    ends_at: float = 0.0
    """When its host will be taken away, in seconds since the epoch; 0: no such time is known."""


class ReportWorkers(msgspec.Struct, frozen=True, kw_only=True, tag="report_workers"):
    """To the scheduler, from the provisioner: how the engine of a pool is, and what it says of workers."""

    pool: str
    problem: str = ""
    """Why the engine could not be asked; empty: it answered."""
    workers: tuple[SeenWorker, ...] = ()
    user: str = "provisioner"
