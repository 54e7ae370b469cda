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
    """Build the whole document."""
    openapi_doc: dict[str, Any] = copy.deepcopy(app.openapi())
    openapi_doc["info"] = {
        "title": "Steadfast",
        "version": "1",
        "description": "Log in by POST /api/v1/auth/login and send the token as bearer.",
    }
    schemas = openapi_doc.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Error"] = _ERROR
    openapi_doc["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    openapi_doc["security"] = [{"bearer": []}]
    for path, operations in openapi_doc["paths"].items():
        for method in _METHODS:
            if method in operations:
                _complete_operation(path, method, operations[method])
                _share_definitions(operations[method], schemas)
    for schema in schemas.values():
        # FastAPI's titles only repeat the property names, less readably.
        for described in schema.get("properties", {}).values():
            for kind in (described, *described.get("anyOf", ())):
                kind.pop("title", None)
    _restore_bounds(openapi_doc)
    return openapi_doc


def _share_definitions(operation: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Move what the schema of a body defines for itself to where the references look for it."""
    for media in operation.get("requestBody", {}).get("content", {}).values():
        for name, schema in media["schema"].pop("$defs", {}).items():
            schemas.setdefault(name, schema)


def _restore_bounds(part: Any) -> None:
    """Make the bounds of integers integers again: FastAPI has floats, in which 2**63 - 1 becomes 2**63."""
    if isinstance(part, list):
        for item in part:
            _restore_bounds(item)
    if not isinstance(part, dict):
        return
    for bound in ("minimum", "maximum", "exclusiveMaximum"):
        if part.get("type") == "integer" and isinstance(part.get(bound), float):
            part[bound] = min(int(part[bound]), 2**63 - 1)
    for item in part.values():
        _restore_bounds(item)


def _complete_operation(path: str, method: str, operation: dict[str, Any]) -> None:
    kind = method if path.startswith(API) else f"{method}_raw"
    operation["operationId"] = re.sub(r"\W+", "_", f"{kind}{path.removeprefix(API)}").strip("_")
    operation["tags"] = [path.removeprefix(API).split("/")[1] or "/"]
    responses = operation["responses"]
    responses.pop("422", None)
    schema = {"$ref": "#/components/schemas/Error"}
    content = {"application/json": {"schema": schema}}
    # Where a browser is sent to, a person reads what went wrong.
    page = {
        media: shown for media, shown in responses["200"].get("content", {}).items() if media == "text/html"
    }
    responses["default"] = {"description": "An error", "content": content | page}
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
