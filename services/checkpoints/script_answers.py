"""Answers scripts: whether storage quotas let them store another checkpoint."""

from __future__ import annotations

from det_contracts.problems import not_found
from det_contracts.script_queries import AskStorage
from services.checkpoints.domain import State
from services.kit.quotas import limits
from services.kit.quotas.sizes import format_bytes
from services.kit.runner import Runner
from services.kit.script_requests import ScriptHandler


def storage_refusal(state: State, trial_id: int, request: AskStorage) -> str | None:
    """Why the trial may not store a checkpoint; None if it may.

    Raises `Refused` if the trial is not known (yet).
    """
    trial = state.trials.get(trial_id)
    if trial is None:
        raise not_found("trial", trial_id)
    account = limits.account_of(state, trial.experiment_id)
    # A quota that is exactly used up accepts nothing more, however small.
    exceeded = limits.find_exceeded(
        state, state.storage_usage, account, "storage_bytes", max(1, request.size_bytes)
    )
    if exceeded is None:
        return None
    holder, used, limit = exceeded
    more = f", and this checkpoint would add {format_bytes(request.size_bytes)}" if request.size_bytes else ""
    return (
        f"{limits.describe_holder(state, holder)} stores {format_bytes(used)} of the {format_bytes(limit)} "
        f"that its quota allows{more}: delete checkpoints that are no longer needed ('det checkpoint "
        "delete', 'det experiment set gc-policy'), or ask an administrator for more. 'det quota list' "
        "shows the quotas"
    )


def storage_handler(runner: Runner[State]) -> ScriptHandler:
    """Return the handler for scripts that are about to store a checkpoint."""

    async def answer(trial_id: int, ask: AskStorage) -> str | None:
        return storage_refusal(runner.state, trial_id, ask)

    return answer
