"""Which projects a user opened last (`users/activity` of 0.25)."""

from __future__ import annotations

from typing import Literal

from starlette.responses import Response
from typing_extensions import TypedDict

from det_contracts.commands import ViewProject
from det_contracts.problems import invalid
from services.people import workspace_records
from services.people.domain.state import MAX_RECENT_PROJECTS
from services.rest_requests.api_call import Authenticated
from services.rest_requests.body import Body, Long
from services.rest_routes.present import records
from services.rest_routes.present import workspace as present
from services.rest_routes.present.answers import response_schema
from services.web.query import FromQuery, Integer, QueryModel
from services.web.routes import Routes

router = Routes()


class RecentProjects(TypedDict):
    """The projects that a user opened last, newest first."""

    projects: list[records.Project]


class ActivityBody(Body):
    """POST /users/activity"""

    activity_type: Literal["ACTIVITY_TYPE_UNSPECIFIED", "ACTIVITY_TYPE_GET"] = "ACTIVITY_TYPE_UNSPECIFIED"
    entity_type: Literal["ENTITY_TYPE_UNSPECIFIED", "ENTITY_TYPE_PROJECT"] = "ENTITY_TYPE_UNSPECIFIED"
    entity_id: Long = 0


class RecentQuery(QueryModel):
    """GET /user/projects/activity"""

    limit: Integer = 0
    """Maximum number of projects; 0 for all that are remembered."""


@router.post("/users/activity", ("own_account", "cluster"))
async def view(call: Authenticated, body: ActivityBody) -> Response:
    """Remember that the user opened a project."""
    if body.activity_type != "ACTIVITY_TYPE_GET" or body.entity_type != "ENTITY_TYPE_PROJECT":
        raise invalid("only activityType ACTIVITY_TYPE_GET of entityType ENTITY_TYPE_PROJECT is remembered")
    call.check_view("project", body.entity_id)
    command = ViewProject(user_id=call.user.id, project_id=body.entity_id, user=call.user.username)
    await call.peers.command(command)
    return call.answer({})


@router.get("/user/projects/activity", ("logged_in", "cluster"), **response_schema(RecentProjects))
async def recent(call: Authenticated, query: FromQuery[RecentQuery]) -> Response:
    """The projects that the user opened last, newest first. Deleted and hidden ones are left out."""
    if query.limit < 0:
        raise invalid(f"limit must be 0 or more, not {query.limit}")
    state, visibility = call.catalogue.state, call.visibility
    recent_projects = state.recent_projects.get(call.user.id)
    ids = recent_projects.ids if recent_projects else ()
    there = workspace_records.projects(state)
    visible = [there[id] for id in ids if id in there and visibility.includes_project(id)]
    shown = [present.project(project, state) for project in visible[: query.limit or MAX_RECENT_PROJECTS]]
    return call.answer({"projects": shown})
