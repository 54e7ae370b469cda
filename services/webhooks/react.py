"""The service's rules: owed deliveries become due, and hopeless ones are given up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from det_contracts.events.webhooks import DeliveryDue, DeliveryGivenUp, ExperimentTold
from services.kit.authz.people import FIRST, workspace_of
from services.kit.quotas.limits import FIRST_WORKSPACE
from services.webhooks.domain.state import MAX_WAITING, Delivery, Owed, State

FIRST_PROJECT = "Uncategorized"


def react(state: State, key: tuple[str, Any]) -> Sequence[Any]:
    """Return the events that a record calls for; empty if there is nothing to do."""
    kind, id = key
    if kind == "owed" and id in state.owed:
        return _decide_owed(state, state.owed[id])
    if kind == "deliveries" and id in state.deliveries:
        return _give_up_failed(state.deliveries[id])
    return ()


def _decide_owed(state: State, owed: Owed) -> Sequence[Any]:
    reason = f"experiment {owed.experiment_id} is {owed.state}, which webhook {owed.webhook_id} waits for"
    due = DeliveryDue(
        delivery_id=owed.delivery_id,
        webhook_id=owed.webhook_id,
        occasion="EXPERIMENT_STATE_CHANGE",
        experiment=_experiment_facts(state, owed),
        happened_at=owed.happened_at,
        reason=reason,
    )
    if state.waiting.count(owed.webhook_id) < MAX_WAITING:
        return [due]
    why = f"{MAX_WAITING:,} other deliveries of webhook {owed.webhook_id} wait to be made"
    # Recorded as due all the same: its webhook's page shows what was not sent, and why.
    return [due, DeliveryGivenUp(owed.delivery_id, owed.webhook_id, why)]


def _experiment_facts(state: State, owed: Owed) -> ExperimentTold | None:
    experiment = state.experiments.get(owed.experiment_id)
    if experiment is None:
        return None
    home = state.homes.get(experiment.id)
    project = home.project_id if home is not None else FIRST
    workspace = workspace_of(state, project)
    return ExperimentTold(
        id=experiment.id,
        state=owed.state,
        name=experiment.name,
        duration_s=max(0.0, owed.happened_at - experiment.created_at),
        resource_pool=experiment.resource_pool,
        slots_per_trial=experiment.slots_per_trial,
        workspace=_name(state.workspaces_called.get(workspace), FIRST_WORKSPACE, workspace),
        project=_name(state.projects.get(project), FIRST_PROJECT, project),
    )


def _name(record: Any, first: str, id: int) -> str:
    if record is not None:
        return str(record.name)
    return first if id == FIRST else ""


def _give_up_failed(delivery: Delivery) -> Sequence[Any]:
    if delivery.state != "WAITING" or delivery.next_at is not None:
        return ()
    last = delivery.tries[-1]
    count = "the only attempt" if last.attempt == 1 else f"attempt {last.attempt}, the last one,"
    reason = f"{count} failed: {last.problem}"
    return [DeliveryGivenUp(delivery.due.delivery_id, delivery.due.webhook_id, reason)]
