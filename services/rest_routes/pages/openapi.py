"""The OpenAPI document: what FastAPI generates, corrected and completed."""

from __future__ import annotations

import copy
import re
from typing import Any

from fastapi import FastAPI

from services.web.errors import API, API_ERRORS

_ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "integer", "enum": sorted(m.number for m in API_ERRORS.values())},
                "reason": {"type": "string", "enum": sorted(m.name for m in API_ERRORS.values())},
                "error": {"type": "string"},
            },
        }
    },
}
_METHODS = ("get", "post", "put", "patch", "delete")


def document(app: FastAPI) -> dict[str, Any]:
    """Build the whole document. Called once per application."""
    openapi_doc: dict[str, Any] = copy.deepcopy(app.openapi())
    openapi_doc["info"] = {
        "title": "Steadfast",
        "version": "1",
        "description": "Log in by POST /api/v1/auth/login and send the token as bearer.",
    }
    schemas = openapi_doc.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for schema in schemas.values():
        # FastAPI's titles only repeat the property names, less readably.
        for property in schema.get("properties", {}).values():
            property.pop("title", None)
    schemas["Error"] = _ERROR
    openapi_doc["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    openapi_doc["security"] = [{"bearer": []}]
    for path, operations in openapi_doc["paths"].items():
        for method in _METHODS:
            if method in operations:
                _complete_operation(path, method, operations[method])
    return openapi_doc


def _complete_operation(path: str, method: str, operation: dict[str, Any]) -> None:
    kind = method if path.startswith(API) else f"{method}_raw"
    operation["operationId"] = re.sub(r"\W+", "_", f"{kind}{path.removeprefix(API)}").strip("_")
    operation["tags"] = [path.removeprefix(API).split("/")[1] or "/"]
    responses = operation["responses"]
    responses.pop("422", None)
    schema = {"$ref": "#/components/schemas/Error"}
    responses["default"] = {"description": "An error", "content": {"application/json": {"schema": schema}}}
    for parameter in operation.get("parameters", []):
        schema = parameter["schema"]
        schema.pop("title", None)
        if not _is_default_useful(schema):
            schema.pop("default", None)


def _is_default_useful(schema: dict[str, Any]) -> bool:
    """Whether a default is worth documenting: not empty, and of the type that clients send."""
    default = schema.get("default")
    written = isinstance(default, bool) == (schema.get("type") == "boolean")
    return default not in (None, "") and written and default in schema.get("enum", [default])
