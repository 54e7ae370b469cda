"""How each event changes the webhooks service's state."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import gateway, searcher, webhooks
from services.kit.folds import Fold
from services.kit.idempotency import fold_result
from services.webhooks.domain.state import (
    REMEMBERED,
    Delivery,
    Experiment,
    Key,
    Named,
    Owed,
    State,
    Totals,
    Try,
)

replace = msgspec.structs.replace
# Never to be changed: receivers know deliveries by ids that are derived from it.
NAMESPACE = uuid.UUID("5c0e2c58-6e7e-5d0b-9a57-0d1f4f6f1c1e")
TOTALS = "all"


def delivery_id(cause: str, webhook_id: int) -> str:
    """The id of a webhook's delivery for an event or a command. It is always the same."""
    return str(uuid.uuid5(NAMESPACE, f"{cause}/{webhook_id}"))


def _experiment_created(state: State, recorded: Recorded) -> Iterable[Key]:
    event: searcher.ExperimentCreated = recorded.event
    resources = event.config.get("resources") or {}
    state.experiments[event.experiment_id] = Experiment(
        id=event.experiment_id,
        name=str(event.config.get("name") or ""),
        resource_pool=resources.get("resource_pool") or "default",
        slots_per_trial=resources.get("slots_per_trial", 1),
        created_at=recorded.at,
    )
    yield "experiments", event.experiment_id


def _experiment_revised(state: State, recorded: Recorded) -> Iterable[Key]:
    event: searcher.ExperimentRevised = recorded.event
    experiment = state.experiments.get(event.experiment_id)
    if experiment is not None and "name" in event.changes:
        state.experiments[experiment.id] = replace(experiment, name=event.changes["name"])
        yield "experiments", experiment.id


def _experiment_deleted(state: State, recorded: Recorded) -> Iterable[Key]:
    event: searcher.ExperimentDeleted = recorded.event
    if event.state == "DELETED" and state.experiments.pop(event.experiment_id, None) is not None:
        yield "experiments", event.experiment_id


def _experiment_activated(state: State, recorded: Recorded) -> Iterable[Key]:
    return _add_owed(state, recorded, "ACTIVE")


def _experiment_paused(state: State, recorded: Recorded) -> Iterable[Key]:
    return _add_owed(state, recorded, "PAUSED")


def _experiment_ended(state: State, recorded: Recorded) -> Iterable[Key]:
    return _add_owed(state, recorded, recorded.event.state)


def _add_owed(state: State, recorded: Recorded, entered: webhooks.TriggerState) -> Iterable[Key]:
    experiment_id = recorded.event.experiment_id
    if experiment_id not in state.experiments:
        return
    for webhook_id in state.listeners.ids(entered):
        owed = Owed(
            delivery_id=delivery_id(recorded.id, webhook_id),
            webhook_id=webhook_id,
            experiment_id=experiment_id,
            state=entered,
            happened_at=recorded.at,
        )
        yield from state.put_owed(owed)


def _project_set(state: State, recorded: Recorded) -> Iterable[Key]:
    event: gateway.ProjectSet = recorded.event
    state.projects[event.project_id] = Named(event.name)
    yield "projects", event.project_id


def _project_removed(state: State, recorded: Recorded) -> Iterable[Key]:
    if state.projects.pop(recorded.event.project_id, None) is not None:
        yield "projects", recorded.event.project_id


def _webhook_set(state: State, recorded: Recorded) -> Iterable[Key]:
    event: webhooks.WebhookSet = recorded.event
    yield from state.put_webhook(event)
    totals = state.totals.get(TOTALS, Totals())
    triggers = max((trigger.id for trigger in event.triggers), default=0)
    state.totals[TOTALS] = Totals(max(totals.webhooks, event.webhook_id), max(totals.triggers, triggers))
    yield "totals", TOTALS


def _webhook_removed(state: State, recorded: Recorded) -> Iterable[Key]:
    return state.drop_webhook(recorded.event.webhook_id)


def _delivery_due(state: State, recorded: Recorded) -> Iterable[Key]:
    event: webhooks.DeliveryDue = recorded.event
    yield from state.drop_owed(event.delivery_id)
    # A test that a user waits for goes before ordinary deliveries.
    first = 0.0 if event.occasion == "TEST" else recorded.at
    yield from state.put_delivery(
        Delivery(due=event, order=recorded.position, next_at=first, reason=event.reason)
    )


def _delivery_tried(state: State, recorded: Recorded) -> Iterable[Key]:
    event: webhooks.DeliveryTried = recorded.event
    delivery = state.deliveries[event.delivery_id]
    attempt = Try(
        attempt=event.attempt,
        at=recorded.at,
        status=event.status,
        problem=event.problem,
        took_s=event.took_s,
    )
    changed = replace(delivery, tries=(*delivery.tries, attempt), next_at=event.next_at, reason=event.reason)
    if event.problem:
        yield from state.put_delivery(changed)
    else:
        yield from _complete(state, replace(changed, state="DELIVERED"))


def _delivery_given_up(state: State, recorded: Recorded) -> Iterable[Key]:
    event: webhooks.DeliveryGivenUp = recorded.event
    delivery = state.deliveries[event.delivery_id]
    return _complete(state, replace(delivery, state="GIVEN_UP", next_at=None, reason=event.reason))


def _complete(state: State, changed: Delivery) -> Iterable[Key]:
    """Store a delivery that is over, and forget its webhook's oldest one beyond the limit."""
    yield from state.put_delivery(changed)
    webhook_id = changed.due.webhook_id
    # One goes for each that comes, so one is enough.
    if state.over.count(webhook_id) > REMEMBERED:
        oldest = state.over.first(webhook_id)
        if oldest is not None:
            yield from state.drop_delivery(oldest[-1])


_FOLDS: dict[type, Callable[[State, Recorded], Iterable[Key]]] = {
    searcher.ExperimentCreated: _experiment_created,
    searcher.ExperimentRevised: _experiment_revised,
    searcher.ExperimentDeleted: _experiment_deleted,
    searcher.ExperimentActivated: _experiment_activated,
    searcher.ExperimentPaused: _experiment_paused,
    searcher.ExperimentEnded: _experiment_ended,
    gateway.ProjectSet: _project_set,
    gateway.ProjectRemoved: _project_removed,
    webhooks.WebhookSet: _webhook_set,
    webhooks.WebhookRemoved: _webhook_removed,
    webhooks.DeliveryDue: _delivery_due,
    webhooks.DeliveryTried: _delivery_tried,
    webhooks.DeliveryGivenUp: _delivery_given_up,
    webhooks.CreationKept: fold_result,
}

evolve = Fold(_FOLDS)
"""Folds one event; returns the keys of the changed records."""
