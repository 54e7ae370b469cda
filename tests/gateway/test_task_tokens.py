"""What runs in a task may ask in its owner's name, as long as it runs (core API spec, section 3)."""

from __future__ import annotations

import pytest

from det_contracts.events import scheduler
from services.kit import task_tokens
from services.kit.credentials import Authority
from tests.gateway import stories
from tests.gateway.harness import AUTHORITY


def token(seed=AUTHORITY.trial_signing_seed, allocation="1.r1.1", user="determined"):
    return task_tokens.sign(seed, allocation, user)


@pytest.fixture
def busy(gateway):
    gateway.given(stories.created(1), stories.trial_created(1), stories.run_requested(1), stories.assigned(1))
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
    busy.given(ended)
    assert "allocation 1.r1.1 is over" in busy.refused(401, "GET", "/api/v1/me")


@pytest.mark.parametrize(
    "text",
    [
        token(Authority.create().trial_signing_seed),
        token()[:-3],
        token() + "AAAA",
        "task.e30.AAAA",
        "task.",
        "task.a.b.c",
        token(allocation="1.r9.1"),
        token(user="nobody"),
    ],
)
def test_what_no_worker_signed_is_refused(busy, text):
    show(busy, text)
    busy.refused(401, "GET", "/api/v1/me")


def test_a_token_does_not_change_hands():
    body = token().split(".")[1]
    other = token(allocation="1.r2.1").split(".")
    with pytest.raises(task_tokens.BadTaskToken, match="not issued"):
        task_tokens.read(AUTHORITY.trial_signer, f"task.{body}.{other[2]}")
