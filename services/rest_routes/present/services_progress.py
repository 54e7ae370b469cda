"""How far each process of the control plane has read and saved the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from services.kit.lag import SAVING
from services.kit.log_progress import LogProgress, ProcessProgress
from services.rest_routes.present import records


def services_progress(
    answers_by_program: Mapping[str, Sequence[ProcessProgress]],
) -> records.ServicesProgress:
    """Present the answers of the processes by service; a service without one did not answer."""
    return {
        "processes": [
            _process(program, process)
            for program, answers in answers_by_program.items()
            for process in answers
        ],
        "silent": [program for program, answers in answers_by_program.items() if not answers],
    }


def _process(program: str, process: ProcessProgress) -> records.ProcessProgress:
    saving = [_progress(stream) for stream in process.progress if stream.name == SAVING]
    return {
        "program": program,
        "replica": process.replica,
        "leads": process.leads,
        "streams": [
            {"stream": stream.name, **_progress(stream)}
            for stream in process.progress
            if stream.name != SAVING
        ],
        "saved": saving[0] if saving else None,
    }


def _progress(progress: LogProgress) -> records.LogProgress:
    return {
        "position": progress.position,
        "behind": progress.behind,
        "lateSeconds": round(progress.late_s, 1),
    }
