"""Commands, TensorBoards, notebooks and shells (REST spec, section 7)."""

from __future__ import annotations

from typing import Any

from det_contracts import ids
from det_contracts.events.scheduler import OwnKind
from services.catalogue.api_values import format_time
from services.catalogue.domain import OwnTask, State
from services.people import users
from services.rest_routes.present.task import SHOWN_STATES

NOUNS: dict[OwnKind, str] = {
    "COMMAND": "command",
    "TENSORBOARD": "tensorboard",
    "NOTEBOOK": "notebook",
    "SHELL": "shell",
}
"""The noun for each kind in the REST API."""


def own_task(record: OwnTask, state: State) -> dict[str, Any]:
    """A command, TensorBoard, notebook or shell; a shell's private key is left out."""
    run = state.allocations[ids.allocation_id(record.id, 1)]
    user = users.by_any_name(state, record.user)
    has_ended = run.ended_at is not None
    shown_task: dict[str, Any] = {
        "id": record.id,
        "description": record.name,
        "state": f"STATE_{SHOWN_STATES.get(run.state, run.state)}",
        "startTime": format_time(record.submitted_at),
        "displayName": user.display_name if user else "",
        "userId": user.id if user else 0,
        "username": user.username if user else record.user,
        "resourcePool": run.pool,
        "exitStatus": run.reason if has_ended else "",
        "jobId": ids.job_id(ids.owner_of_task(record.number)),
        "workspaceId": record.workspace_id,
        "container": None,
    }
    if record.kind == "TENSORBOARD":
        shown = record.config["tensorboard"]["sources"]
        shown_task["experimentIds"] = [source["experiment_id"] for source in shown if source["whole"]]
        shown_task["trialIds"] = [id for source in shown if not source["whole"] for id in source["trial_ids"]]
    if record.kind == "SHELL":
        keys = record.config["shell"]
        shown_task |= {"publicKey": keys["public_key"], "hostKey": keys["host_key"], "addresses": []}
        # The account that clients log in as. It is known once the shell responds.
        account = {"user": record.account or None, "group": None, "uid": None, "gid": None}
        shown_task["agentUserGroup"] = {"agentUid": None, "agentGid": None, **account}
    if record.kind in ("TENSORBOARD", "NOTEBOOK"):
        shown_task["serviceAddress"] = f"/proxy/{record.id}/" if record.address and not has_ended else ""
    return shown_task


def notebook_preview(name: str, pool: str, user: str, workspace_id: int, now: float) -> dict[str, Any]:
    """A notebook that was not started, for the answer to a preview."""
    return {
        "id": "",
        "description": name,
        "state": "STATE_UNSPECIFIED",
        "startTime": format_time(now),
        "username": user,
        "resourcePool": pool,
        "jobId": "",
        "workspaceId": workspace_id,
    }
