"""What receivers are sent, and how they check that it comes from the cluster."""

import hashlib
import hmac
import json

import msgspec
import pytest

from det_contracts.events.webhooks import DeliveryDue, ExperimentTold
from services.webhooks import messages

TOLD = ExperimentTold(
    id=41,
    state="COMPLETED",
    name="digits",
    duration_s=47.9,
    resource_pool="default",
    slots_per_trial=2,
    workspace="nlp",
    project="tagging",
)


def due(experiment=TOLD):
    return DeliveryDue(
        delivery_id="4cd26e62-60c6-4a8b-8d03-7629091a4ef5",
        webhook_id=1,
        occasion="EXPERIMENT_STATE_CHANGE" if experiment else "TEST",
        experiment=experiment,
        happened_at=1_665_689_991.7,
        reason="",
    )


def test_the_document_has_the_fields_that_receivers_of_0_25_know():
    assert json.loads(messages.body("DEFAULT", due(), "http://cluster")) == {
        "event_id": "4cd26e62-60c6-4a8b-8d03-7629091a4ef5",
        "event_type": "EXPERIMENT_STATE_CHANGE",
        "timestamp": 1665689991,
        "condition": {"state": "COMPLETED"},
        "event_data": {
            "experiment": {
                "id": 41,
                "state": "COMPLETED",
                "name": "digits",
                "slots_per_trial": 2,
                "duration": 47,
                "resource_pool": "default",
                "workspace": "nlp",
                "project": "tagging",
            }
        },
    }


def test_a_receiver_that_has_the_key_can_check_the_signature():
    body = messages.body("DEFAULT", due(), "")
    sent = messages.headers("DEFAULT", due(), body, "key", 1_665_690_000.9)
    assert sent["X-Determined-AI-Signature-Timestamp"] == "1665690000"
    expected = hmac.new(b"key", b"1665690000," + body, hashlib.sha256).hexdigest()
    assert sent["X-Determined-AI-Signature"] == expected
    assert sent["Steadfast-Delivery"] == due().delivery_id
    assert messages.headers("DEFAULT", due(), body, "other", 1_665_690_000.9) != sent


def test_every_attempt_says_the_same():
    for kind in ("DEFAULT", "SLACK"):
        assert messages.body(kind, due(), "http://c") == messages.body(kind, due(), "http://c")


def test_a_test_says_that_it_is_one():
    assert json.loads(messages.body("DEFAULT", due(None), ""))["event_type"] == "TEST"
    assert "test" in json.loads(messages.body("SLACK", due(None), ""))["text"]


def test_slack_is_sent_words_and_a_link():
    message = json.loads(messages.body("SLACK", due(), "https://cluster"))
    link = "<https://cluster/det/experiments/41|Experiment 41 (digits)> completed."
    assert message["text"] == link
    facts = [element["text"] for element in message["blocks"][1]["elements"]]
    assert facts[:2] == ["Workspace: nlp", "Project: tagging"]
    assert facts[2:] == ["Pool: default", "Slots per trial: 2", "After: 47 s"]
    assert "X-Determined-AI-Signature" not in messages.headers("SLACK", due(), b"", "key", 1.0)
    assert json.loads(messages.body("SLACK", due(), ""))["text"] == "Experiment 41 (digits) completed."


@pytest.mark.parametrize("name", ["<!channel>", "a|b>c", "R&D <https://evil|here>"])
def test_the_name_of_an_experiment_is_only_shown(name):
    evil = msgspec.structs.replace(TOLD, name=name)
    text = json.loads(messages.body("SLACK", due(evil), "https://cluster"))["text"]
    assert (text.count("<"), text.count(">"), text.count("|")) == (1, 1, 1)


def test_no_name_makes_a_message_that_slack_refuses_or_says_more_than_one_line():
    """Slack takes 3,000 characters in a section, and 2,000 in an element of a context."""
    name = "mine\nExperiment 5 (theirs) ended with an error.\r\u2028" + "&" * 2000
    evil = msgspec.structs.replace(TOLD, name=name, workspace=name, project=name, resource_pool=name)
    message = json.loads(messages.body("SLACK", due(evil), "https://cluster"))
    section, context = message["blocks"]
    texts = [section["text"]["text"], *(element["text"] for element in context["elements"])]
    assert all(len(text) < 2000 and len(text.splitlines()) == 1 for text in texts)
    assert texts[0].partition("|")[2].startswith("Experiment 41 (mine Experiment 5 (theirs)")
    assert texts[0].endswith("…)> completed.")


@pytest.mark.parametrize(("seconds", "shown"), [(5, "5 s"), (65, "1 min 5 s"), (7260, "2 h 1 min")])
def test_durations(seconds, shown):
    assert messages._duration(seconds) == shown
