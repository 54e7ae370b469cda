"""What the webhooks service knows. All records are frozen: an event replaces one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from det_contracts.events.webhooks import DeliveryDue, TriggerState, WebhookSet
from services.kit.authz.people import People
from services.kit.idempotency import Made, by_age
from services.kit.rules import derived
from services.kit.sorted_keys import SortedKeys

Key = tuple[str, Any]
DeliveryState = Literal["WAITING", "DELIVERED", "GIVEN_UP"]
MOST_TRIES = 10
REMEMBERED = 100
"""Deliveries of each webhook that are over and still shown."""
MOST_WAITING = 1000
"""Deliveries of one webhook that may wait: a receiver that is gone for good costs no more."""


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """What of an experiment receivers are told."""

    id: int
    name: str
    resource_pool: str
    slots_per_trial: int
    created_at: float


class Owed(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a webhook waits for has happened, and no delivery was decided yet."""

    delivery_id: str
    webhook_id: int
    experiment_id: int
    state: TriggerState
    happened_at: float


class Try(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt that is over."""

    attempt: int
    at: float
    status: int
    problem: str
    took_s: float


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a webhook is told, or was."""

    told: DeliveryDue
    order: int
    """Position in the log, where it became due."""
    state: DeliveryState = "WAITING"
    next_at: float | None = 0.0
    """When it is to be tried; None: never again."""
    tries: tuple[Try, ...] = ()
    reason: str = ""
    """Why it stands so."""


class Named(msgspec.Struct, frozen=True):
    """The name of a project."""

    name: str


class Totals(msgspec.Struct, frozen=True):
    """The highest ids that were given out."""

    webhooks: int = 0
    triggers: int = 0


@dataclass
class State(People):
    """Everything that the webhooks service folds out of the log."""

    experiments: dict[int, Experiment] = field(default_factory=dict)
    projects: dict[int, Named] = field(default_factory=dict)
    webhooks: dict[int, WebhookSet] = field(default_factory=dict)
    owed: dict[str, Owed] = field(default_factory=dict)
    """By the id of the delivery to be."""
    deliveries: dict[str, Delivery] = field(default_factory=dict)
    totals: dict[str, Totals] = field(default_factory=dict)
    creations: dict[str, Made] = field(default_factory=dict)
    made_at: SortedKeys = derived()  # noqa: RUF009
    """(when, request id): every creation"""
    listeners: SortedKeys = derived()  # noqa: RUF009
    """(state of an experiment, webhook)"""
    owed_to: SortedKeys = derived()  # noqa: RUF009
    """(webhook, delivery to be)"""
    waiting: SortedKeys = derived()  # noqa: RUF009
    """(webhook, when it is to be tried, order, delivery)"""
    over: SortedKeys = derived()  # noqa: RUF009
    """(webhook, order, delivery): those that are over"""
    of_webhook: SortedKeys = derived()  # noqa: RUF009
    """(webhook, order, delivery): all that are remembered"""

    def __post_init__(self) -> None:
        """Make the indexes of the records."""
        self.made_at = by_age(self.creations)
        told = [(one.state, id) for id, hook in self.webhooks.items() for one in hook.triggers]
        self.listeners = SortedKeys(told)
        self.owed_to = SortedKeys((one.webhook_id, id) for id, one in self.owed.items())
        self.waiting, self.over, self.of_webhook = SortedKeys(), SortedKeys(), SortedKeys()
        for one in self.deliveries.values():
            self._index(one)

    def put_webhook(self, told: WebhookSet) -> Iterable[Key]:
        """Keep a webhook."""
        self.webhooks[told.webhook_id] = told
        yield "webhooks", told.webhook_id
        for one in told.triggers:
            self.listeners.add(one.state, told.webhook_id)

    def drop_webhook(self, id: int) -> Iterable[Key]:
        """Forget a webhook, with all its deliveries."""
        for one in self.webhooks.pop(id).triggers:
            self.listeners.discard(one.state, id)
        yield "webhooks", id
        for delivery_id in list(self.of_webhook.ids(id)):
            yield from self.drop_delivery(delivery_id)
        for delivery_id in list(self.owed_to.ids(id)):
            yield from self.drop_owed(delivery_id)

    def put_owed(self, made: Owed) -> Iterable[Key]:
        """Keep something that no delivery was decided for yet."""
        self.owed[made.delivery_id] = made
        self.owed_to.add(made.webhook_id, made.delivery_id)
        yield "owed", made.delivery_id

    def drop_owed(self, id: str) -> Iterable[Key]:
        """Forget it, where it is known."""
        known = self.owed.pop(id, None)
        if known is not None:
            self.owed_to.discard(known.webhook_id, id)
            yield "owed", id

    def put_delivery(self, changed: Delivery) -> Iterable[Key]:
        """Keep a delivery."""
        id = changed.told.delivery_id
        known = self.deliveries.get(id)
        if known is not None:
            self._unindex(known)
        self.deliveries[id] = changed
        self._index(changed)
        yield "deliveries", id

    def drop_delivery(self, id: str) -> Iterable[Key]:
        """Forget a delivery."""
        self._unindex(self.deliveries.pop(id))
        yield "deliveries", id

    def _index(self, one: Delivery) -> None:
        webhook_id, id = one.told.webhook_id, one.told.delivery_id
        self.of_webhook.add(webhook_id, one.order, id)
        if one.state != "WAITING":
            self.over.add(webhook_id, one.order, id)
        elif one.next_at is not None:
            self.waiting.add(webhook_id, one.next_at, one.order, id)

    def _unindex(self, one: Delivery) -> None:
        webhook_id, id = one.told.webhook_id, one.told.delivery_id
        self.of_webhook.discard(webhook_id, one.order, id)
        self.over.discard(webhook_id, one.order, id)
        if one.next_at is not None:
            self.waiting.discard(webhook_id, one.next_at, one.order, id)

    def next_of(self, webhook_id: int) -> Delivery | None:
        """What a webhook is to be told next; the time for it may not have come."""
        found = self.waiting.first(webhook_id)
        return self.deliveries[found[-1]] if found is not None else None
