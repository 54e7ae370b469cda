"""Webhooks and their deliveries."""

from __future__ import annotations

from typing import Any

import msgspec

from services.catalogue.api_values import format_optional_time, format_time
from services.kit.sealing import Sealer
from services.rest_requests.bodies import STATE_CHANGE
from services.rest_routes.present import records
from services.rest_routes.workspaces.webhook_sealing import unseal


class Trigger(msgspec.Struct, frozen=True):
    """A trigger, as sent by the webhooks service."""

    id: int
    state: str


class WebhookRow(msgspec.Struct, frozen=True):
    """A webhook, as sent by the webhooks service."""

    webhook_id: int
    kind: str
    host: str
    url: str
    signing_key: str
    triggers: list[Trigger]
    user: str
    waiting: int


def webhook(row: WebhookRow, sealer: Sealer | None) -> records.Webhook:
    """A webhook with its address and key. Only administrators may see it."""
    return {
        "id": row.webhook_id,
        "url": unseal(sealer, row.url),
        "triggers": [_trigger(row.webhook_id, trigger) for trigger in row.triggers],
        "webhookType": f"WEBHOOK_TYPE_{row.kind}",
        "signingKey": unseal(sealer, row.signing_key),
        "username": row.user,
        "waiting": row.waiting,
    }


def _trigger(webhook_id: int, trigger: Trigger) -> records.WebhookTrigger:
    return {
        "id": trigger.id,
        "triggerType": STATE_CHANGE,
        "condition": {"state": trigger.state},
        "webhookId": webhook_id,
    }


def delivery(row: dict[str, Any]) -> records.WebhookDelivery:
    """A delivery, with all its attempts."""
    experiment = row["experiment"] or {}
    return {
        "id": row["delivery_id"],
        "eventType": row["occasion"],
        "experimentId": experiment.get("id"),
        "experimentName": experiment.get("name", ""),
        "experimentState": experiment.get("state", ""),
        "time": format_time(row["happened_at"]),
        "state": row["state"],
        "nextAttempt": format_optional_time(row["next_at"]),
        "attempts": [_attempt(attempt) for attempt in row["attempts"]],
        "reason": row["reason"],
    }


def _attempt(attempt: dict[str, Any]) -> records.WebhookAttempt:
    return {
        "attempt": attempt["attempt"],
        "time": format_time(attempt["at"]),
        "status": attempt["status"],
        "problem": attempt["problem"],
        "seconds": attempt["took_s"],
    }
