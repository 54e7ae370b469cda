"""The status page at `/` and `/det/`, until there is a real one (REST spec, section 8)."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from det_contracts.problems import Refused
from services.gateway import status_page
from services.gateway.web.visit import Anybody, Asked, Visit

root = APIRouter()
HEADERS = {"Cache-Control": "no-store", "X-Frame-Options": "DENY"}


async def _live(visit: Visit) -> str:
    state = visit.catalogue.state
    open_ids = [one.id for one in state.experiments.values() if one.ended_at is None]
    return status_page.fragment(state, await visit.peers.progress(open_ids))


@root.get("/det/live")
async def live(visit: Asked) -> Response:
    """The part of the page that changes."""
    return HTMLResponse(await _live(visit), headers=HEADERS)


@root.get("/")
@root.get("/det")
@root.get("/det/{rest:path}")
async def page(visit: Anybody) -> Response:
    """The page; with content at once for who is logged in, else it logs in by itself first."""
    try:
        visit.session()
        content = await _live(visit)
    except Refused:
        content = ""
    name = visit.backend.settings.cluster_name
    return HTMLResponse(status_page.page(name, content), headers=HEADERS)
