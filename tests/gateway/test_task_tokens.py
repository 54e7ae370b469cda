"""What runs in a task may ask in its owner's name, as long as it runs (core API spec, section 3)."""

from __future__ import annotations

import json

import msgspec
import nkeys
import pytest

from det_contracts.events import scheduler
from services.kit import base64url, task_tokens
from services.kit.settings import BadSettings
from tests.gateway import stories
from tests.gateway.harness import AUTHORITY, TASK_KEY


def token(key=TASK_KEY, allocation="1.r1.1"):
    return task_tokens.issue(key, allocation)


def signed_by_worker(user):
    """What a worker can make with the key that it has, for mints of credentials of scripts."""
    body = json.dumps({"allocation": "1.r1.1", "user": user}).encode()
    signature = nkeys.from_seed(bytearray(AUTHORITY.trial_signing_seed.encode())).sign(body)
    return f"task.{base64url.encode(body)}.{base64url.encode(signature)}"


@pytest.fixture
def busy(gateway):
    gateway.apply(stories.created(1), stories.trial_created(1), stories.run_requested(1), stories.assigned(1))
    return gateway


def show(gateway, text):
    gateway.client.headers["Authorization"] = f"Bearer {text}"


def test_a_task_acts_for_its_owner(busy):
    show(busy, token())
    assert busy.get("/api/v1/me")["user"]["username"] == "determined"
    assert busy.get("/api/v1/experiments/1")["experiment"]["id"] == 1
    assert busy.post("/api/v1/auth/logout") == {}
    busy.get("/api/v1/me")


def test_determineds_own_sdk_sends_it_in_another_header(busy):
    busy.client.headers.pop("Authorization", None)
    busy.client.headers["Grpc-Metadata-x-allocation-token"] = f"Bearer {token()}"
    assert busy.get("/api/v1/me")["user"]["username"] == "determined"


def test_a_tasks_token_ends_with_its_run(busy):
    show(busy, token())
    ended = scheduler.AllocationEnded(
        allocation_id="1.r1.1", kind="TRIAL", trial_id=1, run=1, outcome="succeeded", reason="exit code 0"
    )
    busy.apply(ended)
    assert "allocation 1.r1.1 is over" in busy.refused(401, "GET", "/api/v1/me")


@pytest.mark.parametrize(
    "text",
    [
        token(b"another key"),
        signed_by_worker("determined"),
        signed_by_worker("admin"),
        token()[:-3],
        token() + "AAAA",
        "task.e30.AAAA",
        "task.",
        "task.a.b.c",
        token(allocation="1.r9.1"),
    ],
)
def test_what_no_scheduler_signed_is_refused(busy, text):
    show(busy, text)
    busy.refused(401, "GET", "/api/v1/me")


def test_a_token_does_not_change_hands():
    body = token().split(".")[1]
    other = token(allocation="1.r2.1").split(".")
    with pytest.raises(task_tokens.BadTaskToken, match="not issued"):
        task_tokens.read(TASK_KEY, f"task.{body}.{other[2]}")


def test_whose_a_task_is_the_log_says_alone(gateway):
    """A worker that wants to be somebody has to have run something of theirs."""
    of_admin = msgspec.structs.replace(stories.created(1), user="admin")
    gateway.apply(of_admin, stories.trial_created(1), stories.run_requested(1), stories.assigned(1))
    show(gateway, token())
    assert gateway.get("/api/v1/me")["user"]["username"] == "admin"
    message = gateway.refused(403, "POST", "/api/v1/users", {"user": {"username": "mine", "admin": True}})
    assert "a script may not do this, regardless of its owner" in message


def test_a_task_of_a_user_who_may_not_act_may_not_either(busy):
    busy.log_in("admin")
    busy.send("PATCH", "/api/v1/users/2", {"active": False})
    show(busy, token())
    busy.refused(401, "GET", "/api/v1/me")


def test_keys_come_from_files(tmp_path):
    path = tmp_path / "key"
    assert task_tokens.key_from(None) is None
    with pytest.raises(BadSettings, match="STEADFAST_TASK_KEY"):
        task_tokens.key_from(path)
    path.write_text("\n")
    with pytest.raises(BadSettings, match="is empty"):
        task_tokens.key_from(path)
    path.write_text("secret\n")
    assert task_tokens.key_from(path) == b"secret"
