"""Webhooks over REST: who makes them, what is kept of their secrets, what a test and a delivery look like."""

from __future__ import annotations

import pytest

from det_contracts.events import webhooks as events
from det_contracts.webhook_commands import TryWebhook
from services.kit.sealing import FOR_WEBHOOKS
from tests.gateway.harness import SEALER

HOOKS = "/api/v1/webhooks"
URL = "https://hooks.example.com/services/T0/secret-path"
COMPLETED = {"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": "COMPLETED"}}


@pytest.fixture
def admin(gateway):
    """An administrator, where tests of webhooks are tried at once."""
    gateway.log_in("admin")
    peers = gateway.peers
    ruled = peers._ruled

    async def and_tried(rules, command):
        answer = await ruled(rules, command)
        if isinstance(command, TryWebhook):
            await peers.append(tried(answer.value, peers.trouble))
        return answer

    peers._ruled = and_tried
    return gateway


def due(id):
    return events.DeliveryDue(
        delivery_id=id, webhook_id=1, occasion="TEST", happened_at=1_700_000_000.0, reason="tested by admin"
    )


def tried(id, problem=""):
    status, reason = (500 if problem else 204), problem or "the receiver answered 204"
    return events.DeliveryTried(
        delivery_id=id, webhook_id=1, attempt=1, status=status, problem=problem, took_s=0.25, reason=reason
    )


def make(gateway, **more):
    body = {"url": URL, "triggers": [COMPLETED], "webhookType": "WEBHOOK_TYPE_DEFAULT"} | more
    return gateway.post(HOOKS, body)["webhook"]


def test_an_administrator_makes_lists_and_removes_webhooks(admin):
    made = make(admin)
    assert made["url"] == URL
    assert len(made["signingKey"]) == 64
    assert made | {"signingKey": ""} == {
        "id": 1,
        "url": URL,
        "triggers": [COMPLETED | {"id": 1, "webhookId": 1}],
        "webhookType": "WEBHOOK_TYPE_DEFAULT",
        "signingKey": "",
        "username": "admin",
        "waiting": 0,
    }
    other = make(admin, webhookType="WEBHOOK_TYPE_SLACK", signingKey="mine")
    assert (other["id"], other["signingKey"], other["triggers"][0]["id"]) == (2, "mine", 2)
    assert admin.get(HOOKS) == {"webhooks": [made, other]}
    assert admin.get(f"{HOOKS}/2")["webhook"] == other
    assert admin.send("DELETE", f"{HOOKS}/1").status_code == 200
    assert [hook["id"] for hook in admin.get(HOOKS)["webhooks"]] == [2]
    assert "webhook '1' not found" in admin.refused(404, "GET", f"{HOOKS}/1")
    assert "webhook '1' not found" in admin.refused(404, "DELETE", f"{HOOKS}/1")


def test_no_event_holds_the_address_or_the_key(admin):
    make(admin, signingKey="a key of mine")
    (webhook_set,) = admin.events_of(events.WebhookSet)
    assert webhook_set.host == "hooks.example.com"
    log = b"".join(message.body for message in admin._stream())
    assert b"secret-path" not in log
    assert b"a key of mine" not in log
    assert SEALER.open(FOR_WEBHOOKS, webhook_set.url) == URL


def test_a_request_that_comes_again_makes_one_webhook(admin):
    body = {"url": URL, "triggers": [COMPLETED]}
    headers = {"Idempotency-Key": "k-1"}
    first = admin.post(HOOKS, body, headers=headers)
    assert admin.post(HOOKS, body, headers=headers) == first
    assert len(admin.get(HOOKS)["webhooks"]) == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"url": "ftp://host/x"}, "begins with http:// or https://"),
        ({"url": "https://"}, "begins with http:// or https://"),
        ({"url": "https://host:port/"}, "url: this is not a valid address"),
        ({"url": "https://user:word@host/"}, "no user and no password"),
        ({"url": "https://host/a b"}, "without spaces"),
        ({"url": "https://host/" + "x" * 2048}, "at most 2,048"),
        ({"url": SEALER.seal(FOR_WEBHOOKS, URL)}, "begins with http:// or https://"),
        ({"signingKey": SEALER.seal(FOR_WEBHOOKS, "k")}, "sealed values from the log are not accepted"),
        ({"signingKey": "x" * 257}, "at most 256"),
        ({"webhookType": "WEBHOOK_TYPE_PIGEON"}, "WEBHOOK_TYPE_DEFAULT, WEBHOOK_TYPE_SLACK"),
        ({"triggers": []}, "at least one trigger"),
        ({"triggers": [COMPLETED | {"condition": {"state": "STOPPING_COMPLETED"}}]}, "must be one of ACTIVE"),
        (
            {"triggers": [{"triggerType": "TRIGGER_TYPE_METRIC_THRESHOLD_EXCEEDED"}]},
            "TRIGGER_TYPE_METRIC_THRESHOLD_EXCEEDED' is not offered",
        ),
    ],
)
def test_invalid_webhooks_are_refused_with_a_reason(admin, wrong, message):
    assert message in admin.refused(400, "POST", HOOKS, {"url": URL, "triggers": [COMPLETED]} | wrong)
    assert admin.events_of(events.WebhookSet) == []


def test_a_test_is_answered_when_it_has_arrived(admin):
    make(admin)
    admin.peers.trouble = ""
    assert admin.post(f"{HOOKS}/1/test") == {"completed": True}
    admin.peers.trouble = "the receiver answered 500"
    message = admin.refused(400, "POST", f"{HOOKS}/1/test")
    assert message == "the test did not arrive: the receiver answered 500"
    assert "webhook '7' not found" in admin.refused(404, "POST", f"{HOOKS}/7/test")


def test_deliveries_are_listed_newest_first(admin):
    make(admin)
    admin.apply(due("first"), tried("first"), due("second"), tried("second", "the receiver answered 500"))
    page = admin.get(f"{HOOKS}/1/deliveries", limit=1)
    assert page["pagination"]["total"] == 2
    (newest,) = page["deliveries"]
    assert newest["eventType"] == "TEST"
    assert [attempt["problem"] for attempt in newest["attempts"]] == ["the receiver answered 500"]
    (older,) = admin.get(f"{HOOKS}/1/deliveries", offset=1)["deliveries"]
    assert (older["state"], older["attempts"][0]["status"]) == ("DELIVERED", 204)
    assert "webhook '7' not found" in admin.refused(404, "GET", f"{HOOKS}/7/deliveries")
    assert "from the newest one on" in admin.refused(400, "GET", f"{HOOKS}/1/deliveries?offset=-1")


def test_webhooks_are_the_administrators(admin):
    make(admin)
    admin.log_in("determined")
    requests = [("GET", ""), ("POST", ""), ("GET", "/1"), ("DELETE", "/1"), ("POST", "/1/test")]
    for method, path in (*requests, ("GET", "/1/deliveries")):
        body = {"url": URL, "triggers": [COMPLETED]} if method == "POST" else None
        assert "not an administrator" in admin.refused(403, method, HOOKS + path, body)
