"""Invariants of commands: executed once, not late, and with the effect that was answered."""

from det_contracts.commands import ChangeExperiment, CreateExperiment, ReviseExperiment, StopTask, SubmitTask
from tests.simulation.facts import NEVER
from tests.simulation.violation import Violation

LATE_S = 6.0
"""Longer than a message is under way, or waits for its answer."""


def check_cause(ledger, recorded, now, through):
    """A command takes effect once, not long after its caller was told that nobody answered, and on a state
    (`through` its position) that its owner had read as far as the log went before."""
    call = recorded.cause
    if not call.startswith("call-"):
        return
    batch = recorded.id.partition("-")[0]
    if ledger.causes.setdefault(call, batch) != batch:
        raise Violation(
            "a call is obeyed once", f"{call} led to {ledger.causes[call]} before", recorded.event
        )
    if through < (before := ledger.ends_before.get(call, 0)):
        text = f"{call} was decided on what {through} says, and sent when the log ended at {before}"
        raise Violation("decisions follow what was there", text, recorded.event)
    if now > ledger.given_up.get(call, now) + LATE_S:
        text = f"{call} was given up {now - ledger.given_up[call]:.0f} s before"
        raise Violation("a call is not obeyed late", text, recorded.event)


OF_EXPERIMENTS = (ChangeExperiment, ReviseExperiment)

STATES_BEFORE = {
    "pause": ("ACTIVE",),
    "cancel": ("ACTIVE", "PAUSED"),
    "kill": ("ACTIVE", "PAUSED"),
    "activate": ("PAUSED",),
    "delete": ("COMPLETED", "ERROR", "CANCELED"),
}
"""States that an experiment cannot be in once the command was confirmed."""


def is_refused_wrongly(ledger, command, refusal, before):
    """Text if a command was refused as unknown although its object was already visible; else None."""
    experiment = ledger.experiments.get(getattr(command, "experiment_id", None))
    if refusal.problem.code != "not_found" or experiment is None or not isinstance(command, OF_EXPERIMENTS):
        return None
    there = experiment.created <= before and experiment.state.now not in ("DELETING", "DELETED")
    return f"{refusal}, but it was made at {experiment.created}" if there else None


def _still_runs(ledger, task_id):
    task = next(task for task in ledger.tasks.values() if task.task_id == task_id)
    over = ledger.allocations[f"{task_id}.1"].outcome
    return None if over or task.stopped < NEVER else f"task {task_id} was stopped, and nobody said so"


def is_not_as_answered(ledger, command, position, value):
    """Text if the answer differs from what the log says at that position; else None."""
    if isinstance(command, CreateExperiment):
        return None if value in ledger.experiments else f"experiment {value} does not exist"
    if isinstance(command, SubmitTask):
        return None if f"{value}.1" in ledger.allocations else f"task {value} does not exist"
    if isinstance(command, StopTask):
        return _still_runs(ledger, command.task_id)
    if isinstance(command, ChangeExperiment):
        state = ledger.experiments[command.experiment_id].state.at(position)
        if state in STATES_BEFORE.get(command.action, ()):
            return f"{command.action} of experiment {command.experiment_id} was confirmed, it is {state}"
    return None
