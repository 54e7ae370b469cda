"""Routes of 0.25 that are not offered: they answer 501 and say what to do instead."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from services.gateway.http.visit import Authenticated
from services.web.errors import unimplemented

_TRIAL_SOURCES = (
    "which checkpoint a trial was made to judge or to tune further is not kept: report the metrics to a "
    "trial of its own, and name the checkpoint in its hyperparameters or as source_checkpoint_uuid"
)
_ACTIVITY = "which projects somebody looked at last is not kept: list all with GET /workspaces/{id}/projects"
MISSING: dict[tuple[str, str], str] = {
    ("POST", "/trial-source-info"): _TRIAL_SOURCES,
    ("GET", "/checkpoints/{uuid}/trial-source-info-metrics"): _TRIAL_SOURCES,
    ("GET", "/models/{name}/versions/{number}/trial-source-info-metrics"): _TRIAL_SOURCES,
    ("GET", "/user/projects/activity"): _ACTIVITY,
    ("POST", "/users/activity"): _ACTIVITY,
}
"""By method and path below `/api/v1`: what to do instead."""

router = APIRouter()


def _add(method: str, path: str, instead: str) -> None:
    async def missing(visit: Authenticated) -> Response:
        raise unimplemented(f"{method} {visit.request.url.path} is not offered: {instead}")

    router.add_api_route(path, missing, methods=[method], name="missing")


for (_method, _path), _instead in MISSING.items():
    _add(_method, _path, _instead)
