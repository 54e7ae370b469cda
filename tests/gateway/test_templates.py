"""Templates: kept, changed, merged under what is submitted (configuration spec, section 3)."""

from __future__ import annotations

import pytest

from services.people.domain import Template
from tests.gateway import stories as story

NAME = "the lab's v1.2"
PATH = "/api/v1/templates/the%20lab%27s%20v1.2"
CONFIG = {"max_restarts": 2, "resources": {"slots_per_trial": 4, "priority": 9}}
TEXT = (
    "entrypoint: x\nsearcher: {name: single, metric: loss, max_length: 1}\nresources: {slots_per_trial: 1}\n"
)


@pytest.fixture
def kept(gateway):
    gateway.given(story.worker_here())
    made = gateway.send("POST", "/api/v1/templates", {"name": NAME, "config": CONFIG})
    assert made.status_code == 200, made.text
    return gateway


def test_a_template_is_kept_in_the_log(kept):
    found = kept.get(PATH)["template"]
    assert (found["name"], found["config"]["max_restarts"]) == (NAME, 2)
    assert [one["name"] for one in kept.get("/api/v1/templates")["templates"]] == [NAME]
    assert kept.catalogue.state.templates.values()
    assert all(isinstance(one, Template) for one in kept.catalogue.state.templates.values())


def test_it_is_merged_under_what_is_submitted(kept):
    body = {"config": TEXT, "template": NAME, "validateOnly": True}
    config = kept.send("POST", "/api/v1/experiments", body).json()["config"]
    assert config["max_restarts"] == 2
    assert (config["resources"]["slots_per_trial"], config["resources"]["priority"]) == (1, 9)


def test_it_changes_and_goes(kept):
    assert kept.send("PUT", PATH, {"config": {"max_restarts": 7}}).status_code == 200
    assert kept.get(PATH)["template"]["config"]["max_restarts"] == 7
    assert kept.send("PATCH", PATH, {"max_restarts": 8}).status_code == 200
    assert kept.get(PATH)["template"]["config"]["max_restarts"] == 8
    assert kept.send("DELETE", PATH).json() == {}
    kept.refused(404, "GET", PATH)


def test_what_makes_no_sense_is_refused(kept):
    again = kept.send("POST", "/api/v1/templates", {"name": NAME, "config": {}})
    assert (again.status_code, "exists already" in again.text) == (409, True)
    unknown = kept.send("PUT", PATH, {"config": {"colour": "red"}})
    assert (unknown.status_code, "colour" in unknown.text) == (400, True)
    assert kept.send("PATCH", "/api/v1/templates/none", {}).status_code == 404
    assert kept.send("DELETE", "/api/v1/templates/none").status_code == 404
    assert kept.send("POST", "/api/v1/templates", {"name": " ", "config": {}}).status_code == 400
    missing = kept.send("POST", "/api/v1/experiments", {"config": TEXT, "template": "none"})
    assert (missing.status_code, "template 'none' not found" in missing.text) == (400, True)


def test_the_name_may_stand_in_the_address_and_a_workspace_beside_it(gateway):
    gateway.post("/api/v1/workspaces", {"name": "lab"})
    made = gateway.post("/api/v1/templates/a%2Fb", {"config": CONFIG, "workspaceId": 2})["template"]
    assert (made["name"], made["workspaceId"]) == ("a/b", 2)
    gateway.send("PATCH", "/api/v1/templates/a%2Fb", {"config": {"max_restarts": 1}})
    assert gateway.get("/api/v1/templates")["templates"][0]["workspaceId"] == 2
    gateway.refused(409, "POST", "/api/v1/templates/a%2Fb", {"config": CONFIG})
    message = gateway.refused(404, "POST", "/api/v1/templates/c", {"config": {}, "workspaceId": 9})
    assert "workspace '9' not found" in message


@pytest.mark.parametrize(
    "given", [["A=1"], {"cpu": ["A=1"]}, {"A": "1"}, {"API_TOKEN": "hush", "B": 1}, ["API_TOKEN=hush"]]
)
def test_a_template_is_as_it_was_sent(kept, given):
    kept.send("PUT", "/api/v1/templates/t", {"config": {"environment": {"environment_variables": given}}})
    found = kept.get("/api/v1/templates/t")["template"]["config"]["environment"]["environment_variables"]
    assert str(found) == str(given).replace("hush", "********")
    assert all(b"hush" not in message.body for message in kept._stream())
    body = {"config": TEXT, "template": "t", "validateOnly": True}
    config = kept.send("POST", "/api/v1/experiments", body).json()["config"]
    assert config["environment"]["environment_variables"]["cpu"]
