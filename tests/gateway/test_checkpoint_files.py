"""Checkpoints are described, deleted in part or whole, and downloaded (REST spec, section 5)."""

from __future__ import annotations

import dataclasses
import io
import tarfile

import msgspec
import pytest

from det_contracts.events import checkpoints, scheduler
from services.kit import task_tokens
from tests.gateway import stories as story
from tests.gateway.harness import TASK_KEY

JSON = {"Accept": "application/json"}
UUID = "4a1f0c9e-3b6d-4a51-8c37-0f6f5c1d2e3b"


@pytest.fixture
def stored(gateway, tmp_path):
    folder = tmp_path / "checkpoints" / UUID
    (folder / "sub").mkdir(parents=True)
    (folder / "model.pt").write_bytes(b"weights" * 100_000)
    (folder / "sub" / "x.txt").write_text("x")
    storage = {"type": "shared_fs", "host_path": str(tmp_path / "checkpoints")}
    fact = story.stored(1, UUID, 10)
    resources = {"model.pt": 700_000, "sub/": 0, "sub/x.txt": 1}
    gateway.apply(story.created(1, checkpoint_storage=storage), story.trial_created(1))
    gateway.apply(msgspec.structs.replace(fact, resources=resources))
    return gateway


@pytest.mark.parametrize(
    ("accept", "mode", "kind"),
    [
        ("application/gzip", "r:gz", "application/gzip"),
        ("*/*", "r:gz", "application/gzip"),
        ("application/x-tar", "r:", "application/x-tar"),
    ],
)
def test_a_download_holds_every_file(stored, accept, mode, kind):
    answer = stored.send("GET", f"/checkpoints/{UUID}", headers={"Accept": accept})
    assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
    with tarfile.open(fileobj=io.BytesIO(answer.content), mode=mode) as archive:
        names = {member.name: member.size for member in archive}
        assert names == {"model.pt": 700_000, "sub": 0, "sub/x.txt": 1}
        assert archive.extractfile("model.pt").read() == b"weights" * 100_000


def test_unreadable_files_are_reported_before_the_response_begins(stored, tmp_path):
    (tmp_path / "checkpoints" / UUID / "model.pt").unlink()
    answer = stored.send("GET", f"/checkpoints/{UUID}")
    assert answer.status_code == 404
    assert "No such file" in answer.json()["message"]


def test_a_link_that_leads_out_is_not_followed(stored, tmp_path):
    path = tmp_path / "checkpoints" / UUID / "model.pt"
    (tmp_path / "secret").write_text("s")
    path.unlink()
    path.symlink_to(tmp_path / "secret")
    answer = stored.send("GET", f"/checkpoints/{UUID}")
    assert answer.status_code == 404
    assert "leads out of its checkpoint" in answer.json()["message"]


def test_event_files_of_all_experiments_are_no_checkpoint(stored):
    """They lie under the cluster's id, which may be a UUID, and a script names its checkpoints itself."""
    backend = stored.backend
    settings = dataclasses.replace(backend.settings, cluster_id=UUID)
    stored.app.state.backend = dataclasses.replace(backend, settings=settings)
    assert stored.send("GET", f"/checkpoints/{UUID}").status_code == 404


def test_downloads_need_a_user_and_a_checkpoint(stored):
    assert stored.send("GET", "/checkpoints/nope").status_code == 404
    stored.client.headers.pop("Authorization")
    assert stored.send("GET", f"/checkpoints/{UUID}").status_code == 401


def test_metadata_is_replaced(stored):
    body = {"checkpoint": {"uuid": UUID, "metadata": {"note": "good"}}}
    changed = stored.post(f"/api/v1/checkpoints/{UUID}/metadata", body)["checkpoint"]
    assert changed["metadata"] == {"note": "good"}
    assert stored.get(f"/api/v1/checkpoints/{UUID}")["checkpoint"]["metadata"] == {"note": "good"}
    for wrong, named in (({}, "checkpoint: "), ({"checkpoint": {"metadata": [1]}}, "checkpoint.metadata: ")):
        assert named in stored.refused(400, "POST", f"/api/v1/checkpoints/{UUID}/metadata", wrong)


def deletion_requests(gateway):
    return [message for message in gateway._stream() if b"deletion.requested" in message.body]


def test_deleting_is_a_task(stored):
    assert stored.send("DELETE", "/api/v1/checkpoints", {"checkpointUuids": [UUID]}).json() == {}
    assert stored.catalogue.checkpoint(UUID).going
    assert len(deletion_requests(stored)) == 1
    stored.send("DELETE", "/api/v1/checkpoints", {"checkpointUuids": [UUID]})
    assert len(deletion_requests(stored)) == 1
    stored.apply(story.deleted(UUID))
    assert stored.get(f"/api/v1/checkpoints/{UUID}")["checkpoint"]["state"] == "STATE_DELETED"
    assert stored.send("GET", f"/checkpoints/{UUID}").status_code == 404


@pytest.mark.parametrize(("body", "status"), [({}, 400), ({"checkpointUuids": ["nope"]}, 404)])
def test_what_is_not_there_is_not_deleted(stored, body, status):
    for method, path in (("DELETE", "/api/v1/checkpoints"), ("POST", "/api/v1/checkpoints/rm")):
        stored.refused(status, method, path, body)
    assert deletion_requests(stored) == []


def tell(gateway, allocation, resources, status=200):
    token = task_tokens.issue(TASK_KEY, allocation)
    body = {"checkpoints": [{"uuid": UUID, "resources": resources}]}
    headers = {"Authorization": f"Bearer {token}"}
    answer = gateway.send("PATCH", "/api/v1/checkpoints", body, headers=headers)
    assert answer.status_code == status, answer.text
    return answer


def test_files_are_deleted_and_the_task_reports_what_is_left(stored):
    stored.post("/api/v1/checkpoints/rm", {"checkpointUuids": [UUID], "checkpointGlobs": ["*.pt"]})
    stored.apply(
        scheduler.AllocationAssigned(
            allocation_id="1.gc-1.1",
            task_id="1.gc-1",
            kind="CHECKPOINT_GC",
            parts=(scheduler.Part("w-1", (), 0),),
            experiment_id=1,
            run=1,
            reason="",
        )
    )
    tell(stored, "1.gc-1.1", {"sub/": "0", "sub/x.txt": "1"})
    checkpoint = stored.get(f"/api/v1/checkpoints/{UUID}")["checkpoint"]
    assert checkpoint["state"] == "STATE_PARTIALLY_DELETED"
    assert checkpoint["resources"] == {"sub/": "0", "sub/x.txt": "1"}
    assert stored.get("/api/v1/experiments/1")["experiment"]["checkpointSize"] == "1"
    stored.apply(
        checkpoints.DeletionFinished(
            task_id="1.gc-1", experiment_id=1, uuids=(UUID,), deleted=True, reason="", globs=("*.pt",)
        )
    )
    record = stored.catalogue.checkpoint(UUID)
    assert (record.state, record.going) == ("PARTIALLY_DELETED", False)


def test_of_what_is_removed_file_by_file_the_list_stays(stored):
    files = stored.get(f"/api/v1/checkpoints/{UUID}")["checkpoint"]["resources"]
    stored.post("/api/v1/checkpoints/rm", {"checkpointUuids": [UUID], "checkpointGlobs": ["**/*"]})
    tell(stored, "1.gc-1.1", {})
    gone = checkpoints.DeletionFinished(
        task_id="1.gc-1", experiment_id=1, uuids=(UUID,), deleted=True, reason="", globs=("**/*",)
    )
    checkpoint = stored.apply(gone).get(f"/api/v1/checkpoints/{UUID}")["checkpoint"]
    assert (checkpoint["state"], checkpoint["resources"]) == ("STATE_DELETED", files)
    experiment = stored.get("/api/v1/experiments/1")["experiment"]
    assert (experiment["checkpointSize"], experiment["checkpointCount"]) == ("0", 0)


def test_people_do_not_tell_what_is_left(stored):
    body = {"checkpoints": [{"uuid": UUID, "resources": {}}]}
    assert "only a task" in stored.refused(403, "PATCH", "/api/v1/checkpoints", body)


@pytest.mark.parametrize("allocation", ["x", "", "1.r1", "2.other.1", "1.rid-1.99", "1.rid-1.-1", "9" * 500])
def test_the_run_that_a_script_names_is_believed_only_if_it_is_one_of_its_own(gateway, allocation):
    """Before, one such report made the page of the checkpoint fail, and named others' tasks as its own."""
    fact = story.stored(1, UUID, 10, run=2)
    gateway.apply(story.created(1), story.trial_created(1), *story.running(1), story.allocation_ended(1))
    gateway.apply(*story.running(1, run=2))
    gateway.apply(msgspec.structs.replace(fact, task_id="2.other", allocation_id=allocation))
    shown = gateway.send("GET", f"/api/v1/checkpoints/{UUID}", headers=JSON).json()["checkpoint"]
    assert (shown["taskId"], shown["allocationId"]) == (fact.task_id, fact.allocation_id)


def test_a_checkpoint_of_an_earlier_run_stays_with_it(gateway):
    gateway.apply(story.created(1), story.trial_created(1), *story.running(1), story.allocation_ended(1))
    gateway.apply(*story.running(1, run=2), story.stored(1, UUID, 10, run=1))
    shown = gateway.send("GET", f"/api/v1/checkpoints/{UUID}", headers=JSON).json()["checkpoint"]
    assert shown["allocationId"] == story.stored(1, UUID, 10, run=1).allocation_id
