"""Webhooks: URLs notified of experiment state changes, and their deliveries."""

from __future__ import annotations

import asyncio

import msgspec
from fastapi import APIRouter
from starlette.responses import Response
from typing_extensions import TypedDict

from det_contracts import subjects
from det_contracts.events.webhooks import DeliveryTried
from det_contracts.problems import invalid, not_found, precondition, unavailable
from det_contracts.queries import Deliveries, Webhooks
from det_contracts.telling import RemoveWebhook, TryWebhook
from services.gateway.determined import webhooks
from services.gateway.determined.present import webhook as present
from services.gateway.http import records
from services.gateway.http.answers import answering, answering_one, answering_page
from services.gateway.http.bodies import WebhookBody
from services.gateway.http.visit import Asked, UserVisit
from services.kit import paging
from services.kit.jetstream_feed import CANNOT_READ
from services.kit.paging import Window
from services.kit.records import read_event
from services.web.query import Asks, Paged

router = APIRouter()
MOST_ROWS = 200
USUAL_ROWS = 100
TESTED_WITHIN_S = 20.0
"""A test first waits for the attempt in progress at the same webhook, and then for its own."""


class AllWebhooks(TypedDict):
    """All webhooks."""

    webhooks: list[records.Webhook]


class Tested(TypedDict):
    """The result of a successful test. A failed test is an error."""

    completed: bool


async def _all(visit: UserVisit) -> list[records.Webhook]:
    found = await visit.peers.ask(Webhooks(), position=visit.catalogue.position)
    return [present.webhook(row, visit.backend.sealer) for row in msgspec.convert(found, list[present.Row])]


@router.get("/webhooks", **answering(AllWebhooks))
async def list_webhooks(visit: Asked) -> Response:
    """All webhooks, by id. Only administrators see them, because they contain secrets."""
    return visit.answer({"webhooks": await _all(visit)})


@router.post("/webhooks", **answering_one("webhook", records.Webhook))
async def create(visit: Asked, wish: WebhookBody) -> Response:
    """Create a webhook: a URL that is notified when experiments change state."""
    id = await visit.create(webhooks.wanted(visit.backend, wish, visit.user.username))
    return await _one(visit, id)


@router.get("/webhooks/{webhook_id}", **answering_one("webhook", records.Webhook))
async def one(visit: Asked, webhook_id: int) -> Response:
    """One webhook (our addition)."""
    return await _one(visit, webhook_id)


async def _one(visit: UserVisit, id: int) -> Response:
    found = next((hook for hook in await _all(visit) if hook["id"] == id), None)
    if found is None:
        raise not_found("webhook", id)
    return visit.answer({"webhook": found})


@router.delete("/webhooks/{webhook_id}")
async def remove(visit: Asked, webhook_id: int) -> Response:
    """Delete a webhook. Its pending deliveries are dropped."""
    await visit.peers.command(RemoveWebhook(webhook_id=webhook_id, user=visit.user.username))
    return visit.answer({})


@router.post("/webhooks/{webhook_id}/test", **answering(Tested))
async def test(visit: Asked, webhook_id: int) -> Response:
    """Send a test notification. Answers once it has arrived; an error says why it did not."""
    before = visit.catalogue.position
    id = await visit.peers.command(TryWebhook(webhook_id=webhook_id, user=visit.user.username))
    tried = await _first_attempt(visit, id, before)
    if tried.problem:
        raise precondition(f"the test did not arrive: {tried.problem}")
    return visit.answer({"completed": True})


async def _first_attempt(visit: UserVisit, delivery_id: str, after: int) -> DeliveryTried:
    reading = visit.backend.journal.read(
        subjects.CONTROL, after=after, subjects=[subjects.attempts_of(delivery_id)]
    )
    try:
        async with asyncio.timeout(TESTED_WITHIN_S), reading as feed:
            while True:
                for message in (await feed.batch()).messages:
                    found = read_event(message).event
                    if isinstance(found, DeliveryTried):
                        return found
    except TimeoutError:
        raise unavailable(
            f"the test was not sent within {TESTED_WITHIN_S:.0f} s; look at the deliveries of the webhook"
        ) from None
    except CANNOT_READ as error:
        raise unavailable(f"the log cannot be read just now: {error!r}; try again") from error


@router.get("/webhooks/{webhook_id}/deliveries", **answering_page("deliveries", records.WebhookDelivery))
async def deliveries(visit: Asked, webhook_id: int, query: Asks[Paged]) -> Response:
    """A webhook's past and pending deliveries, newest first (our addition)."""
    if query.offset < 0:
        raise invalid(f"offset must not be {query.offset}: deliveries are listed from the newest one on")
    limit = min(query.limit, MOST_ROWS) if query.limit > 0 else USUAL_ROWS
    asked = Deliveries(webhook_id=webhook_id, offset=query.offset, limit=limit)
    found = await visit.peers.ask(asked, position=visit.catalogue.position)
    part = paging.span(Window(query.offset, limit), found["total"])
    shown = [present.delivery(row) for row in found["rows"]]
    return visit.answer({"deliveries": shown, "pagination": part.pagination})
