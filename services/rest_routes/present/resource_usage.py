"""The resources that runs use on their hosts, as last sampled by the workers (our addition)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from det_contracts import ids
from services.catalogue.domain import Allocation, State

GROUP = "profile.process"
PROCESS = {"cpu_cores": "cpuCores", "memory_gb": "memoryGb", "gpu_memory_gb": "gpuMemoryGb"}
GPU = {"gpu_percent": "percent", "gpu_memory_gb": "memoryGb"}


def run_usage(run: Allocation, state: State, summary: Mapping[str, Any]) -> dict[str, Any]:
    """The usage of a run that holds slots. `summary` contains the statistics reported for its trial."""
    slots = {part.worker_id: part.slots for part in run.members}
    processes: dict[str, dict[str, float]] = {}
    gpus: dict[tuple[str, int], dict[str, float]] = {}
    for series, statistics in summary.get(GROUP, {}).items():
        kind, _, where = series.partition(".")
        worker, _, text = where.rpartition(".")
        # Scripts choose the names of series.
        number = ids.parse_number(text)
        if kind in GPU and worker in slots and number is not None and number < len(slots[worker]):
            gpus.setdefault((worker, slots[worker][number]), {})[GPU[kind]] = statistics["last"]
        elif kind in PROCESS:
            processes.setdefault(where, {})[PROCESS[kind]] = statistics["last"]
    experiment = state.experiments.get(run.experiment_id)
    return {
        "allocationId": run.id,
        "taskId": run.task_id,
        "experimentId": run.experiment_id,
        "trialId": run.trial_id,
        "name": experiment.name if experiment else "",
        "gpus": [{"agentId": worker, "slotId": str(slot)} | usage for (worker, slot), usage in gpus.items()],
        "processes": [
            {"name": name, "agentId": _agent_of(name, list(slots))} | usage
            for name, usage in sorted(processes.items())
        ],
    }


def _agent_of(name: str, workers: list[str]) -> str | None:
    """The worker of a process.

    Without a rank, the name is the worker's; a rank's worker is known only if there is one.
    """
    return name if name in workers else workers[0] if len(workers) == 1 else None
