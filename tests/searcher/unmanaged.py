"""An experiment whose scripts run outside of the cluster, as the searcher sees it."""

from det_contracts.commands import (
    ChangeExperiment,
    CreateExperiment,
    CreateTrial,
    EndTrial,
    OpenRun,
)
from det_contracts.events import trial
from det_contracts.expconf import complete
from services.searcher import heartbeats
from tests.searcher.listening import Listener

POLL_S = heartbeats.MAX_GAP_S / 2


class UnmanagedExperiment:
    """One unmanaged experiment, scripts that say what they do, and the watch that listens to them."""

    def __init__(self, searching, **search):
        self.searching, self.fold = searching, searching.fold
        self.listener = Listener(lambda: self.fold.now)
        config = complete(
            {
                "searcher": {"name": "single", "metric": "loss", "max_length": 100, **search},
                "checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp"},
            },
            seed=7,
            name="outside",
            managed=False,
        )
        self.rule(
            CreateExperiment(
                user="ann", config=config, original_config="", unmanaged=True, request_key=":mine"
            )
        )

    @property
    def state(self):
        return self.fold.state

    def rule(self, command):
        value = self.fold.rule(command).value
        self.fold.decide()
        return value

    def trial(self, name="t", **hparams):
        self.rule(CreateTrial(experiment_id=1, request_id=name, hparams=hparams, user="ann"))
        return self.state.tasks[f"1.{name}"].id

    def start(self, id=1, *, resume=True):
        return self.rule(OpenRun(trial_id=id, resume=resume, user="ann"))

    def end(self, id=1, state="COMPLETED"):
        return self.rule(EndTrial(trial_id=id, state=state, user="ann"))

    def change(self, action):
        return self.rule(ChangeExperiment(experiment_id=1, action=action, user="bob"))

    def beat(self, id=1, run=1):
        """A script is heard; returns what follows."""
        self.listener.hear(id, run)
        return self.look()

    def old_beat(self, id=1, run=1):
        """The same as earlier versions had it in the log."""
        return self.searching.decisions_after(trial.Heartbeat(id, run))

    def look(self):
        """The watch looks, as it does all the time; returns what follows."""
        decided = []
        for report in self.listener.reports(self.state):
            decided += self.fold.rule(report).events
        return [*decided, *self.fold.decide()]

    def pass_time(self, seconds):
        """Let the clock move, and the watch look; returns what follows."""
        until, decided = self.fold.now + seconds, []
        while self.fold.now < until:
            decided += self.fold.pass_time(min(POLL_S, until - self.fold.now))
            decided += self.look()
        return decided

    def states(self):
        return self.state.experiments[1].state, *(t.state for t in self.state.trials.values())
