"""Nothing new is taken while a disk has too little room; what is there is shown as ever."""

import asyncio
import base64
import threading
from dataclasses import replace

import pytest

from services.catalogue.peers import Peers
from services.kit.cancellation import cancel_and_wait
from services.kit.conditions import DISK_LOW, Conditions
from services.kit.disks import Disks
from services.rest_requests.settings import Settings, disks
from services.submission import submit
from services.web.limits import Lane
from tests.gateway import stories as story

YAML = """
name: first try
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: 100}
"""
CODE = {"path": "train.py", "type": 48, "content": base64.b64encode(b"print(1)").decode(), "mode": 420}
EXPERIMENT = {"config": YAML, "modelDefinition": [CODE], "activate": True}
NO_DISK_HAS_MIB = 1 << 40
"""An exbibyte."""


@pytest.fixture
def full(gateway, tmp_path):
    """A gateway whose disk has less free than is kept."""
    watched = Disks({"log": tmp_path}, NO_DISK_HAS_MIB)
    object.__setattr__(gateway.backend, "disks", watched)
    return gateway


@pytest.mark.parametrize(
    ("path", "body", "what"),
    [
        ("/api/v1/experiments", EXPERIMENT, "the experiment"),
        ("/api/v1/commands", {"config": {"entrypoint": "true"}, "files": [CODE]}, "the command"),
    ],
)
def test_what_is_new_is_refused_and_nothing_of_it_stored(full, tmp_path, path, body, what):
    message = full.refused(507, "POST", path, body)
    assert message.startswith(f"{what} is refused: the disk of the log has ")
    assert f"free at {tmp_path}" in message
    assert full.peers.commands == []
    assert not (tmp_path / "blobs").exists()


def test_a_configuration_may_still_be_checked(full):
    assert full.post("/api/v1/experiments", EXPERIMENT | {"validateOnly": True})["config"]


def test_what_is_there_is_shown_and_ended(full):
    full.apply(story.created(1))
    assert full.get("/api/v1/experiments/1")["experiment"]["id"] == 1
    full.post("/api/v1/experiments/1/kill")
    assert [type(command).__name__ for command in full.peers.commands] == ["ChangeExperiment"]


def test_a_small_submission_changes_threads_only_where_it_waits_for_a_disk(gateway, monkeypatch):
    """Each change costs more than the work of the others."""
    lanes, run = [], Lane.run

    async def record(self, who, work, *arguments):
        lanes.append(self.admission.what)
        return await run(self, who, work, *arguments)

    monkeypatch.setattr(Lane, "run", record)
    gateway.send("POST", "/api/v1/experiments", EXPERIMENT)
    assert lanes == ["checks of storage", "contexts"]
    # To list faults may take longer than the event loop can wait.
    assert "modelDefinition.0" in gateway.refused(
        400, "POST", "/api/v1/experiments", {"modelDefinition": [1]}
    )
    assert lanes[2:] == ["contexts"]


def test_storage_and_slots_are_checked_at_the_same_time(gateway, monkeypatch):
    scheduler_was_queried = threading.Event()

    async def misfit_reason(*_, **__):
        scheduler_was_queried.set()
        return ""

    monkeypatch.setattr(Peers, "misfit_reason", misfit_reason)
    monkeypatch.setattr(
        submit, "probe", lambda *_: scheduler_was_queried.wait(60) or pytest.fail("one by one")
    )
    gateway.send("POST", "/api/v1/experiments", EXPERIMENT)


def test_the_size_of_the_code_counts(gateway, tmp_path, monkeypatch):
    checks = []

    class Asked(Disks):
        def shortage(self, needed, also):
            checks.append((needed, also))
            return ""

    object.__setattr__(gateway.backend, "disks", Asked({}))
    gateway.send("POST", "/api/v1/experiments", EXPERIMENT)
    ((needed, also),) = checks
    assert needed == {"experiments' code": len(CODE["content"])}
    assert also == {"checkpoints": tmp_path / "checkpoints"}


def test_its_own_storage_is_looked_at_too(gateway, tmp_path):
    object.__setattr__(gateway.backend, "disks", Disks({}, NO_DISK_HAS_MIB))
    message = gateway.refused(507, "POST", "/api/v1/experiments", EXPERIMENT)
    assert "the disk of the checkpoints has " in message


def test_too_little_room_is_a_condition_until_there_is_more(tmp_path):
    async def work():
        conditions = Conditions("gateway")
        watched = Disks({"log": tmp_path}, NO_DISK_HAS_MIB)
        telling = asyncio.create_task(watched.report_shortage(conditions))
        async with asyncio.timeout(60):
            while not conditions.current():
                await asyncio.sleep(0.01)
        await cancel_and_wait(telling)
        (trouble,) = conditions.current()
        assert trouble.condition == DISK_LOW
        assert f"free at {tmp_path}" in trouble.message

    asyncio.run(work())


def test_the_disks_are_those_of_the_settings(tmp_path):
    settings = Settings(
        log_disk=tmp_path / "log",
        database_url=f"sqlite:///{tmp_path}/gateway.db",
        blobs=str(tmp_path / "blobs"),
        disk_reserve_mib=NO_DISK_HAS_MIB,
    )
    storage = {"type": "shared_fs", "host_path": str(tmp_path / "checkpoints")}
    elsewhere = replace(
        settings, log_disk=None, database_url="postgresql://h/d", blobs="s3://b/p", checkpoints_probe=False
    )
    watched = {"log", "database", "experiments' code", "checkpoints"}
    assert set(disks(settings, storage)._folders) == watched
    assert set(disks(elsewhere, storage)._folders) == set()
    assert set(disks(elsewhere, {"type": "s3", "bucket": "b"})._folders) == set()
