"""A searcher's rules at work, driven by messages alone."""

import pytest

from det_contracts.commands import CreateExperiment
from det_contracts.events import scheduler, trial
from det_contracts.expconf import complete
from services.kit.testing import Fold
from services.searcher.app import RULES

STORAGE = {"type": "shared_fs", "host_path": "/tmp"}


class Searching:
    """One experiment, and scripts that answer as told."""

    def __init__(self):
        self.fold = Fold(RULES)

    @property
    def state(self):
        return self.fold.state

    def submit(self, search, *, activate=True, space=None, **config):
        whole = complete(
            {
                "entrypoint": "python3 train.py",
                "searcher": {"metric": "loss", **search},
                "hyperparameters": space or {"lr": {"type": "double", "minval": 0, "maxval": 1}},
                "checkpoint_storage": STORAGE,
                **config,
            },
            seed=7,
            name="test",
        )
        command = CreateExperiment(user="ann", config=whole, original_config="", activate=activate)
        id = self.fold.rule(command).value
        self.decide()
        return id

    def decide(self):
        return self.fold.decide()

    def decisions_after(self, *events):
        """Somebody states events; returns what the searcher decides on that."""
        self.fold.apply(*events)
        return self.decide()

    def complete(self, trial_id, metric=0.5, run=None, seq=None):
        stored_trial = self.state.trials[trial_id]
        return self.decisions_after(
            trial.OperationCompleted(
                trial_id=trial_id,
                run=stored_trial.run if run is None else run,
                seq=stored_trial.seq if seq is None else seq,
                length=stored_trial.length,
                metric=metric,
            )
        )

    def acknowledge(self, trial_id):
        return self.decisions_after(trial.PreemptionAcknowledged(trial_id, self.state.trials[trial_id].run))

    def end_run(self, trial_id, outcome="succeeded", code=0, reason="exit code 0", **more):
        stored_trial = self.state.trials[trial_id]
        return self.decisions_after(
            scheduler.AllocationEnded(
                allocation_id=stored_trial.allocation_id,
                kind="TRIAL",
                trial_id=trial_id,
                run=stored_trial.run,
                outcome=outcome,
                exit_code=code,
                reason=reason,
                **more,
            )
        )

    def finish(self, trial_id, metric=0.5):
        """The script answers its operations until there is none, acknowledges and exits."""
        while not self.state.trials[trial_id].complete:
            self.complete(trial_id, metric)
        self.acknowledge(trial_id)
        return self.end_run(trial_id)

    def store_checkpoint(self, trial_id, uuid, steps):
        stored_trial = self.state.trials[trial_id]
        return self.decisions_after(
            trial.CheckpointStored(
                trial_id=trial_id,
                experiment_id=stored_trial.experiment_id,
                run=stored_trial.run,
                task_id=stored_trial.task_id,
                allocation_id=stored_trial.allocation_id or "",
                uuid=uuid,
                resources={},
                metadata={},
                steps_completed=steps,
            )
        )


@pytest.fixture
def searching():
    return Searching()
