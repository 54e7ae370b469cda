"""Commands that the webhooks service accepts, including the results of its own delivery attempts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from det_contracts.events.webhooks import (
    CreationKept,
    DeliveryDue,
    DeliveryTried,
    Trigger,
    WebhookRemoved,
    WebhookSet,
)
from det_contracts.problems import failed_precondition, invalid, not_found
from det_contracts.webhook_commands import RemoveWebhook, SetWebhook, TryWebhook
from services.kit.idempotency import idempotent
from services.kit.rules import Call, Result
from services.webhooks.domain.fold import TOTALS, delivery_id
from services.webhooks.domain.state import MAX_TRIES, Delivery, State, Totals

MAX_WEBHOOKS = 100
"""Each webhook uses a thread during a delivery."""
FIRST_PAUSE_S = 10.0
PAUSE_FACTOR = 3.0
MAX_PAUSE_S = 6 * 3600.0


class StateAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """Sent by the service to itself: one delivery attempt is over."""

    delivery_id: str
    attempt: int
    status: int = 0
    problem: str = ""
    """Why it was not delivered; "" if it was."""
    final: bool = False
    """Another attempt would have the same result."""
    took_s: float
    chance: float
    """Random, 0 to 1, so that receivers which fail at the same moment are not retried at the same moment."""


def pause_s(attempt: int, chance: float) -> float:
    """How long to wait after a failed attempt: three times as long each time, plus or minus half, in seconds.

    >>> [round(pause_s(attempt, 0.5)) for attempt in (1, 2, 3, 9)]
    [10, 30, 90, 21600]
    """
    return min(FIRST_PAUSE_S * PAUSE_FACTOR ** (attempt - 1), MAX_PAUSE_S) * (0.5 + chance)


def set_webhook(state: State, command: SetWebhook, call: Call) -> Result:
    """Create a webhook."""
    if not command.states:
        raise invalid("a webhook needs at least one trigger: a state of experiments to report")
    if len(state.webhooks) >= MAX_WEBHOOKS:
        raise failed_precondition(f"there are {MAX_WEBHOOKS} webhooks already: delete one that is not needed")
    totals = state.totals.get(TOTALS, Totals())
    states = dict.fromkeys(command.states)
    made = WebhookSet(
        webhook_id=totals.webhooks + 1,
        kind=command.kind,
        host=command.host,
        url=command.url,
        signing_key=command.signing_key,
        triggers=tuple(Trigger(id, state) for id, state in enumerate(states, totals.triggers + 1)),
        user=command.user,
        reason=f"made by {command.user}",
    )
    return Result([made], made.webhook_id)


def remove_webhook(state: State, command: RemoveWebhook, call: Call) -> Result:
    """Forget a webhook."""
    _webhook(state, command.webhook_id)
    return Result([WebhookRemoved(command.webhook_id, f"removed by {command.user}")])


def try_webhook(state: State, command: TryWebhook, call: Call) -> Result:
    """Send a test message to a webhook once."""
    _webhook(state, command.webhook_id)
    due = DeliveryDue(
        delivery_id=delivery_id(call.id, command.webhook_id),
        webhook_id=command.webhook_id,
        occasion="TEST",
        happened_at=call.at,
        reason=f"tested by {command.user}",
    )
    return Result([due], due.delivery_id)


def _webhook(state: State, id: int) -> WebhookSet:
    webhook = state.webhooks.get(id)
    if webhook is None:
        raise not_found("webhook", id)
    return webhook


def record_attempt(state: State, command: StateAttempt, call: Call) -> Result:
    """Record the result of an attempt. Ignored if it is already known or the webhook was removed."""
    delivery = state.deliveries.get(command.delivery_id)
    # A replica that lost its lease may still report an attempt that its successor has repeated.
    if delivery is None or delivery.state != "WAITING" or command.attempt != len(delivery.tries) + 1:
        return Result()
    next_at = _next_at(delivery, command, call.at)
    return Result(
        [
            DeliveryTried(
                delivery_id=command.delivery_id,
                webhook_id=delivery.due.webhook_id,
                attempt=command.attempt,
                status=command.status,
                problem=command.problem,
                took_s=command.took_s,
                next_at=next_at,
                reason=_reason(command, next_at, call.at),
            )
        ]
    )


def _next_at(delivery: Delivery, command: StateAttempt, now: float) -> float | None:
    # Whoever tests a webhook waits for the answer, and tries again by hand.
    is_final = command.final or delivery.due.occasion == "TEST" or command.attempt >= MAX_TRIES
    if not command.problem or is_final:
        return None
    return now + pause_s(command.attempt, command.chance)


def _reason(command: StateAttempt, next_at: float | None, now: float) -> str:
    if not command.problem:
        return f"the receiver answered {command.status}"
    again = f"; it is tried again in {next_at - now:,.0f} s" if next_at is not None else ""
    return f"{command.problem}{again}"


COMMANDS: dict[Any, Callable[[State, Any, Call], Result]] = {
    SetWebhook: idempotent(set_webhook, CreationKept),
    RemoveWebhook: remove_webhook,
    TryWebhook: try_webhook,
    StateAttempt: record_attempt,
}
