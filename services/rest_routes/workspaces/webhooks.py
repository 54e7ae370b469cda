"""Webhooks: URLs notified of experiment state changes, and their deliveries."""

from __future__ import annotations

import asyncio

import msgspec
from starlette.responses import Response
from typing_extensions import TypedDict

from det_contracts import subjects
from det_contracts.events.webhooks import DeliveryTried
from det_contracts.problems import failed_precondition, invalid, not_found, unavailable
from det_contracts.queries import Deliveries, Webhooks
from det_contracts.webhook_commands import RemoveWebhook, TryWebhook
from services.kit import paging
from services.kit.jetstream_feed import READ_ERRORS
from services.kit.paging import Window
from services.kit.records import read_event
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.bodies import WebhookBody
from services.rest_routes.present import records
from services.rest_routes.present import webhook as present
from services.rest_routes.present.answers import page_schema, record_schema, response_schema
from services.rest_routes.workspaces import webhook_sealing as webhooks
from services.web.query import FromQuery, Paged
from services.web.routes import Routes

router = Routes()
MAX_ROWS = 200
DEFAULT_ROWS = 100
TEST_TIMEOUT_S = 20.0
"""A test first waits for the attempt in progress at the same webhook, and then for its own."""


class AllWebhooks(TypedDict):
    """All webhooks."""

    webhooks: list[records.Webhook]


class Tested(TypedDict):
    """The result of a successful test. A failed test is an error."""

    completed: bool


async def _all(call: UserCall) -> list[records.Webhook]:
    rows = await call.peers.query(Webhooks(), position=call.catalogue.position)
    return [
        present.webhook(row, call.backend.sealer) for row in msgspec.convert(rows, list[present.WebhookRow])
    ]


@router.get("/webhooks", ("administer_cluster", "cluster"), **response_schema(AllWebhooks))
async def list_webhooks(call: Authenticated) -> Response:
    """All webhooks, by id. Only administrators see them, because they contain secrets."""
    return call.answer({"webhooks": await _all(call)})


@router.post("/webhooks", ("administer_cluster", "cluster"), **record_schema("webhook", records.Webhook))
async def create(call: Authenticated, body: WebhookBody) -> Response:
    """Create a webhook: a URL that is notified when experiments change state."""
    id = await call.create(webhooks.creation_command(call.backend, body, call.user.username))
    return await _webhook(call, id)


@router.get(
    "/webhooks/{webhook_id}", ("administer_cluster", "cluster"), **record_schema("webhook", records.Webhook)
)
async def get(call: Authenticated, webhook_id: int) -> Response:
    """One webhook (our addition)."""
    return await _webhook(call, webhook_id)


async def _webhook(call: UserCall, id: int) -> Response:
    webhook = next((hook for hook in await _all(call) if hook["id"] == id), None)
    if webhook is None:
        raise not_found("webhook", id)
    return call.answer({"webhook": webhook})


@router.delete("/webhooks/{webhook_id}", ("administer_cluster", "cluster"))
async def remove(call: Authenticated, webhook_id: int) -> Response:
    """Delete a webhook. Its pending deliveries are dropped."""
    await call.peers.command(RemoveWebhook(webhook_id=webhook_id, user=call.user.username))
    return call.answer({})


@router.post("/webhooks/{webhook_id}/test", ("administer_cluster", "cluster"), **response_schema(Tested))
async def test(call: Authenticated, webhook_id: int) -> Response:
    """Send a test notification. Answers once it has arrived; an error says why it did not."""
    # Before the command, or the attempt may be in the log ahead of where the reading begins.
    before = call.catalogue.position
    id = await call.peers.command(TryWebhook(webhook_id=webhook_id, user=call.user.username))
    tried = await _first_attempt(call, id, before)
    if tried.problem:
        raise failed_precondition(f"the test did not arrive: {tried.problem}")
    return call.answer({"completed": True})


async def _first_attempt(call: UserCall, delivery_id: str, after: int) -> DeliveryTried:
    reading = call.backend.journal.read(
        subjects.CONTROL, after=after, subjects=[subjects.attempts_of(delivery_id)]
    )
    try:
        async with asyncio.timeout(TEST_TIMEOUT_S), reading as feed:
            while True:
                for message in (await feed.batch()).messages:
                    event = read_event(message).event
                    if isinstance(event, DeliveryTried):
                        return event
    except TimeoutError:
        raise unavailable(
            f"the test was not sent within {TEST_TIMEOUT_S:.0f} s; look at the deliveries of the webhook"
        ) from None
    except READ_ERRORS as error:
        raise unavailable(f"the log cannot be read just now: {error!r}; try again") from error


@router.get(
    "/webhooks/{webhook_id}/deliveries",
    ("administer_cluster", "cluster"),
    **page_schema("deliveries", records.WebhookDelivery),
)
async def deliveries(call: Authenticated, webhook_id: int, query: FromQuery[Paged]) -> Response:
    """A webhook's past and pending deliveries, newest first (our addition)."""
    if query.offset < 0:
        raise invalid(f"offset must not be {query.offset}: deliveries are listed from the newest one on")
    limit = min(query.limit, MAX_ROWS) if query.limit > 0 else DEFAULT_ROWS
    deliveries_query = Deliveries(webhook_id=webhook_id, offset=query.offset, limit=limit)
    answer = await call.peers.query(deliveries_query, position=call.catalogue.position)
    part = paging.span(Window(query.offset, limit), answer["total"])
    shown = [present.delivery(row) for row in answer["rows"]]
    return call.answer({"deliveries": shown, "pagination": part.pagination})
