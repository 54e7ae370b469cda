"""How far each process of the control plane has read and saved the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from services.kit.lag import SAVING
from services.kit.log_progress import LogProgress, ProcessProgress
from services.rest_routes.present import records


def services_progress(found: Mapping[str, Sequence[ProcessProgress]]) -> records.ServicesProgress:
    """Present the answers of the processes by service; a service without one did not answer."""
    return {
        "processes": [_process(program, one) for program, answers in found.items() for one in answers],
        "silent": [program for program, answers in found.items() if not answers],
    }


def _process(program: str, process: ProcessProgress) -> records.ProcessProgress:
    saving = [_progress(one) for one in process.progress if one.name == SAVING]
    return {
        "program": program,
        "replica": process.replica,
        "leads": process.leads,
        "streams": [{"stream": one.name, **_progress(one)} for one in process.progress if one.name != SAVING],
        "saved": saving[0] if saving else None,
    }


def _progress(one: LogProgress) -> records.LogProgress:
    return {"position": one.position, "behind": one.behind, "lateSeconds": round(one.late_s, 1)}
