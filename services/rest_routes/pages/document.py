"""The OpenAPI document, and a page to read it (our addition)."""

from __future__ import annotations

import asyncio
import functools

from starlette.responses import HTMLResponse, Response

from services.rest_requests.api_call import Anybody
from services.rest_routes.pages.openapi import document
from services.rest_routes.pages.plain_pages import plain_page
from services.web.routes import Routes

router = Routes()
root = Routes()

_document = functools.lru_cache(maxsize=1)(document)


@router.get("/openapi.json", ("anybody", "cluster"))
async def openapi(call: Anybody) -> Response:
    """The OpenAPI document of this API."""
    # Anybody may ask for it, at any rate, and building it takes a third of a second.
    return call.answer(await asyncio.to_thread(_document, call.request.app))


@root.get("/docs", ("anybody", "cluster"), include_in_schema=False)
async def page(call: Anybody) -> Response:
    """A page to read and search the OpenAPI document."""
    return HTMLResponse(await asyncio.to_thread(plain_page, "api.html"))
