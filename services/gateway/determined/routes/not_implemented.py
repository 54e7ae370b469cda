"""Routes of 0.25 that are not offered: they answer 501 and say what to do instead."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from services.gateway.http.visit import Authenticated
from services.web.errors import unimplemented

_ACTIVITY = "which projects somebody looked at last is not kept: list all with GET /workspaces/{id}/projects"
MISSING: dict[tuple[str, str], str] = {
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
