"""Fields of a configuration, previews of searches, and search progress (REST spec, sections 3 and 8)."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from det_contracts import expconf, queries
from det_contracts.problems import invalid
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.body import Body, Long, request_schema
from services.submission import configuration
from services.web.routes import Routes


class SearchPreview(Body):
    """POST /preview-hp-search"""

    config: dict[str, Any]
    seed: Long | None = None


router = Routes()
root = Routes()


async def _preview_search(call: UserCall, config: Any, seed: int | None = None) -> tuple[dict[str, Any], Any]:
    """The completed configuration and the trials of its search. An entrypoint is not required."""
    if not isinstance(config, dict):
        raise invalid("a configuration is expected: a JSON object")
    text = msgspec.json.encode({"entrypoint": "none"} | config).decode()
    whole, _ = await configuration.complete(call.backend, call.user.username, text)
    if seed is not None:
        whole["reproducibility"]["experiment_seed"] = seed
    # A preview simulates a whole search, which takes seconds for thousands of trials.
    async with call.backend.limits.previews.hold(call.user.username):
        return whole, await call.peers.query(queries.PreviewSearch(whole))


@router.get("/experiment-config/fields", ("logged_in", "cluster"))
async def fields(call: Authenticated) -> Response:
    """Every field of a configuration with its type, default and allowed values, for editors."""
    return call.answer({"fields": [msgspec.to_builtins(field) for field in expconf.outline()]})


@router.post("/preview-hp-search", ("logged_in", "cluster"), reads=True, **request_schema(SearchPreview))
async def preview(call: Authenticated) -> Response:
    """The trials that a search would create, with the operations of each."""
    body = await call.json()
    fields = body if isinstance(body, dict) else {}
    seed = fields.get("seed")
    config, rows = await _preview_search(call, fields.get("config"), seed if isinstance(seed, int) else None)
    trials = [{"operations": _operations(row["lengths"]), "occurrences": row["trials"]} for row in rows]
    shown = {"config": config, "seed": config["reproducibility"]["experiment_seed"], "trials": trials}
    return call.answer({"simulation": shown})


@router.get("/experiments/{experiment_id}/rungs", ("view", "experiment"))
async def rungs(call: Authenticated, experiment_id: int) -> Response:
    """Which trials a halving search promoted and stopped, and at which value (our addition)."""
    call.catalogue.experiment(experiment_id)
    answer = await call.peers.query(queries.SearchRungs(experiment_id), position=call.catalogue.position)
    brackets = [[_rung(rung) for rung in bracket] for bracket in answer["brackets"]]
    return call.answer({"brackets": brackets})


def _rung(rung: dict[str, Any]) -> dict[str, Any]:
    entries = [
        {"trialId": trial, "metric": metric, "verdict": verdict} for trial, metric, verdict in rung["entries"]
    ]
    return {**rung, "entries": entries}


def _operations(lengths: list[int]) -> list[dict[str, Any]]:
    pairs = (
        ({"type": "RUNNABLE_TYPE_TRAIN", "length": length}, {"type": "RUNNABLE_TYPE_VALIDATE"})
        for length in lengths
    )
    return [operation for pair in pairs for operation in pair]


@root.post("/searcher/preview", ("logged_in", "cluster"), reads=True, **request_schema({"type": "object"}))
async def preview_in_short(call: Authenticated) -> Response:
    """The older form of the preview: `{"results": {"4 V 16 V": 1}}`, with a V for each validation."""
    _, rows = await _preview_search(call, await call.json())
    results = {" ".join(f"{length} V" for length in row["lengths"]): row["trials"] for row in rows}
    return call.answer({"results": results})
