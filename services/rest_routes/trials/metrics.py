"""Streams of reported metrics (REST spec, section 4)."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.responses import Response

from det_contracts.problems import invalid
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_routes.present.metrics import VALIDATION, report
from services.web.query import NOTHING, FromQuery, Grouped, Integers, QueryModel
from services.web.routes import Routes

router = Routes()


class ReportsQuery(QueryModel):
    """Query parameters: the trials."""

    trial_ids: Integers = NOTHING


class GroupQuery(ReportsQuery, Grouped):
    """Query parameters: the trials and the group."""


async def _stream(call: UserCall, ids: list[int], group: str | None) -> Response:
    if not ids:
        raise invalid("trialIds must name at least one trial")
    await call.catalogue.evicted.load(("trials", id) for id in ids)
    for id in ids:
        call.catalogue.trial(id)
    call.check_view("trial", *ids)

    async def pages() -> AsyncIterator[list[object]]:
        async for rows in call.peers.reports(ids, group):
            yield [{"metrics": [report(row) for row in rows]}]

    return call.stream(pages())


@router.get("/trials/metrics/trial_metrics", ("view", "listed"))
async def of_group(call: Authenticated, query: FromQuery[GroupQuery]) -> Response:
    """Reports of one group, or of all groups."""
    return await _stream(call, query.trial_ids, query.metric_group or None)


@router.get("/trials/metrics/training_metrics", ("view", "listed"))
async def training(call: Authenticated, query: FromQuery[ReportsQuery]) -> Response:
    """Training reports."""
    return await _stream(call, query.trial_ids, "training")


@router.get("/trials/metrics/validation_metrics", ("view", "listed"))
async def validation(call: Authenticated, query: FromQuery[ReportsQuery]) -> Response:
    """Validation reports."""
    return await _stream(call, query.trial_ids, VALIDATION)
