"""Streams of what trials reported (REST spec, section 4)."""

from __future__ import annotations

from collections.abc import AsyncIterator

from fastapi import APIRouter
from starlette.responses import Response

from det_contracts.problems import invalid
from services.gateway.present.metrics import VALIDATION, report
from services.gateway.web.visit import Asked, UserVisit

router = APIRouter()


def _stream(visit: UserVisit, group: str | None) -> Response:
    ids = visit.params.integers("trial_ids")
    if not ids:
        raise invalid("trialIds must name at least one trial")
    for id in ids:
        visit.catalogue.trial(id)
    visit.see("trial", *ids)

    async def pages() -> AsyncIterator[list[object]]:
        async for rows in visit.peers.reports(ids, group):
            yield [{"metrics": [report(row) for row in rows]}]

    return visit.stream(pages())


@router.get("/trials/metrics/trial_metrics")
async def of_group(visit: Asked) -> Response:
    """Reports of one group, or of all."""
    return _stream(visit, visit.params.text("group") or None)


@router.get("/trials/metrics/training_metrics")
async def training(visit: Asked) -> Response:
    """Training reports."""
    return _stream(visit, "training")


@router.get("/trials/metrics/validation_metrics")
async def validation(visit: Asked) -> Response:
    """Validation reports."""
    return _stream(visit, VALIDATION)
