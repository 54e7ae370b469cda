"""The first request of a gateway costs what every other one does."""

import fastapi.routing
from fastapi import FastAPI
from starlette.testclient import TestClient

from services.gateway.http import server


def test_routes_are_prepared_before_the_first_request(monkeypatch):
    made = []
    create = fastapi.routing.create_model_field
    monkeypatch.setattr(fastapi.routing, "create_model_field", lambda **of: made.append(of) or create(**of))
    surface = server.surface.__wrapped__()
    monkeypatch.setattr(server, "surface", lambda: surface)
    server.prepare()
    prepared = len(made)
    assert prepared > 0
    app = FastAPI(routes=surface.routes, openapi_url=None, docs_url=None, redoc_url=None)
    with TestClient(app) as client:
        assert client.get("/api/v1/nowhere").status_code == 404
    assert len(made) == prepared
