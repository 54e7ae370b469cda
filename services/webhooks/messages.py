"""Builds deliveries: the body, and the headers that authenticate it."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import msgspec

from det_contracts.events.webhooks import DeliveryDue, ExperimentTold, WebhookKind

TIMESTAMP = "X-Determined-AI-Signature-Timestamp"
SIGNATURE = "X-Determined-AI-Signature"
"""The header names that receivers written for 0.25 expect."""
DELIVERY = "Steadfast-Delivery"
VERBS = {
    "ACTIVE": "is active",
    "PAUSED": "was paused",
    "COMPLETED": "completed",
    "CANCELED": "was canceled",
    "ERROR": "ended with an error",
}


def body(kind: WebhookKind, told: DeliveryDue, address: str) -> bytes:
    """The body of a delivery, which is the same for each attempt.

    `address` is that of the cluster's web UI; empty if unknown.
    """
    return msgspec.json.encode(_slack(told, address) if kind == "SLACK" else _document(told))


def headers(kind: WebhookKind, told: DeliveryDue, sent: bytes, key: str, now: float) -> dict[str, str]:
    """The headers of a delivery.

    The signature is the hexadecimal HMAC-SHA256 of timestamp, comma and body.
    """
    found = {
        "Content-Type": "application/json",
        "User-Agent": "steadfast-webhooks",
        DELIVERY: told.delivery_id,
    }
    if kind == "SLACK":
        return found
    at = str(int(now))
    signed = hmac.new(key.encode(), f"{at},".encode() + sent, hashlib.sha256).hexdigest()
    return found | {TIMESTAMP: at, SIGNATURE: signed}


def _document(told: DeliveryDue) -> dict[str, Any]:
    one = told.experiment
    return {
        "event_id": told.delivery_id,
        "event_type": told.occasion,
        "timestamp": int(told.happened_at),
        "condition": {"state": one.state} if one is not None else {},
        "event_data": {"experiment": _experiment(one)} if one is not None else {"data": "test"},
    }


def _experiment(one: ExperimentTold) -> dict[str, Any]:
    return {
        "id": one.id,
        "state": one.state,
        "name": one.name,
        "slots_per_trial": one.slots_per_trial,
        "duration": int(one.duration_s),
        "resource_pool": one.resource_pool,
        "workspace": one.workspace,
        "project": one.project,
    }


def _slack(told: DeliveryDue, address: str) -> dict[str, Any]:
    one = told.experiment
    if one is None:
        return {"text": "This is a test of a webhook: messages of this cluster arrive here."}
    name = f"Experiment {one.id} ({_escaped(one.name)})" if one.name else f"Experiment {one.id}"
    if address:
        name = f"<{address}/det/experiments/{one.id}|{name}>"
    facts = [
        f"Workspace: {_escaped(one.workspace)}",
        f"Project: {_escaped(one.project)}",
        f"Pool: {_escaped(one.resource_pool)}",
        f"Slots per trial: {one.slots_per_trial}",
        f"After: {_duration(one.duration_s)}",
    ]
    text = f"{name} {VERBS[one.state]}."
    block = {"type": "section", "text": {"type": "mrkdwn", "text": text}}
    context = {"type": "context", "elements": [{"type": "mrkdwn", "text": fact} for fact in facts]}
    return {"text": text, "blocks": [block, context]}


def _escaped(text: str) -> str:
    """Escape a text so that Slack shows it literally, without links or mentions."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "\u00a6")


def _duration(seconds: float) -> str:
    hours, rest = divmod(int(seconds), 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {left} s" if minutes else f"{left} s"
