"""Whatever is streamed counts among the streams of its user: also files, tables and code to take away."""

from __future__ import annotations

import base64

import msgspec
import pytest

from det_contracts import queries
from services.rest_requests.bodies import ContextItem
from services.submission import archive
from tests.gateway import stories as story

UUID = "4a1f0c9e-3b6d-4a51-8c37-0f6f5c1d2e3b"
API = "/api/v1"
ANY_TIME = "timestamp_after=2020-01-01T00:00:00Z&timestamp_before=2030-01-01T00:00:00Z"
DOWNLOADS = {
    "table of runs": f"/resources/allocation/raw?{ANY_TIME}",
    "runs": f"{API}/resources/allocation/raw?{ANY_TIME}",
    "table of metrics": f"{API}/trials/1/metrics/export",
    "log as a file": f"{API}/trials/1/logs/download",
    "code": "/experiments/1/model_def",
    "code in JSON": f"{API}/experiments/1/model_def",
    "files of a checkpoint": f"/checkpoints/{UUID}",
}


@pytest.fixture
def full(gateway, tmp_path):
    """A trial with code, reports, lines and a checkpoint."""
    folder = tmp_path / "checkpoints" / UUID
    folder.mkdir(parents=True)
    (folder / "model.pt").write_bytes(b"weights")
    storage = {"type": "shared_fs", "host_path": str(tmp_path / "checkpoints")}
    items = [ContextItem(path="train.py", content=base64.b64encode(b"print()").decode())]
    with archive.pack(items) as (context, file):
        gateway.backend.blobs.put(context.digest, file)
    made = story.created(1, checkpoint_storage=storage)
    gateway.apply(msgspec.structs.replace(made, context=context), story.trial_created(1))
    gateway.apply(msgspec.structs.replace(story.stored(1, UUID, 10), resources={"model.pt": 7}))
    row = {"trial_id": 1, "run": 1, "group": "training", "at": 7.5, "archived": False, "id": 1}
    gateway.peers.values |= {
        queries.TrialSummaries: {},
        queries.Reports: {"rows": [{**row, "steps_completed": 1, "metrics": {}}], "more": False},
        queries.LogPage: {"lines": [], "more": False, "cursor": 0, "number": 0, "through": 0},
    }
    return gateway


@pytest.mark.parametrize("path", DOWNLOADS.values(), ids=DOWNLOADS)
def test_a_download_takes_a_place_and_gives_it_back(full, path):
    streams, downloads = full.backend.limits.streams, full.backend.limits.downloads.admission
    for _ in range(full.backend.settings.streams_each):
        full.run(streams.acquire("determined"))
    refused = full.send("GET", path)
    assert refused.status_code == 429, refused.text
    assert int(refused.headers["Retry-After"]) > 0
    streams.release("determined")
    for _ in range(3):
        assert full.send("GET", path).status_code == 200
    assert streams.active == full.backend.settings.streams_each - 1
    assert downloads.active == 0
