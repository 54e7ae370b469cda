"""The OpenAPI document: what the framework knows of routes, and what it does not.

Query parameters are read by hand (names in two spellings), so they are listed here; a test holds the list
against what routes really ask for.
"""

from __future__ import annotations

import copy
import re
from typing import Any

from fastapi import FastAPI

from services.gateway.web.errors import API, MEANINGS

PAGE = "offset limit order_by"
SORTED = f"{PAGE} sort_by"
STREAM = "period_seconds"
SAMPLE = "metric_name group start_batches end_batches max_datapoints max_trials period_seconds"
LOG = (
    "limit follow order_by allocation_ids agent_ids container_ids rank_ids levels stdtypes sources "
    "timestamp_before timestamp_after search_text regex after_id before_id from_number"
)
LOG_PAGE = f"{LOG.removeprefix('limit follow')} limit"
AUDIT = "users user_ids event about since until"
QUERY = {
    "/users": PAGE,
    "/groups": PAGE,
    "/tokens": "user_id username",
    "/master/audit": f"before limit {AUDIT}",
    "/master/audit/export": f"format {AUDIT}",
    "/master/logs": "offset limit follow",
    "/master/parked": "limit",
    "/experiments-search": f"{PAGE} columns filter lean project_id sort",
    "/events": "before limit owner",
    "/cluster/slots": "days",
    "/cluster/usage": "days",
    "/cluster/away": "days",
    "/experiment/labels": "project_id",
    "/experiments": f"{SORTED} name description labels archived states users user_ids project_id "
    "experiment_id_filter lean",
    "/trials/metrics/trial_metrics": "trial_ids group",
    "/trials/metrics/training_metrics": "trial_ids",
    "/trials/metrics/validation_metrics": "trial_ids",
    "/trials/time-series": "trial_ids metric_names metric_ids group start_batches end_batches max_datapoints",
    "/series": "trial_ids names group x from to width",
    "/trials/{trial_id}/metrics/export": "format group",
    "/experiments/metrics-stream/metric-names": f"ids {STREAM}",
    "/experiments/{experiment_id}/metrics-stream/batches": f"metric_name group {STREAM}",
    "/experiments/{experiment_id}/metrics-stream/trials-snapshot": (
        f"metric_name group batches_processed batches_margin {STREAM}"
    ),
    "/experiments/{experiment_id}/metrics-stream/trials-sample": SAMPLE,
    "/allocations/{allocation_id}/signals/preemption": "timeout_seconds",
    "/experiments/{experiment_id}/trials": f"{SORTED} states lean",
    "/trials/{trial_id}/workloads": f"{PAGE} filter group include_batch_metrics sort_key",
    "/experiments/{experiment_id}/checkpoints": f"{SORTED} states",
    "/trials/{trial_id}/checkpoints": f"{SORTED} states",
    "/models": f"{SORTED} name description labels archived id users user_ids workspace_id workspace_ids "
    "workspace_names",
    "/model/labels": PAGE,
    "/models/{name}/versions": PAGE,
    "/trials/{trial_id}/logs": LOG,
    "/tasks/{task_id}/logs": LOG,
    "/trials/{trial_id}/logs/page": f"{LOG_PAGE} whole mark",
    "/tasks/{task_id}/logs/page": f"{LOG_PAGE} whole mark",
    "/trials/{trial_id}/logs/download": LOG_PAGE,
    "/tasks/{task_id}/logs/download": LOG_PAGE,
    "/trials/{trial_id}/logs/fields": f"follow {STREAM}",
    "/tasks/{task_id}/logs/fields": f"follow {STREAM}",
    "/trials/{trial_id}/profiler/available_series": f"follow {STREAM}",
    "/trials/{trial_id}/profiler/metrics": "labels.name labels.metric_type",
    "/agents": SORTED,
    "/resource-pools": PAGE,
    "/job-queues": f"{PAGE} resource_pool states",
    "/job-queues-v2": f"{PAGE} resource_pool states",
    "/job-queues/stats": "resource_pools",
    "/templates": f"{PAGE} name",
    "/workspaces": f"{SORTED} name name_case_sensitive archived",
    "/workspaces/{id}/projects": f"{SORTED} name name_case_sensitive archived",
    "/commands": f"{PAGE} users user_ids workspace_id",
    "/notebooks": PAGE,
    "/shells": PAGE,
    "/tensorboards": f"{PAGE} users user_ids workspace_id",
    "/why/{kind}/{id}": "all before limit",
    "/live": "topics after",
}
"""What GET takes, by path below `/api/v1`, in snake_case; lowerCamelCase is understood too."""
RAW_QUERY = {
    "/experiments/{experiment_id}/preview_gc": "save_experiment_best save_trial_best save_trial_latest",
}
_INTEGERS = (
    "offset limit project_id period_seconds start_batches end_batches max_datapoints max_trials id "
    "batches_processed batches_margin after_id before_id from_number timeout_seconds workspace_id before "
    "width after "
    "save_experiment_best save_trial_best save_trial_latest"
)
_FLAGS = {"lean", "follow", "archived", "include_batch_metrics", "all", "whole"}
_INTEGER_LISTS = {"ids", "trial_ids", "user_ids", "rank_ids", "experiment_id_filter", "workspace_ids"}
_LISTS = (
    "labels states users names metric_names metric_ids allocation_ids agent_ids container_ids levels "
    "stdtypes sources resource_pools workspace_names topics"
)
_NUMBERS = {"from", "to"}
_TIMES = {"timestamp_before", "timestamp_after", "since", "until"}
_ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "integer", "enum": sorted(m.number for m in MEANINGS.values())},
                "reason": {"type": "string", "enum": sorted(m.name for m in MEANINGS.values())},
                "error": {"type": "string"},
            },
        }
    },
}
_METHODS = ("get", "post", "put", "patch", "delete")


def document(app: FastAPI) -> dict[str, Any]:
    """The whole document; made once for an application."""
    made: dict[str, Any] = copy.deepcopy(app.openapi())
    made["info"] = {
        "title": "Steadfast",
        "version": "1",
        "description": "Log in by POST /api/v1/auth/login and send the token as bearer.",
    }
    schemas = made.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for schema in schemas.values():
        # The framework's titles say a property's name again, less readably.
        for property in schema.get("properties", {}).values():
            property.pop("title", None)
    schemas["Error"] = _ERROR
    made["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    made["security"] = [{"bearer": []}]
    for path, operations in made["paths"].items():
        for method in _METHODS:
            if method in operations:
                _complete(path, method, operations[method])
    return made


def _complete(path: str, method: str, operation: dict[str, Any]) -> None:
    kind = method if path.startswith(API) else f"{method}_raw"
    operation["operationId"] = re.sub(r"\W+", "_", f"{kind}{path.removeprefix(API)}").strip("_")
    operation["tags"] = [path.removeprefix(API).split("/")[1] or "/"]
    responses = operation["responses"]
    responses.pop("422", None)
    schema = {"$ref": "#/components/schemas/Error"}
    responses["default"] = {"description": "An error", "content": {"application/json": {"schema": schema}}}
    table = QUERY if path.startswith(API) else RAW_QUERY
    names = table.get(path.removeprefix(API), "") if method == "get" else ""
    operation.setdefault("parameters", []).extend(_parameter(name) for name in names.split())


def _parameter(name: str) -> dict[str, Any]:
    first, *others = name.split("_")
    return {
        "name": first + "".join(word.capitalize() for word in others),
        "in": "query",
        "required": False,
        "schema": _schema(name),
    }


def _schema(name: str) -> dict[str, Any]:
    if name in _INTEGERS.split():
        return {"type": "integer"}
    if name in _FLAGS:
        return {"type": "boolean"}
    if name in _INTEGER_LISTS:
        return {"type": "array", "items": {"type": "integer"}}
    if name in _LISTS.split():
        return {"type": "array", "items": {"type": "string"}}
    if name in _NUMBERS:
        return {"type": "number"}
    if name in _TIMES:
        return {"type": "string", "format": "date-time"}
    return {"type": "string"}
