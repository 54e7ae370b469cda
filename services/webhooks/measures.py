"""What operators see of the webhooks service's state."""

from __future__ import annotations

from collections.abc import Iterable

from services.kit.process_metrics import Reading
from services.webhooks.domain import State


def readings(state: State) -> Iterable[Reading]:
    """How many webhooks there are, and what waits to be delivered to them."""
    yield Reading("webhooks", "Webhooks", (), {(): len(state.webhooks)})
    waiting = {(str(id),): float(state.waiting.count(id)) for id in sorted(state.webhooks)}
    yield Reading("webhook_deliveries_waiting", "Deliveries still to be made", ("webhook",), waiting)
