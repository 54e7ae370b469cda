"""The records of the REST API as an OpenAPI document of their own, of which the web UI's types are made.

python -m docs.site_builder.schemas > build/schemas.json   (see `make types`)
"""

from __future__ import annotations

import json
import sys
from typing import Any

from fastapi import FastAPI

from services.gateway.http.server import surface
from services.rest_routes.pages.openapi import document


def schemas() -> dict[str, Any]:
    """All records by name, without the routes: pages know those by their addresses."""
    app = FastAPI()
    app.include_router(surface())
    whole = document(app)
    records = dict(sorted(whole["components"]["schemas"].items()))
    return {
        "openapi": whole["openapi"],
        "info": whole["info"],
        "paths": {},
        "components": {"schemas": records},
    }


if __name__ == "__main__":
    json.dump(schemas(), sys.stdout, indent=1)
