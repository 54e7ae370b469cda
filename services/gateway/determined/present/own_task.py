"""Tasks that people started by themselves (REST spec, section 7)."""

from __future__ import annotations

from typing import Any

from det_contracts import ids
from services.catalogue.domain import OwnTask, State
from services.catalogue.written import instant
from services.gateway.determined.present.task import SHOWN
from services.people import users


def own_task(one: OwnTask, state: State) -> dict[str, Any]:
    """A command or a TensorBoard."""
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
        found["serviceAddress"] = f"/proxy/{one.id}/" if one.address and not over else ""
    return found
