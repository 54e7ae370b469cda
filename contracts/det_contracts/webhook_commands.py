"""Commands to the webhooks service."""

from __future__ import annotations

import msgspec

from det_contracts.creation import Creation
from det_contracts.events.webhooks import TriggerState, WebhookKind
from det_contracts.ownership import command


@command("webhooks")
class SetWebhook(Creation, frozen=True, kw_only=True, tag="set_webhook"):
    """To webhooks: notify an address about experiments. `value`: the webhook's id."""

    kind: WebhookKind
    host: str
    url: str
    signing_key: str
    states: tuple[TriggerState, ...]
    """States of experiments to notify about."""
    user: str


@command("webhooks")
class RemoveWebhook(msgspec.Struct, frozen=True, kw_only=True, tag="remove_webhook"):
    """To webhooks: stop notifying an address."""

    webhook_id: int
    user: str


@command("webhooks")
class TryWebhook(msgspec.Struct, frozen=True, kw_only=True, tag="try_webhook"):
    """To webhooks: send one test message. `value`: the id of the delivery."""

    webhook_id: int
    user: str
