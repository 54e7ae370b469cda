"""Commands, TensorBoards, notebooks and shells (REST spec, section 7)."""

from __future__ import annotations

from typing import Any

from det_contracts import ids
from det_contracts.events.scheduler import OwnKind
from services.catalogue.api_values import instant
from services.catalogue.domain import OwnTask, State
from services.gateway.determined.present.task import SHOWN
from services.people import users

NOUNS: dict[OwnKind, str] = {
    "COMMAND": "command",
    "TENSORBOARD": "tensorboard",
    "NOTEBOOK": "notebook",
    "SHELL": "shell",
}
"""The noun for each kind in the REST API."""


def own_task(one: OwnTask, state: State) -> dict[str, Any]:
    """A command, TensorBoard, notebook or shell; a shell's private key is left out."""
    run = state.allocations[ids.allocation_id(one.id, 1)]
    user = users.named(state, one.user)
    over = run.ended_at is not None
    found: dict[str, Any] = {
        "id": one.id,
        "description": one.name,
        "state": f"STATE_{SHOWN.get(run.state, run.state)}",
        "startTime": instant(one.submitted_at),
        "displayName": user.display_name if user else "",
        "userId": user.id if user else 0,
        "username": user.username if user else one.user,
        "resourcePool": run.pool,
        "exitStatus": run.reason if over else "",
        "jobId": ids.job_id(ids.owner_of_task(one.number)),
        "workspaceId": one.workspace_id,
        "container": None,
    }
    if one.kind == "TENSORBOARD":
        shown = one.config["tensorboard"]["sources"]
        found["experimentIds"] = [source["experiment_id"] for source in shown if source["whole"]]
        found["trialIds"] = [id for source in shown if not source["whole"] for id in source["trial_ids"]]
    if one.kind == "SHELL":
        keys = one.config["shell"]
        found |= {"publicKey": keys["public_key"], "hostKey": keys["host_key"], "addresses": []}
        # The account that clients log in as. It is known once the shell responds.
        account = {"user": one.account or None, "group": None, "uid": None, "gid": None}
        found["agentUserGroup"] = {"agentUid": None, "agentGid": None, **account}
    if one.kind in ("TENSORBOARD", "NOTEBOOK"):
        found["serviceAddress"] = f"/proxy/{one.id}/" if one.address and not over else ""
    return found


def wished_notebook(name: str, pool: str, user: str, workspace_id: int, now: float) -> dict[str, Any]:
    """A notebook that was not started, for the answer to a preview."""
    return {
        "id": "",
        "description": name,
        "state": "STATE_UNSPECIFIED",
        "startTime": instant(now),
        "username": user,
        "resourcePool": pool,
        "jobId": "",
        "workspaceId": workspace_id,
    }
