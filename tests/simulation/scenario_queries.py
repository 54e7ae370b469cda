"""What happened in a scenario: its facts, as tests ask for them."""

from det_contracts import codec, subjects
from det_contracts.events import scheduler, searcher


class ScenarioQueries:
    """Queries a world and its log without changing them."""

    def __init__(self, gates):
        self.world = None
        self._gates = gates
        self._events = []

    def workers(self):
        return list(self.world.workers)

    def here(self):
        """Workers that the scheduler considers present."""
        workers = self.world.truth["scheduler"].workers.values()
        return {worker.id for worker in workers if worker.presence == "here"}

    def used(self, worker_id):
        """Number of slots of a worker that are in use."""
        return len(self.world.truth["scheduler"].occupancy.taken_on(worker_id))

    def processes(self, worker_id):
        """Processes that a worker runs, except itself."""
        return [p for p in self.world.workers[worker_id].processes.values() if not p.ended.is_set()]

    def trials(self, experiment):
        return [t.id for t in self.world.ledger.trials.values() if t.experiment.id == experiment]

    def events(self, kind, **fields):
        """All events of a kind so far, in log order."""
        for message in self.world.disk.streams[subjects.CONTROL][len(self._events) :]:
            self._events.append(codec.decode(message.body, message.position).event)
        events = [e for e in self._events if isinstance(e, kind)]
        return [e for e in events if all(getattr(e, name) == value for name, value in fields.items())]

    def places(self, trial):
        """The workers of each run of a trial, chief first."""
        assigned = self.events(scheduler.AllocationAssigned, trial_id=trial)
        return [[part.worker_id for part in e.parts] for e in assigned]

    def outcomes(self, trial):
        return [e.outcome for e in self.events(scheduler.AllocationEnded, trial_id=trial)]

    def restarts(self, trial):
        """The number of restarts recorded at its end."""
        (ended,) = self.events(searcher.TrialEnded, trial_id=trial)
        return ended.restarts

    def runs(self, trial):
        return len(self.events(searcher.RunRequested, trial_id=trial))

    def batches(self, trial):
        return self._gates.batches.get(trial, [])
