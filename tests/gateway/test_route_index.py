"""Requests reach the same routes through the index as through the whole list."""

import asyncio

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient

from services.gateway.http import server
from services.gateway.http.route_index import RouteIndex, first_word, routers_by_word

ROUTES = [
    (method, context.path)
    for context in iter_route_contexts(server.surface().routes)
    for method in sorted(context.methods or ())
]


def matched(routes, method, path):
    """The first route that takes a request whole, and what it reads from the path."""
    scope = {"type": "http", "method": method, "path": path, "root_path": "", "headers": []}
    for route in routes:
        match, child = route.matches(scope)
        if match.name == "FULL":
            return route, child
    return None


def test_every_route_is_found_by_its_first_word():
    routers = routers_by_word(server.surface().routes)
    assert len(ROUTES) > 290
    for method, path in ROUTES:
        example = path.replace("{", "").replace("}", "").replace(":path", "")
        whole = matched(server.surface().routes, method, example)
        assert whole is not None, (method, path)
        assert matched(routers[first_word(example)].routes, method, example) == whole, (method, path)


def test_few_routes_are_compared_with_a_request():
    routers = routers_by_word(server.surface().routes)
    assert max(len(router.routes) for router in routers.values()) < len(server.surface().routes) / 4


def answers(indexed):
    api, outside = APIRouter(), APIRouter()

    @api.get("/trials/{id}")
    async def trial(id: int) -> str:
        return f"trial {id}"

    @api.get("/{any}/all")
    async def everything(any: str) -> str:
        return f"all {any}"

    @api.post("/trials/{id}/kill")
    async def kill(id: int) -> str:
        return f"kill {id}"

    @outside.get("/trials/{id}")
    async def page(id: int) -> str:
        return f"page {id}"

    app = FastAPI(redirect_slashes=False)
    app.include_router(api, prefix="/api/v1")
    app.include_router(outside)
    if indexed:
        app.router.middleware_stack = RouteIndex(
            routers_by_word(app.router.routes), app.router.middleware_stack
        )
    client = TestClient(app)
    requests = [
        ("GET", "/api/v1/trials/3"),
        ("GET", "/api/v1/trials/x"),
        ("POST", "/api/v1/trials/3"),
        ("GET", "/api/v1/trials/3/kill"),
        ("POST", "/api/v1/trials/3/kill"),
        ("GET", "/api/v1/trials/all"),
        ("GET", "/api/v1/models/all"),
        ("GET", "/api/v1/models"),
        ("GET", "/api/v1//trials/3"),
        ("GET", "/api/v1/trials%2F3"),
        ("GET", "/api/v1/trials/3/"),
        ("GET", "/trials/3"),
        ("GET", "/"),
        ("GET", "/api/v1"),
        ("GET", "/nothing"),
    ]
    return [
        (path, (answer := client.request(method, path)).status_code, answer.text) for method, path in requests
    ]


def test_answers_are_those_of_the_whole_list():
    assert answers(indexed=True) == answers(indexed=False)


@pytest.mark.parametrize("path", ["", "/", "*"])
def test_a_path_without_a_word_is_passed_on(path):
    passed_on = []

    async def otherwise(scope, receive, send):
        passed_on.append(scope["path"])

    asyncio.run(RouteIndex({}, otherwise)({"type": "http", "path": path}, None, None))
    assert passed_on == [path]
