"""Metrics for Prometheus through the gateway (REST spec, section 8), for clients with a login.

The pages on the processes' health ports have more metrics and need no login: docs/guides/operating.md.
"""

from __future__ import annotations

from collections.abc import Iterable

from starlette.responses import Response

from services.catalogue.domain import State
from services.catalogue.visibility import Visibility
from services.kit.process_metrics import Measures, Reading
from services.rest_requests.api_call import Authenticated
from services.rest_routes.present.agent import live_allocations
from services.rest_routes.present.answers import media_schema
from services.web.routes import Routes

root = Routes()
TEXT = "text/plain; version=0.0.4; charset=utf-8"


@root.get("/debug/prom/metrics", ("logged_in", "cluster"), **media_schema(TEXT))
async def own(call: Authenticated) -> Response:
    """The metrics of the gateway that answers."""
    return Response(await call.backend.measures.text(), media_type=TEXT)


@root.get("/prom/det-state-metrics", ("logged_in", "cluster"), **media_schema(TEXT))
async def cluster_state(call: Authenticated) -> Response:
    """How many slots of which agent each run holds, to be joined with the metrics of host exporters."""
    measures = Measures("cluster")
    visibility = call.visibility
    measures.register(lambda: _readings(call.catalogue.state, visibility))
    return Response(await measures.text(), media_type=TEXT)


def _readings(state: State, visibility: Visibility) -> Iterable[Reading]:
    running = [run for run in live_allocations(state) if run.members]
    running = visibility.filter_visible(lambda run: visibility.includes_run(run.id), running)
    held = {
        (run.id, run.task_id, str(run.experiment_id), str(run.trial_id or ""), run.pool, part.worker_id): len(
            part.slots
        )
        for run in running
        for part in run.members
    }
    labels = ("allocation", "task", "experiment", "trial", "pool", "agent")
    yield Reading("allocation_slots", "Slots that a run holds on an agent", labels, held)
