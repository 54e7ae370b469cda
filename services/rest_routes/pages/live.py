"""The live channel (our addition; web UI spec, section 2)."""

from __future__ import annotations

from starlette.responses import Response

from det_contracts.problems import invalid
from services.kit.authz.permissions import Kind
from services.live.channel import MAX_TOPICS
from services.live.topics import SERIES
from services.rest_requests.api_call import Authenticated
from services.rest_requests.streaming import Stream
from services.rest_routes.present.answers import media_schema
from services.web.query import NOTHING, FromQuery, Integer, QueryModel
from services.web.routes import Routes

router = Routes()
KINDS: dict[str, Kind] = {"experiment": "experiment", "trial": "trial", "task": "task"}
"""Topics about a thing that not every user may see."""
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class LiveQuery(QueryModel):
    """GET /live"""

    topics: list[str] = NOTHING
    after: Integer = -1


@router.get("/live", ("view", "listed"), **media_schema("text/event-stream"))
async def live(call: Authenticated, query: FromQuery[LiveQuery]) -> Response:
    """Server-sent events that name which of `topics` have changed: `experiments`, `trial.12.series`, ...

    A client that reconnects sends the id of the last event it received, in the header `Last-Event-ID` or, if
    its topics are different, as `after`. Any replica then reports what has changed since.
    """
    topics = [topic for text in query.topics for topic in text.split(",") if topic]
    if not topics or len(topics) > MAX_TOPICS:
        raise invalid(
            f"topics: name 1 to {MAX_TOPICS}, such as topics=experiments,experiment.7,trial.12.series"
        )
    for topic in topics:
        kind, _, id = topic.removesuffix(SERIES).partition(".")
        if kind in KINDS and id:
            call.check_view(KINDS[kind], id)
    last = call.request.headers.get("last-event-id", "")
    is_number = last.isascii() and last.isdecimal() and len(last) < 19
    after = int(last) if is_number else query.after
    events = call.backend.live.events(topics, after=after if after >= 0 else None, recheck=call.recheck)
    return Stream(events, call=call, passed_on=True, media_type="text/event-stream", headers=HEADERS)
