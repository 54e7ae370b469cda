"""`det checkpoint`, and the downloads of `det trial` and `det experiment`."""

from __future__ import annotations

import json

import pytest

from determined.cli import download
from determined.storage import SharedFSStorageManager

UUID = "11111111-2222-3333-4444-555555555555"
OTHER = "99999999-2222-3333-4444-555555555555"


@pytest.fixture
def stored(master, tmp_path):
    """Two checkpoints of experiment 7 in a shared file system; the first has the lower loss."""
    storage = SharedFSStorageManager(tmp_path / "host")
    received = []
    for number, uuid in enumerate((UUID, OTHER)):
        source = tmp_path / uuid
        source.mkdir()
        (source / "weights").write_text(uuid)
        storage.upload(source, uuid)
        received.append(
            {
                "uuid": uuid,
                "state": "STATE_COMPLETED",
                "reportTime": "2026-01-02T03:04:05Z",
                "resources": {"weights": str(len(uuid))},
                "metadata": {"steps_completed": 8 + number},
                "training": {
                    "trialId": 3 + number,
                    "experimentId": 7,
                    "experimentConfig": {
                        "searcher": {"metric": "loss"},
                        "checkpoint_storage": {"type": "shared_fs", "host_path": str(tmp_path / "host")},
                    },
                    "validationMetrics": {"avgMetrics": {"loss": 0.1 + number, "acc": number}},
                },
            }
        )
        master.answer("GET", f"/api/v1/checkpoints/{uuid}", {"checkpoint": received[-1]})
    page = {"checkpoints": received, "pagination": {"total": 2}}
    master.answer("GET", "/api/v1/trials/3/checkpoints", page)
    master.answer("GET", "/api/v1/experiments/7/checkpoints", page)
    config = {"searcher": {"metric": "loss"}}
    master.answer("GET", "/api/v1/experiments/7", {"experiment": {"id": 7, "config": config}})
    return master


def test_download(stored, det, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = det("checkpoint", "download", UUID)
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[:3] == ["Local checkpoint path:", f"checkpoints/{UUID}", ""]
    assert UUID in done.out.splitlines()[5]
    assert (tmp_path / "checkpoints" / UUID / "weights").read_text() == UUID
    assert json.loads((tmp_path / "checkpoints" / UUID / "metadata.json").read_text()) == {
        "steps_completed": 8
    }


def test_download_quietly_elsewhere(stored, det, tmp_path):
    target = tmp_path / "there"
    for words in (("-o", target, "-q"), ("--output", target, "--qu")):
        assert det("c", "download", *words, UUID).out == f"{target}\n"
    assert (target / "weights").exists()


def test_download_through_a_master_that_refuses(stored, det, tmp_path):
    done = det("c", "download", UUID, "--mode", "master", "-o", tmp_path / "there")
    assert done.status == 1
    assert done.err.startswith("Failed to download a checkpoint: ")
    assert "Traceback" not in done.err
    assert det("c", "download", UUID, "--mode", "pigeon").status == 2


def test_download_of_a_deleted_one(stored, det):
    deleted = {"uuid": UUID, "state": "STATE_DELETED", "resources": {}}
    stored.answer("GET", f"/api/v1/checkpoints/{UUID}", {"checkpoint": deleted})
    done = det("c", "download", UUID)
    assert (done.status, "DELETED" in done.err) == (1, True)


def test_a_bar_on_terminals(stored, det_on_terminal, tmp_path):
    status, shown = det_on_terminal("c", "download", UUID, "-o", tmp_path / "there")
    assert status == 0
    assert str(tmp_path / "there")[:20] in shown.replace("\r\n", "")


def test_what_has_arrived(tmp_path):
    target = tmp_path / "target"
    assert download.arrived(target) == 0
    target.mkdir()
    (target / "a").write_bytes(b"x" * 10)
    (tmp_path / ".target.tmp").mkdir()
    (tmp_path / ".target.tmp" / "b").write_bytes(b"x" * 5)
    with open(target / "hole", "wb") as file:
        file.truncate(1 << 20)
    assert download.arrived(target) == 15


def test_trial_download(stored, det, tmp_path):
    assert det("t", "download", 3, "--best", "-q", "-o", tmp_path / "a").status == 0
    assert (tmp_path / "a" / "weights").read_text() == UUID
    assert det("t", "download", "--latest", 3, "-q", "-o", tmp_path / "b").status == 0
    assert (tmp_path / "b" / "weights").read_text() == OTHER
    assert det("t", "download", 4, "--uuid", OTHER, "-q", "-o", tmp_path / "c").status == 0
    assert (tmp_path / "c" / "weights").read_text() == OTHER
    words = ("--best", "--sort-by", "acc", "--smaller-is-better", "false", "-q", "-o", tmp_path / "d")
    assert det("t", "download", 3, *words).status == 0
    assert (tmp_path / "d" / "weights").read_text() == OTHER


def test_trial_download_needs_to_know_which(stored, det):
    assert det("t", "download", 3).status == 2
    assert det("t", "download", 3, "--best", "--latest").status == 2
    done = det("t", "download", 3, "--best", "--sort-by", "acc")
    assert (done.status, "together" in done.err) == (1, True)
    done = det("t", "download", 3, "--uuid", "nope")
    assert (done.status, "/checkpoints/nope not found" in done.err) == (1, True)


def test_trial_download_by_id_takes_the_checkpoint_of_any_trial(stored, det, tmp_path):
    assert det("t", "download", 4, "--uuid", UUID, "-q", "-o", tmp_path / "a").status == 0
    assert (tmp_path / "a" / "weights").read_text() == UUID


def test_experiment_download(stored, det, tmp_path):
    assert det("e", "download", 7, "-o", tmp_path / "a", "-q").out == f"{tmp_path / 'a' / UUID}\n"
    done = det("e", "download", 7, "-o", tmp_path / "b", "--top-n", 2, "-q")
    assert done.out.splitlines() == [str(tmp_path / "b" / uuid) for uuid in (UUID, OTHER)]
    words = ("--sort-by", "acc", "--smaller-is-better", "false")
    assert OTHER in det("e", "download", 7, "-o", tmp_path / "c", *words).out
    alone = det("e", "download", 7, "-o", tmp_path / "d", "-q", "--sort-by", "acc")
    assert alone.out == f"{tmp_path / 'd' / OTHER}\n", "the largest first, as in 0.25"
    assert det("e", "download", 7, "-o", tmp_path / "e", "-q", "--smaller-is-better", "true").status == 0
    assert det("e", "download", 7, *words[:3], "perhaps").status == 2


def test_experiment_without_checkpoints(stored, det):
    stored.answer("GET", "/api/v1/experiments/7/checkpoints", {"checkpoints": []})
    done = det("e", "download", 7)
    assert (done.status, "No checkpoint found for experiment 7" in done.err) == (1, True)


def test_delete_asks_first(master, det, monkeypatch):
    master.answer("DELETE", "/api/v1/checkpoints", {})
    monkeypatch.setattr("builtins.input", lambda: "n")
    done = det("c", "delete", "a,b")
    assert "Do you wish to proceed?" in done.err
    assert done.status == 0
    assert master.calls_to("DELETE", "/api/v1/checkpoints") == []
    monkeypatch.setattr("builtins.input", lambda: "y")
    assert det("c", "delete", "a,b").status == 0
    assert det("c", "delete", "c", "--yes").status == 0
    sent = [call.json["checkpointUuids"] for call in master.calls_to("DELETE", "/api/v1/checkpoints")]
    assert sent == [["a", "b"], ["c"]]
    assert det("c", "delete", ",").status == 2


def test_files_are_removed_by_globs(master, det):
    master.answer("POST", "/api/v1/checkpoints/rm", {})
    assert det("c", "rm", "a", "--glob", "*.log", "--glob", "tmp/**", "--yes").status == 0
    done = det("c", "rm", "a")
    assert (done.status, "refreshing resources of checkpoints a is in progress" in done.out) == (0, True)
    sent = [call.json for call in master.calls_to("POST", "/api/v1/checkpoints/rm")]
    assert sent == [
        {"checkpointUuids": ["a"], "checkpointGlobs": ["*.log", "tmp/**"]},
        {"checkpointUuids": ["a"], "checkpointGlobs": []},
    ]
