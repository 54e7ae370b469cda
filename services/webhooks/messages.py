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
NAME_CHARACTERS = 200
"""Characters of a name in a message to Slack."""
VERBS = {
    "ACTIVE": "is active",
    "PAUSED": "was paused",
    "COMPLETED": "completed",
    "CANCELED": "was canceled",
    "ERROR": "ended with an error",
}


def body(kind: WebhookKind, due: DeliveryDue, address: str) -> bytes:
    """The body of a delivery, which is the same for each attempt.

    `address` is that of the cluster's web UI; empty if unknown.
    """
    return msgspec.json.encode(_slack(due, address) if kind == "SLACK" else _document(due))


def headers(kind: WebhookKind, due: DeliveryDue, sent: bytes, key: str, now: float) -> dict[str, str]:
    """The headers of a delivery.

    The signature is the hexadecimal HMAC-SHA256 of timestamp, comma and body.
    """
    common_headers = {
        "Content-Type": "application/json",
        "User-Agent": "steadfast-webhooks",
        DELIVERY: due.delivery_id,
    }
    if kind == "SLACK":
        return common_headers
    at = str(int(now))
    # With the time, so that a receiver can refuse a document that somebody recorded and sends again.
    signed = hmac.new(key.encode(), f"{at},".encode() + sent, hashlib.sha256).hexdigest()
    return common_headers | {TIMESTAMP: at, SIGNATURE: signed}


def _document(due: DeliveryDue) -> dict[str, Any]:
    experiment = due.experiment
    return {
        "event_id": due.delivery_id,
        "event_type": due.occasion,
        "timestamp": int(due.happened_at),
        "condition": {"state": experiment.state} if experiment is not None else {},
        "event_data": {"experiment": _experiment(experiment)} if experiment is not None else {"data": "test"},
    }


def _experiment(experiment: ExperimentTold) -> dict[str, Any]:
    return {
        "id": experiment.id,
        "state": experiment.state,
        "name": experiment.name,
        "slots_per_trial": experiment.slots_per_trial,
        "duration": int(experiment.duration_s),
        "resource_pool": experiment.resource_pool,
        "workspace": experiment.workspace,
        "project": experiment.project,
    }


def _slack(due: DeliveryDue, address: str) -> dict[str, Any]:
    experiment = due.experiment
    if experiment is None:
        return {"text": "This is a test of a webhook: messages of this cluster arrive here."}
    name = (
        f"Experiment {experiment.id} ({_escaped(experiment.name)})"
        if experiment.name
        else f"Experiment {experiment.id}"
    )
    if address:
        name = f"<{address}/det/experiments/{experiment.id}|{name}>"
    facts = [
        f"Workspace: {_escaped(experiment.workspace)}",
        f"Project: {_escaped(experiment.project)}",
        f"Pool: {_escaped(experiment.resource_pool)}",
        f"Slots per trial: {experiment.slots_per_trial}",
        f"After: {_duration(experiment.duration_s)}",
    ]
    text = f"{name} {VERBS[experiment.state]}."
    block = {"type": "section", "text": {"type": "mrkdwn", "text": text}}
    context = {"type": "context", "elements": [{"type": "mrkdwn", "text": fact} for fact in facts]}
    return {"text": text, "blocks": [block, context]}


def _escaped(text: str) -> str:
    """Escape a text so that Slack shows it literally, without links, mentions or lines of its own."""
    words = " ".join(text.split())
    # Slack refuses a message with 3,000 characters in one place, and one may become five here.
    text = words if len(words) <= NAME_CHARACTERS else f"{words[:NAME_CHARACTERS]}…"
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "\u00a6")


def _duration(seconds: float) -> str:
    hours, rest = divmod(int(seconds), 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {left} s" if minutes else f"{left} s"
