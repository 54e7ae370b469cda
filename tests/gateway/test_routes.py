"""Routes that are declared with their topic, and prepared once, where they are served."""

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request
from fastapi.testclient import TestClient

from services.rest_routes.routers import API_ROUTES, OTHER_ROUTES
from services.web.routes import Routes

VIEW, CHANGE = ("view", "trial"), ("control", "trial")


def answers_of(*requests):
    """Of two routes behind a dependency of all, one of them with another of its own."""
    passed, declared = [], Routes()

    def guard(row):
        async def check(request: Request):
            passed.append((row.permission, row.kind, row.reads))
            if "refuse" in request.query_params:
                raise HTTPException(403)

        return check

    @declared.get("/trials/{id}", VIEW, dependencies=[Depends(lambda: passed.append("own"))])
    async def trial(id: int) -> str:
        return f"trial {id}"

    @declared.api_route("/trials/{id}", CHANGE, methods=["POST", "PUT"], include_in_schema=False)
    async def change(id: int) -> str:
        return f"changed {id}"

    router = APIRouter()
    declared.add_to(router, "/api", guard)
    client = TestClient(FastAPI(routes=router.routes))
    answers = [client.request(method, path) for method, path in requests]
    return [(answer.status_code, answer.json()) for answer in answers if answer.text], passed


def test_declared_routes_are_served_below_their_prefix():
    served, passed = answers_of(("GET", "/api/trials/3"), ("POST", "/api/trials/4"), ("PUT", "/api/trials/5"))
    assert served == [(200, "trial 3"), (200, "changed 4"), (200, "changed 5")]
    assert passed == [(*VIEW, True), "own", *[(*CHANGE, False)] * 2]


def test_the_check_of_a_route_comes_before_its_dependencies():
    refused = (403, {"detail": "Forbidden"})
    requests = [("GET", "/api/trials/3?refuse=1"), ("POST", "/api/trials/3?refuse=1")]
    assert answers_of(*requests) == (
        [refused, refused],
        [(*VIEW, True), (*CHANGE, False)],
    )


def test_nothing_is_prepared_where_it_is_declared():
    assert all(type(part) is Routes for part in (*API_ROUTES, *OTHER_ROUTES))
    assert not issubclass(Routes, APIRouter)
