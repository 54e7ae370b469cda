"""A record of what happened, independent of the services' own state; their decisions are judged by it."""

from det_contracts.events import Decision
from det_contracts.states import OVER, STOPPING
from det_contracts.subjects import INTAKE
from services.searcher.methods import (
    Close,
    MethodError,
    Shutdown,
    ValidateAfter,
    step,
)
from tests.simulation.facts import History, Reports
from tests.simulation.recorders import RECORDERS


class Ledger:
    """Everything that happened, by id."""

    def __init__(self):
        self.position = 0
        self.experiments = {}
        self.trials = {}
        self.allocations = {}
        self.workers = {}
        self.deletions = {}
        self.tasks = {}
        """Users' own tasks, by job."""
        self.slots = {}
        """(worker, slot) to the allocation that holds it."""
        self.hosts = {}
        """Worker to its `Worker` over time."""
        self.sessions = set()
        """(worker, session) of every registration, refused ones too."""
        self.switches = {}
        """(worker, slot or None) to whether it is open for new work, over time."""
        self.sources = {}
        """Checkpoint to the experiments that start from it."""
        self.stored = {}
        """Checkpoint to its experiment."""
        self.users = {}
        """Name to (id, position at which it became known)."""
        self.groups = {}
        """Group to its members over time."""
        self.quotas = {}
        """Holder to its limit on slots, over time."""
        self.reports = Reports()
        self.decided = {}
        self.causes = {}
        """Call to the decision that it led to."""
        self.ends_before = {}
        """Call to the position at which the log ended when it was sent."""
        self.given_up = {}
        """Call to the time at which its caller was told that nobody answers."""
        self.counts = {}
        self.facts = {}
        """Position in WITNESS to position in CONTROL, for each admitted fact."""
        self.requested_workers = {}
        """Workers that pools asked for and that may not be gone completely, to their pools."""
        self.given_back = {}
        """Worker to the position at which its pool returned it."""
        self.admitted = self.admitted_before = 0
        """Position in WITNESS up to which all is admitted or refused, now and before the last decision."""

    def host(self, worker, position):
        """Record a worker's current state."""
        self.workers[worker.id] = worker
        self.hosts.setdefault(worker.id, History(None)).add(position, worker)

    def holders_at(self, allocation, position):
        """Holders whose quotas limited an allocation; all experiments here are in the first workspace."""
        id, since = self.users.get(self.job_of(allocation).user, (None, None))
        holders = ["workspace-1"]
        if id is not None and since <= position:
            groups = [
                f"group-{group}" for group, members in self.groups.items() if id in members.at(position)
            ]
            holders += [f"user-{id}", *groups]
        return holders

    def quota_at(self, holder, position):
        """The slots that a holder was allowed; None without a limit."""
        history = self.quotas.get(holder)
        return history.at(position) if history else None

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def workers_at(self, worker_id, position):
        """What was known of a worker; None before it registered."""
        history = self.hosts.get(worker_id)
        return history.at(position) if history else None

    def pool_at(self, allocation, position):
        """The pool in which an allocation wants its slots."""
        return allocation.pool or self.job_of(allocation).pool.at(position)

    def job_of(self, allocation):
        """The experiment or own task of an allocation."""
        jobs = self.tasks if allocation.experiment_id < 0 else self.experiments
        return jobs[allocation.experiment_id]

    def switch_at(self, worker_id, slot, position):
        """Whether a worker (slot None) or one of its slots was open for new work."""
        history = self.switches.get((worker_id, slot))
        return history.at(position) if history else True

    def take(self, recorded):
        """Record one event of CONTROL."""
        self.position = recorded.position
        if recorded.witness:
            self.facts[recorded.witness] = recorded.position
        if isinstance(recorded.event, Decision) and recorded.event.owner == INTAKE:
            self.admitted_before, self.admitted = self.admitted, recorded.event.to
        recorder = RECORDERS.get(type(recorded.event))
        if recorder is not None:
            recorder(self, recorded.event, recorded.position)

    def trial_of_fact(self, event):
        """The trial whose current run states something; None for an old run or no trial."""
        trial = self.trials.get(event.trial_id)
        return trial if trial and trial.run == event.run and not trial.over else None

    def advance(self, experiment, happened, position):
        """One step of an experiment's search."""
        try:
            experiment.search, operations = step(experiment.search, happened)
        except MethodError:
            experiment.fault, operations = True, ()
        self.ask(experiment, operations, position)

    def ask(self, experiment, operations, position):
        if experiment.state.now in STOPPING or experiment.state.now in OVER:
            return
        for operation in operations:
            match operation:
                case ValidateAfter(request_id=id, length=length):
                    history = experiment.operations.setdefault(id, History((0, 0)))
                    history.add(position, (history.now[0] + 1, length))
                case Close(request_id=id):
                    experiment.closed.setdefault(id, position)
                case Shutdown(cancel=cancel, failure=failure):
                    how = "ERROR" if failure else "CANCELED" if cancel else "COMPLETED"
                    experiment.shutdown = f"STOPPING_{how}"
