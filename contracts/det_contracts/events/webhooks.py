"""What the webhooks service decides: whom to tell of what, each attempt to do so, and when it is given up."""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

from det_contracts.codec import event

WebhookKind = Literal["DEFAULT", "SLACK"]
"""A signed JSON document, or a message as Slack takes it."""
TriggerState = Literal["ACTIVE", "PAUSED", "COMPLETED", "CANCELED", "ERROR"]
"""States of an experiment whose beginning can be told."""
Occasion = Literal["EXPERIMENT_STATE_CHANGE", "TEST"]
KINDS: tuple[WebhookKind, ...] = get_args(WebhookKind)
TRIGGER_STATES: tuple[TriggerState, ...] = get_args(TriggerState)


class Trigger(msgspec.Struct, frozen=True):
    """What a webhook waits for: that an experiment comes into a state."""

    id: int
    state: TriggerState


class ExperimentTold(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment, as receivers are told of it."""

    id: int
    state: TriggerState
    name: str
    duration_s: float
    """Since it was created."""
    resource_pool: str
    slots_per_trial: int
    workspace: str
    project: str


@event("webhooks.webhook.set", key="webhook_id")
class WebhookSet(msgspec.Struct, frozen=True, kw_only=True):
    """Whoever listens at an address is told of experiments from now on."""

    webhook_id: int
    kind: WebhookKind
    host: str
    """Of the address, with its port if one was named: the rest of it may be a secret."""
    url: str
    """The address, sealed where the cluster has a key for that."""
    signing_key: str
    """What documents are signed with, sealed likewise."""
    triggers: tuple[Trigger, ...]
    user: str
    reason: str


@event("webhooks.webhook.removed", key="webhook_id")
class WebhookRemoved(msgspec.Struct, frozen=True):
    """Nobody is told any more; its deliveries are forgotten, those too that wait."""

    webhook_id: int
    reason: str


@event("webhooks.delivery.due", key="delivery_id")
class DeliveryDue(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook is to be told of something. What that is stands here, whole: all attempts say the same."""

    delivery_id: str
    """A UUID; receivers know by it what they were told before."""
    webhook_id: int
    occasion: Occasion
    experiment: ExperimentTold | None = None
    """None for a test."""
    happened_at: float
    reason: str


@event("webhooks.delivery.tried", key="delivery_id")
class DeliveryTried(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to deliver is over."""

    delivery_id: str
    webhook_id: int
    attempt: int
    """Counts the attempts of the delivery from 1."""
    status: int = 0
    """HTTP status of the answer; 0: there was none."""
    problem: str = ""
    """Why it did not arrive; empty: it did."""
    took_s: float
    next_at: float | None = None
    """When the next attempt is due, seconds since the epoch; None: there is none."""
    reason: str


@event("webhooks.delivery.given_up", key="delivery_id")
class DeliveryGivenUp(msgspec.Struct, frozen=True):
    """It is not tried again."""

    delivery_id: str
    webhook_id: int
    reason: str


@event("webhooks.creation.kept", key="request_id")
class CreationKept(msgspec.Struct, frozen=True):
    """A webhook was made for a request with an `Idempotency-Key`; the same request again leads to it."""

    request_id: str
    """Made of who asks and of the key."""
    key: str
    digest: str
    """Of all that was asked for; another request with the same key is refused."""
    value: Any
    """What the command was answered: the id of the webhook."""
    reason: str
