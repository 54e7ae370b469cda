"""What may be asked of the scheduler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from det_contracts.events import scheduler
from services.kit.rules import Call, Ruling
from services.scheduler.domain import State


class ReportSilence(msgspec.Struct, frozen=True, tag="report_silence"):
    """From the heartbeat watch beside the scheduler: a worker gave no sign of life for too long."""

    worker_id: str
    session: str
    silent_s: float
    user: str = "scheduler"


def report_silence(state: State, command: ReportSilence, call: Call) -> Ruling:
    """Declare the worker lost, unless it is gone already or came back as another session."""
    worker = state.workers.get(command.worker_id)
    if worker is None or worker.presence != "here" or worker.session != command.session:
        return Ruling()
    reason = f"no sign of life from worker {worker.id} for {command.silent_s:.0f} s"
    return Ruling([scheduler.WorkerLost(worker.id, reason)])


COMMANDS: dict[Any, Callable[[State, Any, Call], Ruling]] = {ReportSilence: report_silence}
