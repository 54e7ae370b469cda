"""The webhooks service's state. All records are frozen: an event replaces one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from det_contracts.events.webhooks import DeliveryDue, TriggerState, WebhookSet
from services.kit.authz.people import People
from services.kit.idempotency import RequestResult, results_by_age
from services.kit.rules import derived
from services.kit.sorted_keys import SortedKeys

Key = tuple[str, Any]
DeliveryState = Literal["WAITING", "DELIVERED", "GIVEN_UP"]
MAX_TRIES = 10
REMEMBERED = 100
"""Number of completed deliveries that are kept for each webhook."""
MAX_WAITING = 1000
"""Maximum number of waiting deliveries per webhook: limits the cost of a receiver that never returns."""


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about an experiment that receivers are told."""

    id: int
    name: str
    resource_pool: str
    slots_per_trial: int
    created_at: float


class Owed(msgspec.Struct, frozen=True, kw_only=True):
    """An event that a webhook waits for has happened, and its delivery is not decided yet."""

    delivery_id: str
    webhook_id: int
    experiment_id: int
    state: TriggerState
    happened_at: float


class Try(msgspec.Struct, frozen=True, kw_only=True):
    """One completed attempt."""

    attempt: int
    at: float
    status: int
    problem: str
    took_s: float


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery to a webhook, waiting or over."""

    due: DeliveryDue = msgspec.field(name="told")
    order: int
    """Position in the log at which it became due."""
    state: DeliveryState = "WAITING"
    next_at: float | None = 0.0
    """When the next attempt is due; None: never."""
    tries: tuple[Try, ...] = ()
    reason: str = ""
    """Why it is in this state."""


class Named(msgspec.Struct, frozen=True):
    """The name of a project."""

    name: str


class Totals(msgspec.Struct, frozen=True):
    """The highest ids that were assigned."""

    webhooks: int = 0
    triggers: int = 0


@dataclass
class State(People):
    """Everything that the webhooks service folds from the log."""

    experiments: dict[int, Experiment] = field(default_factory=dict)
    projects: dict[int, Named] = field(default_factory=dict)
    webhooks: dict[int, WebhookSet] = field(default_factory=dict)
    owed: dict[str, Owed] = field(default_factory=dict)
    """By the id of the future delivery."""
    deliveries: dict[str, Delivery] = field(default_factory=dict)
    totals: dict[str, Totals] = field(default_factory=dict)
    creations: dict[str, RequestResult] = field(default_factory=dict)
    made_at: SortedKeys = derived()  # noqa: RUF009
    """(time, request id) for every creation"""
    listeners: SortedKeys = derived()  # noqa: RUF009
    """(state of an experiment, webhook)"""
    owed_to: SortedKeys = derived()  # noqa: RUF009
    """(webhook, future delivery)"""
    waiting: SortedKeys = derived()  # noqa: RUF009
    """(webhook, time of the next attempt, order, delivery)"""
    over: SortedKeys = derived()  # noqa: RUF009
    """(webhook, order, delivery) for completed ones"""
    of_webhook: SortedKeys = derived()  # noqa: RUF009
    """(webhook, order, delivery) for all that are kept"""

    def __post_init__(self) -> None:
        """Build the indexes from the records."""
        self.made_at = results_by_age(self.creations)
        listeners = [(trigger.state, id) for id, hook in self.webhooks.items() for trigger in hook.triggers]
        self.listeners = SortedKeys(listeners)
        self.owed_to = SortedKeys((owed.webhook_id, id) for id, owed in self.owed.items())
        self.waiting, self.over, self.of_webhook = SortedKeys(), SortedKeys(), SortedKeys()
        for delivery in self.deliveries.values():
            self._index(delivery)

    def put_webhook(self, webhook: WebhookSet) -> Iterable[Key]:
        """Store a webhook."""
        self.webhooks[webhook.webhook_id] = webhook
        yield "webhooks", webhook.webhook_id
        for trigger in webhook.triggers:
            self.listeners.add(trigger.state, webhook.webhook_id)

    def drop_webhook(self, id: int) -> Iterable[Key]:
        """Forget a webhook and all its deliveries."""
        for trigger in self.webhooks.pop(id).triggers:
            self.listeners.discard(trigger.state, id)
        yield "webhooks", id
        for delivery_id in list(self.of_webhook.ids(id)):
            yield from self.drop_delivery(delivery_id)
        for delivery_id in list(self.owed_to.ids(id)):
            yield from self.drop_owed(delivery_id)

    def put_owed(self, made: Owed) -> Iterable[Key]:
        """Store an event whose delivery is not decided yet."""
        self.owed[made.delivery_id] = made
        self.owed_to.add(made.webhook_id, made.delivery_id)
        yield "owed", made.delivery_id

    def drop_owed(self, id: str) -> Iterable[Key]:
        """Forget it, if it is known."""
        owed = self.owed.pop(id, None)
        if owed is not None:
            self.owed_to.discard(owed.webhook_id, id)
            yield "owed", id

    def put_delivery(self, changed: Delivery) -> Iterable[Key]:
        """Store a delivery."""
        id = changed.due.delivery_id
        before = self.deliveries.get(id)
        if before is not None:
            self._unindex(before)
        self.deliveries[id] = changed
        self._index(changed)
        yield "deliveries", id

    def drop_delivery(self, id: str) -> Iterable[Key]:
        """Forget a delivery."""
        self._unindex(self.deliveries.pop(id))
        yield "deliveries", id

    def _index(self, delivery: Delivery) -> None:
        webhook_id, id = delivery.due.webhook_id, delivery.due.delivery_id
        self.of_webhook.add(webhook_id, delivery.order, id)
        if delivery.state != "WAITING":
            self.over.add(webhook_id, delivery.order, id)
        elif delivery.next_at is not None:
            self.waiting.add(webhook_id, delivery.next_at, delivery.order, id)

    def _unindex(self, delivery: Delivery) -> None:
        webhook_id, id = delivery.due.webhook_id, delivery.due.delivery_id
        self.of_webhook.discard(webhook_id, delivery.order, id)
        self.over.discard(webhook_id, delivery.order, id)
        if delivery.next_at is not None:
            self.waiting.discard(webhook_id, delivery.next_at, delivery.order, id)

    def next_delivery(self, webhook_id: int) -> Delivery | None:
        """A webhook's next delivery, which may not be due yet."""
        key = self.waiting.first(webhook_id)
        return self.deliveries[key[-1]] if key is not None else None
