"""Which projects a user opened last (`users/activity` of 0.25)."""

import pytest

from det_contracts.events.gateway import ProjectViewed
from services.people.domain.state import MAX_RECENT_PROJECTS

VIEWED, RECENT = "/api/v1/users/activity", "/api/v1/user/projects/activity"


@pytest.fixture
def projects(gateway):
    gateway.log_in("admin")
    space = gateway.post("/api/v1/workspaces", {"name": "vision"})["workspace"]["id"]
    names = ("first", "second", "third")
    made = [gateway.post(f"/api/v1/workspaces/{space}/projects", {"name": name}) for name in names]
    gateway.log_in("determined")
    return [answer["project"]["id"] for answer in made]


def view(gateway, id):
    gateway.post(
        VIEWED, {"activityType": "ACTIVITY_TYPE_GET", "entityType": "ENTITY_TYPE_PROJECT", "entityId": id}
    )


def recent(gateway, **query):
    return [project["id"] for project in gateway.get(RECENT, **query)["projects"]]


def test_projects_opened_last_come_first(gateway, projects):
    first, second, third = projects
    assert recent(gateway) == []
    for id in (first, second, third, first):
        view(gateway, id)
    assert recent(gateway) == [first, third, second]
    assert recent(gateway, limit=2) == [first, third]
    shown = gateway.get(RECENT)["projects"][0]
    assert shown == gateway.get(f"/api/v1/projects/{first}")["project"]
    gateway.log_in("admin")
    assert recent(gateway) == [], "each user has a list of their own"


def test_opening_the_same_project_again_is_no_event(gateway, projects):
    for _ in range(3):
        view(gateway, projects[0])
    assert len(gateway.events_of(ProjectViewed)) == 1


def test_a_deleted_project_is_left_out(gateway, projects):
    first, second, _ = projects
    view(gateway, first)
    view(gateway, second)
    gateway.log_in("admin")
    gateway.send("DELETE", f"/api/v1/projects/{second}")
    gateway.log_in("determined")
    assert recent(gateway) == [first]


def test_only_the_newest_are_remembered(gateway):
    gateway.log_in("admin")
    space = gateway.post("/api/v1/workspaces", {"name": "many"})["workspace"]["id"]
    path = f"/api/v1/workspaces/{space}/projects"
    made = [
        gateway.post(path, {"name": f"p{number}"})["project"]["id"]
        for number in range(MAX_RECENT_PROJECTS + 1)
    ]
    for id in made:
        view(gateway, id)
    assert recent(gateway) == made[:0:-1]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {}),
        (400, {"activityType": "ACTIVITY_TYPE_GET", "entityType": "ENTITY_TYPE_MODEL", "entityId": 1}),
        (404, {"activityType": "ACTIVITY_TYPE_GET", "entityType": "ENTITY_TYPE_PROJECT", "entityId": 99}),
        (404, {"activityType": "ACTIVITY_TYPE_GET", "entityType": "ENTITY_TYPE_PROJECT"}),
    ],
)
def test_what_cannot_be_remembered_is_refused(gateway, status, body):
    gateway.refused(status, "POST", VIEWED, body)
    gateway.refused(400, "GET", f"{RECENT}?limit=-1")
    assert gateway.events_of(ProjectViewed) == []
