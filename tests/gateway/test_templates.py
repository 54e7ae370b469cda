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
def templates(gateway):
    gateway.apply(story.worker_here())
    made = gateway.send("POST", "/api/v1/templates", {"name": NAME, "config": CONFIG})
    assert made.status_code == 200, made.text
    return gateway


def test_a_template_is_kept_in_the_log(templates):
    template = templates.get(PATH)["template"]
    assert (template["name"], template["config"]["max_restarts"]) == (NAME, 2)
    assert [row["name"] for row in templates.get("/api/v1/templates")["templates"]] == [NAME]
    assert templates.catalogue.state.templates.values()
    assert all(isinstance(record, Template) for record in templates.catalogue.state.templates.values())


def test_a_workspace_that_holds_templates_is_not_removed(gateway):
    """They would belong to no workspace, and nobody could change them or use their names."""
    gateway.log_in("admin")
    id = gateway.post("/api/v1/workspaces", {"name": "Vision"})["workspace"]["id"]
    body = {"name": NAME, "config": CONFIG, "workspaceId": id}
    gateway.post("/api/v1/templates", body)
    message = gateway.refused(400, "DELETE", f"/api/v1/workspaces/{id}")
    assert f"workspace {id} holds templates, such as '{NAME}': move or delete them first" in message
    other = gateway.post("/api/v1/workspaces", {"name": "Speech"})["workspace"]["id"]
    assert gateway.send("PUT", PATH, {**body, "workspaceId": other}).status_code == 200
    assert gateway.send("DELETE", f"/api/v1/workspaces/{id}").status_code == 200
    assert gateway.send("DELETE", PATH).status_code == 200
    assert gateway.send("DELETE", f"/api/v1/workspaces/{other}").status_code == 200


def test_it_is_merged_under_what_is_submitted(templates):
    body = {"config": TEXT, "template": NAME, "validateOnly": True}
    config = templates.send("POST", "/api/v1/experiments", body).json()["config"]
    assert config["max_restarts"] == 2
    assert (config["resources"]["slots_per_trial"], config["resources"]["priority"]) == (1, 9)


def test_it_changes_and_goes(templates):
    assert templates.send("PUT", PATH, {"config": {"max_restarts": 7}}).status_code == 200
    assert templates.get(PATH)["template"]["config"]["max_restarts"] == 7
    assert templates.send("PATCH", PATH, {"max_restarts": 8}).status_code == 200
    assert templates.get(PATH)["template"]["config"]["max_restarts"] == 8
    assert templates.send("DELETE", PATH).json() == {}
    templates.refused(404, "GET", PATH)


def test_what_makes_no_sense_is_refused(templates):
    again = templates.send("POST", "/api/v1/templates", {"name": NAME, "config": {}})
    assert (again.status_code, "exists already" in again.text) == (409, True)
    unknown = templates.send("PUT", PATH, {"config": {"colour": "red"}})
    assert (unknown.status_code, "colour" in unknown.text) == (400, True)
    assert templates.send("PATCH", "/api/v1/templates/none", {}).status_code == 404
    assert templates.send("DELETE", "/api/v1/templates/none").status_code == 404
    assert templates.send("POST", "/api/v1/templates", {"name": " ", "config": {}}).status_code == 400
    missing = templates.send("POST", "/api/v1/experiments", {"config": TEXT, "template": "none"})
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
    "variables_sent",
    [["A=1"], {"cpu": ["A=1"]}, {"A": "1"}, {"API_TOKEN": "hush", "B": 1}, ["API_TOKEN=hush"]],
)
def test_a_template_is_as_it_was_sent(templates, variables_sent):
    templates.send(
        "PUT", "/api/v1/templates/t", {"config": {"environment": {"environment_variables": variables_sent}}}
    )
    variables = templates.get("/api/v1/templates/t")["template"]["config"]["environment"][
        "environment_variables"
    ]
    assert str(variables) == str(variables_sent).replace("hush", "********")
    assert all(b"hush" not in message.body for message in templates._stream())
    body = {"config": TEXT, "template": "t", "validateOnly": True}
    config = templates.send("POST", "/api/v1/experiments", body).json()["config"]
    assert config["environment"]["environment_variables"]["cpu"]
