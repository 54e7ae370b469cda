"""Runs that end otherwise than they should, as a part of the story."""

from det_contracts import commands
from det_contracts.events import searcher, trial, worker
from det_contracts.events.scheduler import PoolSettings
from services.scheduler.commands import GiveUp, ReportSilence
from tests.walks.background import random_search


class FailingRuns:
    """Runs are killed, lost, given up, and end too late."""

    def failures(self):
        """Runs that end otherwise: killed, lost, given up, too late."""
        id = self.submit(random_search(3), pool="story", max_restarts=1)
        first, second, third = self.trials_of(id)
        for trial_id in (first, second, third):
            self.start(trial_id)
        self.cluster.tell(trial.ExitedEarly(first, 1, "INVALID_HP"))
        self.ask(commands.AskToLeave(allocation_id=self.run_of(second), user="ann"))
        self.cluster.pass_time(11.0)
        self.cluster.pass_time(3601.0)
        self.exit(self.run_of(second), 137)
        self.ask(commands.KillTrial(trial_id=third, user="ann"))
        self.change(id, "cancel")
        for trial_id in (first, second, third):
            if self.run_of(trial_id):
                self.exit(self.run_of(trial_id), 137)
        self.change(self.of.live[0], "kill")
        gang = self.submit(pool="story", resources={"slots_per_trial": 4, "resource_pool": "story"})
        (gang_trial,) = self.trials_of(gang)
        self.start(gang_trial)
        self.change(gang, "pause")
        self.change(gang, "cancel")
        self.change(gang, "kill")
        self.ask(ReportSilence("a", "s", 60.0))
        self.cluster.tell(worker.WorkerLeft("b", "s"))
        self.here("a", 4, pool="story", session="t")
        self.here("b", 1, pool="story", session="t")
        done = self.submit(random_search(2), pool="story")
        completed, other = self.trials_of(done)
        self.start(completed)
        self.complete(completed)
        self.change(done, "cancel")
        self.change(done, "kill")
        for left in (completed, other):
            if self.run_of(left):
                self.exit(self.run_of(left), 0)
        self.forced()
        self.fenced()

    def forced(self):
        """A search is over while a trial of it still runs, and a person cannot wait."""
        id = self.submit(pool="story")
        (trial_id,) = self.trials_of(id)
        self.start(trial_id)
        self.cluster.tell(
            trial.ExitedEarly(trial_id, 1, "USER_REQUESTED_STOP"),
        )
        self.cluster.tell(searcher.ExperimentStopping(id, "STOPPING_COMPLETED", "as the search would"))
        self.change(id, "kill")
        self.exit(self.run_of(trial_id), 137)

    def fenced(self):
        """A host ends by itself what is out of touch, and is waited for."""
        settings = PoolSettings(on_lost="fence")
        self.ask(commands.ConfigurePools(pools={"fenced": settings}))
        self.here("f", 1, pool="fenced")
        id = self.submit(pool="fenced")
        (trial_id,) = self.trials_of(id)
        self.start(trial_id)
        run = self.run_of(trial_id)
        self.ask(ReportSilence("f", "s", 60.0))
        self.ask(GiveUp(run, "f", 60.0))
        self.change(id, "kill")
