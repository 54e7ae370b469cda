"""What is not there yet: lists that are empty because clients ask for them, and 501 for the rest.

REST spec, the rows marked *stub* and P2.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from services.gateway.http.visit import Asked
from services.kit import paging
from services.web.errors import unimplemented
from services.web.query import Asks, Paged

EMPTY_LISTS = ("notebooks", "shells")
MISSING = (
    ("PATCH", "/master/config"),
    ("POST", "/trial-source-info"),
    ("GET", "/resources/allocation/raw"),
    ("GET", "/resources/allocation/aggregated"),
    ("POST", "/notebooks"),
    ("POST", "/shells"),
    ("POST", "/allocations/{id}/notify_container_running"),
    ("GET", "/workspaces/{id}/available-resource-pools"),
    ("GET", "/resource-pools/{name}/workspace-bindings"),
)
MISSING_NOUNS = ("webhooks",)

router = APIRouter()


def _add_empty_list(noun: str) -> None:
    async def empty(visit: Asked, query: Asks[Paged]) -> Response:
        page, pagination = paging.cut([], query.window)
        return visit.answer({noun: page, "pagination": pagination})

    router.add_api_route(f"/{noun}", empty, methods=["GET"], name=f"no {noun}")


async def _missing(visit: Asked) -> Response:
    where = f"{visit.request.method} {visit.request.url.path}"
    raise unimplemented(f"{where} is not offered yet")


for _noun in EMPTY_LISTS:
    _add_empty_list(_noun)
for _method, _path in MISSING:
    router.add_api_route(_path, _missing, methods=[_method], name="missing")
for _noun in MISSING_NOUNS:
    for _path in (f"/{_noun}", f"/{_noun}/{{rest:path}}"):
        for _method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            router.add_api_route(_path, _missing, methods=[_method], name="missing")
