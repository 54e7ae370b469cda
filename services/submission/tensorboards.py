"""What a TensorBoard is told: which trials it shows, where their event files are, and its idle timeout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from det_contracts.expconf import mask_secrets
from det_contracts.problems import Refused, invalid, not_found
from services.catalogue.rights import workspace_of
from services.people import users
from services.rest_requests.bodies import TaskBody
from services.submission import secrets
from services.submission.config_defaults import workspace_storage
from services.submission.idle import idle_timeout_s

if TYPE_CHECKING:
    from services.rest_requests.api_call import UserCall

MAX_TRIALS = 500
"""Maximum number of trials that one TensorBoard shows."""


def order(call: UserCall, body: TaskBody, config: dict[str, Any]) -> dict[str, Any]:
    """Return the order of a TensorBoard. Raises `Refused` if it shows nothing, too much, or what it may not.

    It contains the keys of the storages, and all that a task has can be read by the user who starts it.
    """
    idle_s = idle_timeout_s(config) or call.backend.settings.tensorboard_timeout
    state = call.catalogue.state
    sources = []
    for id in dict.fromkeys(body.experiment_ids):
        if id not in state.experiments:
            raise not_found("experiment", id)
        trials = list(state.trials_of.ids(id))
        sources.append(_source(call, id, trials, whole=True))
    for trial_id in dict.fromkeys(body.trial_ids):
        if trial_id not in state.trials:
            raise not_found("trial", trial_id)
        sources.append(_source(call, state.trials[trial_id].experiment_id, [trial_id], whole=False))
    if not sources:
        raise invalid("experimentIds, trialIds: name at least one experiment or trial")
    if sum(len(source["trial_ids"]) for source in sources) > MAX_TRIALS:
        raise invalid(f"a TensorBoard shows at most {MAX_TRIALS} trials: select fewer with trialIds")
    args = body.config.get("tensorboard_args") or []
    return {"sources": sources, "args": args, "idle_s": idle_s, "keyed": call.backend.task_key is not None}


def _source(call: UserCall, experiment_id: int, trial_ids: list[int], *, whole: bool) -> dict[str, Any]:
    storage = _storage(call, experiment_id)
    return {"experiment_id": experiment_id, "trial_ids": trial_ids, "storage": storage, "whole": whole}


def _storage(call: UserCall, experiment_id: int) -> dict[str, Any]:
    """The storage of an experiment, with its keys if they are the user's or shared with them."""
    state, backend = call.catalogue.state, call.backend
    experiment, config = state.experiments[experiment_id], state.submissions[experiment_id].config
    clear = secrets.unseal_config(config, experiment.user, backend.sealer)
    storage: dict[str, Any] = clear["checkpoint_storage"]
    if users.id_by_name(state, experiment.user) == users.id_by_name(state, call.user.username):
        return storage
    whole = {"checkpoint_storage": storage}
    shared = (_workspace_storage(call, workspace_of(state, experiment)), backend.storage)
    known_secrets = [secrets.cluster_secrets(whole, shared_storage) for shared_storage in shared]
    try:
        passed: dict[str, Any] = secrets.unmask(mask_secrets(whole), *known_secrets)["checkpoint_storage"]
    except Refused:
        raise invalid(
            f"experiment {experiment_id} uses its own checkpoint storage, with keys of {experiment.user} "
            f"that are not passed on: ask {experiment.user} to start the TensorBoard, which you can then open"
        ) from None
    return passed


def _workspace_storage(call: UserCall, workspace_id: int) -> dict[str, Any] | None:
    """A workspace's storage, if the user may start what has its keys; else None."""
    try:
        call.check_permission("create_task", "workspace", workspace_id)
    except Refused:
        return None
    return workspace_storage(call.backend, workspace_id)
