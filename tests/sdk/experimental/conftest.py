"""A client connected to a fake gateway, and checkpoints as that tells them."""

from __future__ import annotations

import pytest

from determined.experimental import Determined
from determined.transport import log_stream


@pytest.fixture
def master(gateway, client_home, monkeypatch):
    """A fake gateway that the client finds by itself; the process has no connection yet."""
    monkeypatch.setenv("DET_MASTER", gateway.url)
    monkeypatch.setattr("determined.experimental._client_connection._determined", None)
    monkeypatch.setattr(log_stream, "_PAUSE_S", 0)
    return gateway


@pytest.fixture
def connection(master):
    return Determined()


CONFIG = {"searcher": {"name": "single", "metric": "loss", "smaller_is_better": True}}


@pytest.fixture
def checkpoint_record():
    """`checkpoint_record(uuid, trial=, loss=, ...)`: a checkpoint as the REST API writes it."""

    def tell(uuid, *, trial=1, steps=1, state="COMPLETED", config=CONFIG, resources=None, **metrics):
        return {
            "uuid": uuid,
            "taskId": f"{trial}.task",
            "allocationId": f"{trial}.task.1",
            "reportTime": "2026-01-02T03:04:05.5Z",
            "resources": {"weights": "3"} if resources is None else resources,
            "metadata": {"steps_completed": steps, "framework": "torch"},
            "state": f"STATE_{state}",
            "training": {
                "experimentConfig": config,
                "experimentId": 7,
                "trialId": trial,
                "hparams": {"lr": 0.1},
                "validationMetrics": {"avgMetrics": metrics, "batchMetrics": []},
            },
        }

    return tell


@pytest.fixture
def lists(master):
    """`lists(path, key, objects)`: the gateway pages through these, and `lists` tells the queries it got."""

    def answer(path, key, objects):
        def page(call):
            offset = int(call.query.get("offset", ["0"])[0])
            limit = int(call.query.get("limit", ["0"])[0]) or len(objects)
            chosen = objects
            if states := call.query.get("states"):
                chosen = [entry for entry in objects if entry["state"] in states]
            entries = chosen[offset : offset + min(limit, 2)]
            return {key: entries, "pagination": {"total": len(chosen)}}

        master.answer("GET", path, page)

    return answer
