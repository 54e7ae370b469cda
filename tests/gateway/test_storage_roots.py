"""The registry of checkpoints is no file manager: what people name is read only below the storage roots."""

from __future__ import annotations

import io
import os
import tarfile

import msgspec
import pytest

from tests.gateway import stories as story
from tests.gateway.harness import Harness

UUID = "0b2f6f0e-6f0c-4a39-9a55-0d8ad7ad3a51"
KEY = "the key that signs all sessions"


@pytest.fixture
def home(tmp_path):
    """The home of a cluster: keys beside the checkpoints."""
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "token-key").write_text(KEY)
    (secrets / UUID).mkdir()
    (secrets / UUID / "authority.json").write_text(KEY)
    (tmp_path / "checkpoints" / UUID).mkdir(parents=True)
    (tmp_path / "checkpoints" / UUID / "model.pt").write_text("weights")
    return tmp_path


@pytest.fixture
def gateway(home):
    """The whole folder is a root, as a careless setting may have it; the keys stay the platform's."""
    harness = Harness(
        home,
        token_key=home / "secrets" / "token-key",
        storage_roots=str(home),
        private_paths=str(home / "secrets"),
    )
    harness.log_in()
    yield harness
    harness.close()


def registered(gateway, storage, uuid=UUID, name="model.pt"):
    """A checkpoint as a stranger's script states it: nothing in it is true."""
    gateway.apply(story.created(1, checkpoint_storage=storage), story.trial_created(1))
    gateway.apply(msgspec.structs.replace(story.stored(1, uuid, 10), resources={name: len(KEY)}))
    return gateway.send("GET", f"/checkpoints/{uuid}", headers={"Accept": "application/x-tar"})


def shared(path, **more):
    return {"type": "shared_fs", "host_path": str(path), **more}


LIES = {
    "a key beside the checkpoints": lambda home: (shared(home), "secrets", "token-key"),
    "a storage among the keys": lambda home: (shared(home / "secrets"), UUID, "authority.json"),
    "a storage path": lambda home: (shared(home, storage_path="secrets"), UUID, "authority.json"),
    "a path that climbs": lambda home: (
        shared(home / "checkpoints" / ".." / "secrets"),
        UUID,
        "authority.json",
    ),
    "a storage that is mounted": lambda home: (
        {"type": "directory", "container_path": str(home / "secrets")},
        UUID,
        "authority.json",
    ),
    "a name that climbs": lambda home: (shared(home / "checkpoints"), UUID, "../../secrets/token-key"),
    "a whole path": lambda home: (shared(home / "checkpoints"), UUID, str(home / "secrets" / "token-key")),
    "a null byte": lambda home: (shared(home / "checkpoints"), UUID, "model\0.pt"),
    "the whole disk": lambda home: (shared("/"), "etc", "hostname"),
    "a disk of others": lambda home: (shared("/etc"), UUID, "hostname"),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_a_registered_checkpoint_claims_is_not_read(gateway, home, lie):
    storage, uuid, name = LIES[lie](home)
    answer = registered(gateway, storage, uuid, name)
    assert answer.status_code == 404, answer.content[:200]
    assert KEY.encode() not in answer.content


@pytest.mark.parametrize("place", ["file", "folder", "storage"])
def test_links_lead_nowhere(gateway, home, place):
    secrets, checkpoints = home / "secrets", home / "checkpoints"
    if place == "file":
        (checkpoints / UUID / "model.pt").unlink()
        (checkpoints / UUID / "model.pt").symlink_to(secrets / "token-key")
    elif place == "folder":
        (checkpoints / UUID / "model.pt").unlink()
        (checkpoints / UUID).rmdir()
        (secrets / UUID / "model.pt").write_text(KEY)
        (checkpoints / UUID).symlink_to(secrets / UUID)
    else:
        (secrets / UUID / "model.pt").write_text(KEY)
        (home / "ours").symlink_to(secrets)
        checkpoints = home / "ours"
    answer = registered(gateway, shared(checkpoints))
    assert answer.status_code == 404, answer.content[:200]
    assert KEY.encode() not in answer.content


def test_a_link_within_a_checkpoint_is_read(gateway, home):
    (home / "checkpoints" / UUID / "best.pt").symlink_to("model.pt")
    answer = registered(gateway, shared(home / "checkpoints"), name="best.pt")
    assert answer.status_code == 200
    with tarfile.open(fileobj=io.BytesIO(answer.content[:1024]), mode="r:") as archive:
        assert archive.next().name == "best.pt"


def test_a_pipe_holds_no_thread(gateway, home):
    (home / "checkpoints" / UUID / "model.pt").unlink()
    os.mkfifo(home / "checkpoints" / UUID / "model.pt")
    answer = registered(gateway, shared(home / "checkpoints"))
    assert (answer.status_code, "is not a regular file" in answer.text) == (404, True)


def test_a_name_that_leads_out_is_put_into_no_archive(gateway, home):
    gateway.apply(story.created(1, checkpoint_storage=shared(home / "checkpoints")), story.trial_created(1))
    resources = {"../../evil/": 0, "model.pt": 7}
    gateway.apply(msgspec.structs.replace(story.stored(1, UUID, 10), resources=resources))
    assert gateway.send("GET", f"/checkpoints/{UUID}").status_code == 404
