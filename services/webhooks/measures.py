"""Metrics of the webhooks service's state, for operators."""

from __future__ import annotations

from collections.abc import Iterable

from services.kit.process_metrics import Reading
from services.webhooks.domain import State


def readings(state: State) -> Iterable[Reading]:
    """Number of webhooks, and of deliveries waiting for each."""
    yield Reading("webhooks", "Webhooks", (), {(): len(state.webhooks)})
    waiting = {(str(id),): float(state.waiting.count(id)) for id in sorted(state.webhooks)}
    yield Reading("webhook_deliveries_waiting", "Deliveries still to be made", ("webhook",), waiting)
