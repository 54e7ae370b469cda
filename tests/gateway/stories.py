"""Events that make a small cluster with something to look at."""

from __future__ import annotations

from typing import Any

from det_contracts import expconf
from det_contracts.events import checkpoints, metrics, scheduler, searcher, trial, worker

SMALL = {
    "entrypoint": "python3 train.py",
    "searcher": {"name": "single", "metric": "loss", "max_length": 100},
    "checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp"},
}


def config(**changes: Any) -> dict[str, Any]:
    done = expconf.complete({**SMALL, **changes}, seed=1, name="Experiment (calmly-able-otter)")
    done["resources"]["resource_pool"] = "default"
    return done


def created(id: int, user: str = "determined", **changes: Any) -> searcher.ExperimentCreated:
    return searcher.ExperimentCreated(
        experiment_id=id,
        user=user,
        config=config(**changes),
        original_config="# as written\nentrypoint: python3 train.py\n",
        reason=f"submitted by {user}",
    )


def task(trial_id: int, experiment_id: int = 1) -> str:
    return f"{experiment_id}.r{trial_id}"


def trial_created(id: int, experiment_id: int = 1, **hparams: Any) -> searcher.TrialCreated:
    return searcher.TrialCreated(
        trial_id=id,
        experiment_id=experiment_id,
        request_id=f"r{id}",
        task_id=task(id, experiment_id),
        seed=7,
        hparams=hparams,
        reason="the search method asked for a trial",
    )


def run_requested(id: int, experiment_id: int = 1, run: int = 1, **changes: Any) -> searcher.RunRequested:
    values: dict[str, Any] = {
        "trial_id": id,
        "experiment_id": experiment_id,
        "task_id": task(id, experiment_id),
        "allocation_id": f"{task(id, experiment_id)}.{run}",
        "run": run,
        "slots": 1,
        "pool": "default",
        "priority": 42,
        "reason": "the search wants it trained to length 100",
    }
    return searcher.RunRequested(**{**values, **changes})


def assigned(id: int, slot: int = 0, experiment_id: int = 1, run: int = 1) -> scheduler.AllocationAssigned:
    return scheduler.AllocationAssigned(
        allocation_id=f"{task(id, experiment_id)}.{run}",
        task_id=task(id, experiment_id),
        kind="TRIAL",
        parts=(scheduler.Part("w-1", (slot,), 0),),
        trial_id=id,
        experiment_id=experiment_id,
        run=run,
        reason="1 slot is free on w-1",
    )


def started(id: int, experiment_id: int = 1, run: int = 1) -> worker.AllocationStarted:
    return worker.AllocationStarted("w-1", f"{task(id, experiment_id)}.{run}")


def running(id: int, slot: int = 0, experiment_id: int = 1, run: int = 1) -> list[Any]:
    return [
        run_requested(id, experiment_id, run),
        assigned(id, slot, experiment_id, run),
        started(id, experiment_id, run),
    ]


def allocation_ended(id: int, experiment_id: int = 1, run: int = 1) -> scheduler.AllocationEnded:
    return scheduler.AllocationEnded(
        allocation_id=f"{task(id, experiment_id)}.{run}",
        kind="TRIAL",
        trial_id=id,
        run=run,
        outcome="succeeded",
        exit_code=0,
        reason="exit code 0",
    )


def trial_ended(id: int, state: Any = "COMPLETED", reason: str = "trained as far as asked") -> Any:
    return searcher.TrialEnded(trial_id=id, state=state, restarts=0, reason=reason)


def validated(id: int, steps: int, metric: float | None, run: int = 1, number: int = 1) -> metrics.Validated:
    return metrics.Validated(
        trial_id=id, number=number, run=run, steps_completed=steps, metric=metric, reported_at=1_700_000_100.0
    )


def stored(id: int, uuid: str, steps: int, experiment_id: int = 1, run: int = 1) -> trial.CheckpointStored:
    return trial.CheckpointStored(
        trial_id=id,
        experiment_id=experiment_id,
        run=run,
        task_id=task(id, experiment_id),
        allocation_id=f"{task(id, experiment_id)}.{run}",
        uuid=uuid,
        resources={"model/": 0, "model/weights": 5_000_000_000},
        metadata={"steps_completed": steps},
        steps_completed=steps,
    )


def deleted(*uuids: str, experiment_id: int = 1) -> checkpoints.DeletionFinished:
    return checkpoints.DeletionFinished(
        task_id=f"{experiment_id}.gc-1", experiment_id=experiment_id, uuids=uuids, deleted=True, reason="done"
    )


def placed(allocation: str, kind: Any, worker_id: str = "w-1") -> scheduler.AllocationAssigned:
    """A task that belongs to no experiment is to run on a worker."""
    return scheduler.AllocationAssigned(
        allocation_id=allocation,
        task_id=allocation.rpartition(".")[0],
        kind=kind,
        parts=(scheduler.Part(worker_id, (), 0),),
        experiment_id=-1,
        run=1,
        reason="",
    )


def worker_here(id: str = "w-1", slots: int = 2, session: str = "s-1") -> worker.WorkerRegistered:
    return worker.WorkerRegistered(
        worker_id=id,
        session=session,
        pool="default",
        address="127.0.0.1",
        version="0.1.0",
        slots=tuple(worker.Slot(n, "cpu", f"u-{n}", "a processor") for n in range(slots)),
        reads_after=0,
        running=(),
    )
