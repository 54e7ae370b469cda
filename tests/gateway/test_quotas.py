"""Quotas over REST: who gives them, who sees them, what counts, what is refused."""

from __future__ import annotations

import pytest

from det_contracts.events import gateway as events
from det_contracts.events import scheduler, trial
from services.kit.authz.people import BUILT_IN
from tests.gateway import stories as story

QUOTAS = "/api/v1/quotas"


@pytest.fixture
def admin(gateway):
    gateway.log_in("admin")
    gateway.post("/api/v1/users", {"user": {"username": "ann", "active": True}})
    gateway.post("/api/v1/groups", {"name": "crew", "addUsers": [3]})
    gateway.post("/api/v1/workspaces", {"name": "nlp"})
    gateway.apply(story.worker_here(slots=4))
    return gateway


def give(gateway, holder, **limits):
    answer = gateway.send("PUT", f"{QUOTAS}/{holder}", limits)
    assert answer.status_code == 200, answer.text
    return answer.json()["quota"]


def test_an_administrator_gives_changes_and_takes_back_quotas(admin):
    quota = give(admin, "user-3", slots=4, storageBytes=10**12)
    none = {"slots": 0, "jobs": 0, "storageBytes": 0}
    assert quota == {
        "holder": "user-3",
        "kind": "user",
        "id": 3,
        "name": "ann",
        "slots": 4,
        "jobs": None,
        "storageBytes": 10**12,
        "used": none,
    }
    assert admin.get(QUOTAS)["quotas"] == [quota]
    assert give(admin, "user-3", jobs=2)["slots"] is None
    before = len(admin.events_of(events.QuotaSet))
    give(admin, "user-3", jobs=2)
    assert len(admin.events_of(events.QuotaSet)) == before, "what is so already is no event"
    assert admin.send("DELETE", f"{QUOTAS}/user-3").status_code == 200
    assert admin.get(QUOTAS)["quotas"] == []


@pytest.mark.parametrize(
    ("holder", "status", "message"),
    [
        ("user-99", 404, "user '99' not found"),
        ("group-9", 404, "group"),
        ("workspace-9", 404, "workspace"),
        ("team-1", 400, "cannot have a quota"),
        ("user-03", 400, "cannot have a quota"),
        ("user-", 400, "cannot have a quota"),
        ("user-٣", 400, "cannot have a quota"),
    ],
)
def test_a_quota_is_of_somebody(admin, holder, status, message):
    assert message in admin.refused(status, "PUT", f"{QUOTAS}/{holder}", {"slots": 1})


@pytest.mark.parametrize("limits", [{"slots": -1}, {"jobs": 2**60}, {"storageBytes": "much"}])
def test_a_limit_is_a_number_of_zero_or_more(admin, limits):
    admin.refused(400, "PUT", f"{QUOTAS}/user-3", limits)


def test_only_administrators_give_quotas_and_those_they_limit_see_them(admin):
    for holder in ("user-3", "user-2", "group-2", "workspace-2"):
        give(admin, holder, slots=4)
    admin.log_in("ann")
    assert [quota["holder"] for quota in admin.get(QUOTAS)["quotas"]] == ["group-2", "user-3", "workspace-2"]
    assert "administrator" in admin.refused(403, "PUT", f"{QUOTAS}/user-3", {"slots": 100})
    assert "administrator" in admin.refused(403, "DELETE", f"{QUOTAS}/user-3")
    admin.log_in("determined")
    assert [quota["holder"] for quota in admin.get(QUOTAS)["quotas"]] == ["user-2", "workspace-2"]


def test_a_quota_goes_with_its_group_or_workspace(admin):
    for holder in ("group-2", "workspace-2", "user-3"):
        give(admin, holder, slots=4)
    admin.send("DELETE", "/api/v1/groups/2")
    admin.send("DELETE", "/api/v1/workspaces/2")
    assert [quota["holder"] for quota in admin.get(QUOTAS)["quotas"]] == ["user-3"]


def test_it_stands_in_the_audit_trail_in_words(admin):
    give(admin, "workspace-2", slots=8, storageBytes=5 * 10**11)
    admin.settle()
    (entry,) = admin.get("/api/v1/master/audit", event="gateway.quota")["entries"]
    assert (entry["username"], entry["what"]) == (
        "admin",
        "workspace 2 may have 8 slots at once, 500 GB of checkpoints",
    )


def test_quota_usage_lists_what_counts(admin):
    give(admin, "user-3")
    give(admin, "user-3", slots=4, jobs=9, storageBytes=1000)
    admin.apply(story.created(1, user="ann"), story.trial_created(1), story.run_requested(1, slots=2))
    admin.apply(story.assigned(1))
    stored = trial.CheckpointStored(
        trial_id=1,
        experiment_id=1,
        run=1,
        task_id="1.r1",
        allocation_id="1.r1.1",
        uuid="c",
        resources={"a": 300, "b/": 0},
        metadata={},
        steps_completed=1,
    )
    admin.apply(stored)
    (quota,) = admin.get(QUOTAS)["quotas"]
    assert quota["used"] == {"slots": 2, "jobs": 1, "storageBytes": 300}


def test_one_command_too_many_is_refused_with_what_to_do(admin):
    give(admin, "user-3", jobs=1)
    admin.log_in("ann")
    task = {"config": {"entrypoint": ["true"]}}
    made = admin.post("/api/v1/commands", task)["command"]
    message = admin.refused(403, "POST", "/api/v1/commands", task)
    assert "user 'ann' has 1 of the 1 jobs" in message
    assert "wait until one of them ends" in message
    admin.apply(
        scheduler.AllocationEnded(
            allocation_id=f"{made['id']}.1", kind="COMMAND", run=1, outcome="killed", reason="over"
        )
    )
    admin.post("/api/v1/commands", task)


def test_quotas_of_built_in_users_have_their_names(admin):
    assert give(admin, "user-2", slots=1)["name"] == BUILT_IN["determined"].username
