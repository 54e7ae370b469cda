"""Decisions of the webhooks service: webhooks, delivery attempts, and giving up."""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

from det_contracts.codec import event

WebhookKind = Literal["DEFAULT", "SLACK"]
"""A signed JSON document, or a message in Slack's format."""
TriggerState = Literal["ACTIVE", "PAUSED", "COMPLETED", "CANCELED", "ERROR"]
"""States of an experiment that can trigger a notification when they are entered."""
Occasion = Literal["EXPERIMENT_STATE_CHANGE", "TEST"]
KINDS: tuple[WebhookKind, ...] = get_args(WebhookKind)
TRIGGER_STATES: tuple[TriggerState, ...] = get_args(TriggerState)


class Trigger(msgspec.Struct, frozen=True):
    """What triggers a webhook: an experiment entering a state."""

    id: int
    state: TriggerState


class ExperimentTold(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment as described to receivers."""

    id: int
    state: TriggerState
    name: str
    duration_s: float
    """Since its creation."""
    resource_pool: str
    slots_per_trial: int
    workspace: str
    project: str


@event("webhooks.webhook.set", key="webhook_id")
class WebhookSet(msgspec.Struct, frozen=True, kw_only=True):
    """An address is notified about experiments from now on."""

    webhook_id: int
    kind: WebhookKind
    host: str
    """Host of the address, with the port if given. The rest of the address may be secret."""
    url: str
    """The address, encrypted if the cluster has a key for that."""
    signing_key: str
    """Key for signing documents, encrypted likewise."""
    triggers: tuple[Trigger, ...]
    user: str
    reason: str


@event("webhooks.webhook.removed", key="webhook_id")
class WebhookRemoved(msgspec.Struct, frozen=True):
    """The webhook was removed. Its deliveries are forgotten, including pending ones."""

    webhook_id: int
    reason: str


@event("webhooks.delivery.due", key="delivery_id")
class DeliveryDue(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook should be notified. The content is complete here, so all attempts send the same."""

    delivery_id: str
    """A UUID by which receivers detect repeated deliveries."""
    webhook_id: int
    occasion: Occasion
    experiment: ExperimentTold | None = None
    """None for a test."""
    happened_at: float
    reason: str


@event("webhooks.delivery.tried", key="delivery_id")
class DeliveryTried(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery attempt has ended."""

    delivery_id: str
    webhook_id: int
    attempt: int
    """Counts the attempts of the delivery from 1."""
    status: int = 0
    """HTTP status of the response; 0 if there was none."""
    problem: str = ""
    """Why it was not delivered; empty if it was."""
    took_s: float
    next_at: float | None = None
    """When the next attempt is due, in seconds since the epoch; None if there is none."""
    reason: str


@event("webhooks.delivery.given_up", key="delivery_id")
class DeliveryGivenUp(msgspec.Struct, frozen=True):
    """The delivery is not attempted again."""

    delivery_id: str
    webhook_id: int
    reason: str


@event("webhooks.creation.kept", key="request_id")
class CreationKept(msgspec.Struct, frozen=True):
    """A webhook was created for a request with an `Idempotency-Key`. Repeated requests return it."""

    request_id: str
    """Derived from the user and the key."""
    key: str
    digest: str
    """Digest of the complete request. A different request with the same key is refused."""
    value: Any
    """The answer to the command: the id of the webhook."""
    reason: str
