"""`det webhook`."""

import pytest

PATH = "/api/v1/webhooks"


def state_change(state, id=1):
    return {
        "id": id,
        "triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE",
        "condition": {"state": state},
        "webhookId": 3,
    }


HOOK = {
    "id": 3,
    "url": "https://hooks.example.com/a",
    "triggers": [state_change("COMPLETED"), state_change("ERROR", 2)],
    "webhookType": "WEBHOOK_TYPE_DEFAULT",
    "signingKey": "abc123",
    "username": "admin",
    "waiting": 2,
}
DELIVERY = {
    "id": "d-1",
    "eventType": "EXPERIMENT_STATE_CHANGE",
    "experimentId": 7,
    "experimentName": "digits",
    "experimentState": "ERROR",
    "time": "2026-11-01T10:00:00Z",
    "state": "WAITING",
    "nextAttempt": "2026-11-01T10:00:30Z",
    "attempts": [
        {"attempt": 1, "time": "2026-11-01T10:00:01Z", "status": 500, "problem": "x", "seconds": 0.1}
    ],
    "reason": "the receiver answered 500; it is tried again in 29 s",
}


@pytest.fixture
def hooks(master):
    master.answer("GET", PATH, {"webhooks": [HOOK]})
    master.answer("POST", PATH, {"webhook": HOOK})
    master.answer("POST", f"{PATH}/3/test", {"completed": True})
    master.answer("DELETE", f"{PATH}/3", {})
    test = DELIVERY | {"experimentId": None, "state": "DELIVERED", "nextAttempt": None}
    master.answer("GET", f"{PATH}/3/deliveries", {"deliveries": [DELIVERY, test]})
    return master


def test_webhooks_are_listed(hooks, det):
    shown = det("webhook", "list").out
    for cell in ("https://hooks.example.com/a", "default", "COMPLETED, ERROR", "admin"):
        assert cell in shown
    assert "abc123" not in shown
    assert '"signingKey": "abc123"' in det("webhook", "list", "--json").out


def test_a_webhook_is_made_for_ends_by_itself(hooks, det):
    shown = det("webhook", "create", "https://hooks.example.com/a").out
    (call,) = hooks.calls_to("POST", PATH)
    assert [trigger["condition"]["state"] for trigger in call.json["triggers"]] == ["COMPLETED", "ERROR"]
    assert call.json["webhookType"] == "WEBHOOK_TYPE_DEFAULT"
    assert "signingKey" not in call.json
    assert "Webhook 3 notifies https://hooks.example.com/a when an experiment is COMPLETED, ERROR." in shown
    assert "signed with the key abc123" in shown


def test_all_of_it_can_be_given(hooks, det):
    words = ("--type", "slack", "--state", "paused", "--state", "STATE_ACTIVE", "--signing-key", "k")
    assert det("webhook", "create", "https://h/a", *words).status == 0
    (call,) = hooks.calls_to("POST", PATH)
    assert [trigger["condition"]["state"] for trigger in call.json["triggers"]] == ["PAUSED", "ACTIVE"]
    assert (call.json["webhookType"], call.json["signingKey"]) == ("WEBHOOK_TYPE_SLACK", "k")
    assert "--state SLEEPING is not one of ACTIVE" in det("webhook", "create", "u", "--state", "sleeping").err


def test_a_test_and_an_end(hooks, det):
    assert "Webhook 3 has accepted the test." in det("webhook", "test", "3").out
    assert "Webhook 3 is deleted" in det("webhook", "delete", "3").out
    assert det("webhook", "test", "three").status == 2


def test_deliveries_say_what_became_of_them(hooks, det):
    shown = det("webhook", "deliveries", "3", "--limit", "5").out
    for cell in ("experiment 7 ERROR", "WAITING", "test", "DELIVERED", "tried again in 29 s"):
        assert cell in shown
    assert hooks.calls_to("GET", f"{PATH}/3/deliveries")[0].query == {"limit": ["5"]}
