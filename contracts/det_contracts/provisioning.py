"""Reports from the provisioner to the scheduler about workers requested by pools."""

from __future__ import annotations

import msgspec

from det_contracts.events.scheduler import Phase
from det_contracts.ownership import command


class SeenWorker(msgspec.Struct, frozen=True, kw_only=True):
    """An engine's report about one requested worker."""

    worker_id: str
    phase: Phase
    detail: str = ""
    ends_at: float = 0.0
    """When its host will be taken away, in seconds since the epoch; 0 if unknown."""


@command("scheduler")
class ReportWorkers(msgspec.Struct, frozen=True, kw_only=True, tag="report_workers"):
    """To the scheduler, from the provisioner: the state of a pool's engine, and its report about workers."""

    pool: str
    problem: str = ""
    """Why the engine could not be queried; empty if it answered."""
    workers: tuple[SeenWorker, ...] = ()
    user: str = "provisioner"
