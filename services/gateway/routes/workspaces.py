"""The one workspace and its one project, until there can be more (REST spec, section 7)."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from det_contracts.problems import not_found
from det_contracts.states import TERMINAL
from services.gateway import paging
from services.gateway.present import workspace
from services.gateway.web.visit import Asked, UserVisit

router = APIRouter()


def _workspace(visit: UserVisit, id: int = 1) -> dict[str, object]:
    if id != 1:
        raise not_found("workspace", id)
    return workspace.workspace(len(visit.catalogue.state.experiments))


def _project(visit: UserVisit, id: int = 1) -> dict[str, object]:
    if id != 1:
        raise not_found("project", id)
    known = visit.catalogue.state.experiments.values()
    return workspace.project(len(known), sum(one.state not in TERMINAL for one in known))


@router.get("/workspaces")
async def workspaces(visit: Asked) -> Response:
    """All workspaces."""
    page, pagination = paging.cut([_workspace(visit)], visit.params.window())
    return visit.answer({"workspaces": page, "pagination": pagination})


@router.get("/workspaces/{id}")
async def get_workspace(visit: Asked, id: int) -> Response:
    """One workspace."""
    return visit.answer({"workspace": _workspace(visit, id)})


@router.get("/workspaces/{id}/projects")
async def projects(visit: Asked, id: int) -> Response:
    """The projects of a workspace."""
    _workspace(visit, id)
    page, pagination = paging.cut([_project(visit)], visit.params.window())
    return visit.answer({"projects": page, "pagination": pagination})


@router.get("/projects/{id}")
async def get_project(visit: Asked, id: int) -> Response:
    """One project."""
    return visit.answer({"project": _project(visit, id)})
