"""Answers scripts: whether storage quotas let them store another checkpoint."""

from __future__ import annotations

from det_contracts.news import AskStorage
from det_contracts.problems import not_found
from services.checkpoints.domain import State
from services.kit.quotas import limits
from services.kit.quotas.sizes import in_bytes
from services.kit.runner import Runner
from services.kit.script_questions import Say


def storage_refusal(state: State, trial_id: int, ask: AskStorage) -> str | None:
    """Why the trial may not store a checkpoint; None if it may.

    Raises `Refused` if the trial is not known (yet).
    """
    trial = state.trials.get(trial_id)
    if trial is None:
        raise not_found("trial", trial_id)
    account = limits.account_of(state, trial.experiment_id)
    # A quota that is exactly used up accepts nothing more, however small.
    found = limits.beyond(state, state.owed, account, "storage_bytes", max(1, ask.size_bytes))
    if found is None:
        return None
    holder, used, limit = found
    more = f", and this checkpoint would add {in_bytes(ask.size_bytes)}" if ask.size_bytes else ""
    return (
        f"{limits.called(state, holder)} stores {in_bytes(used)} of the {in_bytes(limit)} that its quota "
        f"allows{more}: delete checkpoints that are no longer needed ('det checkpoint delete', "
        "'det experiment set gc-policy'), or ask an administrator for more. 'det quota list' shows the quotas"
    )


def say_storage(runner: Runner[State]) -> Say:
    """Return the handler for scripts that are about to store a checkpoint."""

    async def say(trial_id: int, ask: AskStorage) -> str | None:
        return storage_refusal(runner.state, trial_id, ask)

    return say
