"""Long histories of the control log, made by the rules themselves, for benchmarks of folding."""

from __future__ import annotations

from collections import deque
from typing import Any

from det_contracts import codec
from det_contracts.commands import CreateExperiment
from det_contracts.events import scheduler, trial, worker
from det_contracts.expconf import complete
from services.kit.testing import Fold
from services.scheduler.app import RULES as SCHEDULER
from services.searcher.app import RULES as SEARCHER
from services.searcher.domain.state import Trial

STORAGE = {"type": "shared_fs", "host_path": "/tmp"}


def config(max_trials: int, max_length: int = 64, concurrent: int = 16) -> dict[str, Any]:
    """An adaptive_asha experiment without files."""
    return complete(
        {
            "entrypoint": "python3 train.py",
            "searcher": {
                "name": "adaptive_asha",
                "metric": "loss",
                "max_length": max_length,
                "max_trials": max_trials,
                "max_concurrent_trials": concurrent,
            },
            "hyperparameters": {"lr": {"type": "log", "base": 10, "minval": -4, "maxval": 0}},
            "checkpoint_storage": STORAGE,
        },
        seed=1,
        name="benchmark",
    )


class Cluster:
    """Searcher, scheduler and scripts in one thread, at full speed; keeps the resulting log."""

    def __init__(self, slots: int = 16, worker_id: str = "w", pool: str = "default") -> None:
        """`worker_id` is the one worker, which has that many slots in a pool."""
        self._worker = worker_id
        self.searcher = Fold(SEARCHER)
        self.scheduler = Fold(SCHEDULER)
        self.log: list[Any] = []
        self._assigned: deque[scheduler.AllocationAssigned] = deque()
        offered = tuple(worker.Slot(n, "cpu", f"cpu-{n}", "CPU") for n in range(slots))
        self._say(
            worker.WorkerRegistered(
                worker_id=worker_id,
                session="s",
                pool=pool,
                address="",
                version="",
                slots=offered,
                reads_after=0,
                running=(),
            )
        )

    def _say(self, *events: Any) -> None:
        self.log += events
        self.searcher.apply(*events)
        self.scheduler.apply(*events)
        self._decide()

    def _decide(self) -> None:
        moved = True
        while moved:
            mine = self.searcher.decide()
            self.scheduler.apply(*mine)
            theirs = self.scheduler.decide()
            self.searcher.apply(*theirs)
            self.log += [*mine, *theirs]
            self._assigned.extend(e for e in theirs if isinstance(e, scheduler.AllocationAssigned))
            moved = bool(mine or theirs)

    def run(self, max_trials: int) -> None:
        """One experiment from its submission to its end; each trial reports a checkpoint per operation."""
        self.submit(config(max_trials))
        self.finish()

    def submit(self, experiment_config: dict[str, Any]) -> None:
        """Somebody submits an experiment with a complete configuration; its first trials get slots."""
        result = self.searcher.rule(
            CreateExperiment(user="bench", config=experiment_config, original_config="")
        )
        self.log += result.events
        self.scheduler.apply(*result.events)
        self._decide()

    def finish(self) -> None:
        """Run all trials to their ends."""
        while self._assigned:
            self._run_one(self._assigned.popleft())

    def fail(self) -> None:
        """Every trial that has slots stores a checkpoint, then its script fails."""
        for assigned in list(self._assigned):
            id = assigned.trial_id or 0
            stored_trial = self.searcher.state.trials[id]
            self._say(worker.AllocationStarted(self._worker, assigned.allocation_id))
            self._say(trial.Progressed(id, stored_trial.run, 1.0), self._stored(stored_trial, assigned, 1))
            self._say(
                worker.AllocationExited(
                    worker_id=self._worker, allocation_id=assigned.allocation_id, exit_code=1
                )
            )

    def _run_one(self, assigned: scheduler.AllocationAssigned) -> None:
        id = assigned.trial_id or 0
        self._say(worker.AllocationStarted(self._worker, assigned.allocation_id))
        while not self.searcher.state.trials[id].complete:
            stored_trial = self.searcher.state.trials[id]
            stored = self._stored(stored_trial, assigned, stored_trial.length)
            done = trial.OperationCompleted(
                trial_id=id,
                run=stored_trial.run,
                seq=stored_trial.seq,
                length=stored_trial.length,
                metric=stored_trial.hparams["lr"],
            )
            self._say(trial.Progressed(id, stored_trial.run, stored_trial.length / 2), stored, done)
        run = self.searcher.state.trials[id].run
        self._say(trial.PreemptionAcknowledged(id, run))
        self._say(
            worker.AllocationExited(worker_id=self._worker, allocation_id=assigned.allocation_id, exit_code=0)
        )

    @staticmethod
    def _stored(
        stored_trial: Trial, assigned: scheduler.AllocationAssigned, steps: int
    ) -> trial.CheckpointStored:
        return trial.CheckpointStored(
            trial_id=stored_trial.id,
            experiment_id=stored_trial.experiment_id,
            run=stored_trial.run,
            task_id=stored_trial.task_id,
            allocation_id=assigned.allocation_id,
            uuid=f"{assigned.allocation_id}-{stored_trial.seq}".replace(".", "-"),
            resources={"model.pt": 1000, "metadata.json": 30},
            metadata={"steps_completed": steps},
            steps_completed=steps,
        )


def bodies(events: list[Any]) -> list[bytes]:
    """Events as they are stored in the log."""
    return [codec.encode(e, id=f"e{i}", actor="bench", at=float(i)) for i, e in enumerate(events)]
