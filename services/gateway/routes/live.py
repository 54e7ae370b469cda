"""The live channel (our addition; web UI spec, section 2)."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response, StreamingResponse

from det_contracts.problems import invalid
from services.gateway.live import LONGEST
from services.gateway.web.visit import Asked

router = APIRouter()
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


@router.get("/live")
async def live(visit: Asked) -> Response:
    """Server-sent events that name what of `topics` has changed: `experiments`, `trial.12.series`, ..."""
    topics = [one for text in visit.params.texts("topics") for one in text.split(",") if one]
    if not topics or len(topics) > LONGEST:
        raise invalid(f"topics: name 1 to {LONGEST}, such as topics=experiments,experiment.7,trial.12.series")
    return StreamingResponse(
        visit.backend.live.events(topics), media_type="text/event-stream", headers=HEADERS
    )
