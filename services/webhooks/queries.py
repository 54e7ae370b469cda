"""Queries that the webhooks service answers from its folded state."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import msgspec

from det_contracts.problems import not_found
from det_contracts.queries import Deliveries, Webhooks
from services.webhooks.domain.state import Delivery, State


def webhooks(state: State, query: Webhooks) -> list[dict[str, Any]]:
    """All webhooks, by id."""
    return [
        msgspec.to_builtins(hook) | {"waiting": state.waiting.count(id)}
        for id, hook in sorted(state.webhooks.items())
    ]


def deliveries(state: State, query: Deliveries) -> dict[str, Any]:
    """The deliveries of one webhook, newest first."""
    if query.webhook_id not in state.webhooks:
        raise not_found("webhook", query.webhook_id)
    keys = state.of_webhook.descending(query.webhook_id)
    page = islice(keys, query.offset, query.offset + query.limit)
    rows = [_row(state.deliveries[key[-1]]) for key in page]
    return {"rows": rows, "total": state.of_webhook.count(query.webhook_id)}


def _row(delivery: Delivery) -> dict[str, Any]:
    due = delivery.due
    return {
        "delivery_id": due.delivery_id,
        "occasion": due.occasion,
        "experiment": msgspec.to_builtins(due.experiment),
        "happened_at": due.happened_at,
        "state": delivery.state,
        "next_at": delivery.next_at if delivery.state == "WAITING" and delivery.tries else None,
        "attempts": msgspec.to_builtins(delivery.tries),
        "reason": delivery.reason,
    }


ANSWERS: dict[Any, Callable[[State, Any], Any]] = {Webhooks: webhooks, Deliveries: deliveries}
