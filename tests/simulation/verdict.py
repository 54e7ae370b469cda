"""The meaning of a run's end, implemented independently: the table of the scheduling spec, 8.3."""

from det_contracts.states import ENDS_IN, STOPPING
from tests.simulation.facts import NEVER

REASONS = {
    "EXITED_REASON_INVALID_HP": "INVALID_HP",
    "EXITED_REASON_INIT_INVALID_HP": "INIT_INVALID_HP",
    "EXITED_REASON_USER_REQUESTED_STOP": "USER_REQUESTED_STOP",
}
SEVERITY = ("STOPPING_COMPLETED", "STOPPING_CANCELED", "STOPPING_KILLED", "STOPPING_ERROR")


def expected(trial, knowledge):
    """(final state of the trial or None, counted restarts, early exit), as far as it was seen."""
    run, experiment = trial.run, trial.experiment
    meant = knowledge.has(trial.acked.get(run, NEVER))
    bad = trial.exit.outcome in ("failed", "not_started") and not meant
    lives = {experiment.state.known_to(knowledge), trial.state.known_to(knowledge)} & STOPPING
    if lives:
        return "ERROR" if bad else ENDS_IN[max(lives, key=SEVERITY.index)], trial.restarts, None
    if trial.seen_complete(knowledge) and trial.seen_closed(knowledge):
        return "ERROR" if bad else "COMPLETED", trial.restarts, None
    if trial.exit.outcome == "worker_lost":
        return None, trial.restarts, None
    position, stated_reason = trial.early.get(run, (NEVER, ""))
    reason = REASONS.get(stated_reason, stated_reason) if knowledge.has(position) else ""
    if reason.endswith("INVALID_HP"):
        return "COMPLETED", trial.restarts, reason
    if bad and trial.restarts == experiment.max_restarts:
        return "ERROR", trial.restarts, None
    if bad:
        return None, trial.restarts + 1, None
    if trial.exit.outcome == "succeeded" and not meant:
        return "COMPLETED", trial.restarts, "USER_REQUESTED_STOP"
    return None, trial.restarts, None
