"""What the end of a run means for its trial: the first matching rule applies (scheduling spec, 8.3)."""

from __future__ import annotations

from det_contracts.events import searcher
from det_contracts.states import ENDS_IN, STOPPING
from det_contracts.states import State as Life
from services.searcher.domain import Experiment, Trial

EARLY_EXITS = {
    "EXITED_REASON_INVALID_HP": "INVALID_HP",
    "EXITED_REASON_INIT_INVALID_HP": "INIT_INVALID_HP",
    "EXITED_REASON_USER_REQUESTED_STOP": "USER_REQUESTED_STOP",
}


def judge(experiment: Experiment, trial: Trial, state: Life) -> searcher.TrialEnded | searcher.RunEnded:
    """Judge `trial.exit`: the trial ends, or will run again."""
    if trial.exit is None:
        raise ValueError(f"trial {trial.id} has no run to judge")
    outcome, why = trial.exit.outcome, trial.exit.reason
    # A script that said that it is about to exit may do so with any code.
    failed = outcome in ("failed", "not_started") and not trial.acknowledged
    if state in STOPPING:
        final: Life = "ERROR" if failed else ENDS_IN[state]
        return _end_trial(trial, final, why if failed else trial.reason or experiment.reason)
    # Nothing is left to train, so a crash after the last result is final: another run would have nothing to
    # do.
    if trial.complete and trial.closed:
        return _end_trial(trial, "ERROR" if failed else "COMPLETED", why)
    # Not the script's fault, so no restart is used up, however often a host goes away (spec 8.3).
    if outcome == "worker_lost":
        return _run_again(trial, trial.restarts, f"{why}; this does not count as a restart")
    early = EARLY_EXITS.get(trial.early or "", trial.early)
    # Before the exit code is looked at: the SDK exits with 0 after such a report, which would count as the
    # user's stop, and the search would not replace the trial.
    if early in ("INVALID_HP", "INIT_INVALID_HP"):
        return _end_trial(trial, "COMPLETED", "the script reported invalid hyperparameters", early)
    if failed:
        return _failed(experiment, trial, why, trial.exit.permanent)
    if outcome == "succeeded" and not trial.acknowledged:
        reason = (
            "the script exited before completing the requested training length (fine if it stopped early "
            "on purpose, as with set_stop_requested(), or does not use the searcher)"
        )
        return _end_trial(trial, "COMPLETED", reason, "USER_REQUESTED_STOP")
    if _left_for_nothing(trial):
        # Otherwise a script that always does so would run again and again, for as long as the cluster exists.
        unasked = "the script said that it leaves as asked, but nobody had asked, and it had done nothing"
        return _failed(experiment, trial, unasked, permanent=False)
    return _run_again(trial, trial.restarts, why)


def _left_for_nothing(trial: Trial) -> bool:
    """Whether a run left work undone that it had not even begun, without having been asked to leave."""
    assert trial.exit is not None  # noqa: S101 - for the type checker
    by_itself = trial.exit.outcome != "killed" and not trial.exit.asked_to_leave
    return by_itself and trial.acknowledged and not trial.complete and not trial.made_progress


def _failed(
    experiment: Experiment, trial: Trial, why: str, permanent: bool
) -> searcher.TrialEnded | searcher.RunEnded:
    if permanent:
        reason = f"{why}; not tried again, since another attempt would fail in the same way"
        return _end_trial(trial, "ERROR", reason)
    restarts = trial.restarts + 1
    if restarts > experiment.max_restarts:
        reason = f"{why}; {_describe_restart_limit(experiment.max_restarts)}"
        return _end_trial(trial, "ERROR", reason)
    return _run_again(trial, restarts, f"{why}; restart {restarts} of {experiment.max_restarts}")


def _describe_restart_limit(max_restarts: int) -> str:
    if max_restarts == 0:
        return "not tried again, as max_restarts is 0"
    times = "once" if max_restarts == 1 else f"{max_restarts} times"
    return f"not tried again: it was restarted {times} already, as often as max_restarts allows"


def _run_again(trial: Trial, restarts: int, reason: str) -> searcher.RunEnded:
    return searcher.RunEnded(trial_id=trial.id, run=trial.run, restarts=restarts, reason=reason)


def _end_trial(trial: Trial, state: Life, reason: str, early_exit: str | None = None) -> searcher.TrialEnded:
    reported_exit = {"ERROR": "ERRORED", "CANCELED": "USER_CANCELED"}.get(state, early_exit)
    return searcher.TrialEnded(
        trial_id=trial.id,
        state=state,
        restarts=trial.restarts,
        early_exit=reported_exit,
        reason=reason,
    )
