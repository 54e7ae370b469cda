"""What is not there yet: 501.

REST spec, the rows marked *stub* and P2.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from services.gateway.http.visit import Asked
from services.web.errors import unimplemented

MISSING = (
    ("PATCH", "/master/config"),
    ("POST", "/trial-source-info"),
    ("GET", "/resources/allocation/raw"),
    ("GET", "/resources/allocation/aggregated"),
    ("POST", "/allocations/{id}/notify_container_running"),
    ("GET", "/workspaces/{id}/available-resource-pools"),
    ("GET", "/resource-pools/{name}/workspace-bindings"),
)
MISSING_NOUNS = ("webhooks",)

router = APIRouter()


async def _missing(visit: Asked) -> Response:
    where = f"{visit.request.method} {visit.request.url.path}"
    raise unimplemented(f"{where} is not offered yet")


for _method, _path in MISSING:
    router.add_api_route(_path, _missing, methods=[_method], name="missing")
for _noun in MISSING_NOUNS:
    for _path in (f"/{_noun}", f"/{_noun}/{{rest:path}}"):
        for _method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            router.add_api_route(_path, _missing, methods=[_method], name="missing")
