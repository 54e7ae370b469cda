"""The reference of the REST API, from the document that the gateway serves."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from services.gateway.http.server import surface
from services.rest_routes.pages.openapi import document

METHODS = ("get", "post", "put", "patch", "delete")
API = "/api/v1/"
INTRODUCTION = """# REST API

Everything that `det`, the Python client and the web UI do goes through this API. `~` is `/api/v1`. A running
cluster serves the whole description, with the shapes of questions and answers, at `/docs` and as
`/api/v1/openapi.json`, from which clients can be generated.

```sh
login='{"username": "determined", "password": ""}'
token=$(curl -s -d "$login" localhost:8080/api/v1/auth/login | jq -r .token)
curl -s -H "Authorization: Bearer $token" localhost:8080/api/v1/experiments | jq .
```

Names in bodies and queries may be in lowerCamelCase or snake_case. Lists take `offset` and `limit`. What
cannot be done is answered by `{"error": {"code": 5, "reason": "NotFound", "error": "what happened"}}`.
Who may ask for what: [rights by route](../rights-table.md).
"""


def page() -> str:
    """The whole reference as Markdown."""
    lines = [INTRODUCTION]
    for noun, routes in sorted(_by_noun().items()):
        lines += [f"## {noun}\n", "| | path | does | asked by |", "|---|---|---|---|"]
        lines += [_row(method, path, operation) for path, method, operation in routes]
        lines.append("")
    return "\n".join(lines)


def _by_noun() -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    app = FastAPI()
    app.include_router(surface())
    routes: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, operations in document(app)["paths"].items():
        for method in METHODS:
            if method in operations and path.startswith(API):
                noun = path.removeprefix(API).split("/")[0]
                routes.setdefault(noun, []).append((path, method, operations[method]))
    return routes


def _row(method: str, path: str, operation: dict[str, Any]) -> str:
    does = operation["description"].split("\n\n")[0]
    parameters = [
        parameter["name"] for parameter in operation.get("parameters", []) if parameter["in"] == "query"
    ]
    cells = method.upper(), f"`~/{path.removeprefix(API)}`", " ".join(does.split()), ", ".join(parameters)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
