"""Who there is (REST spec, section 2)."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from services.gateway import paging, users
from services.gateway.present.user import user
from services.gateway.web.visit import Asked

router = APIRouter()


@router.get("/users")
async def list_users(visit: Asked) -> Response:
    """All users, by id."""
    found = sorted(users.USERS.values(), key=lambda one: one.id)
    page, pagination = paging.cut([user(one) for one in found], visit.params.window())
    return visit.answer({"users": page, "pagination": pagination})


@router.get("/users/setting")
async def settings(visit: Asked) -> Response:
    """What the web page remembers for a user: nothing yet."""
    return visit.answer({"settings": []})


@router.get("/users/{username}/by-username")
async def by_username(visit: Asked, username: str) -> Response:
    """One user."""
    return visit.answer({"user": user(users.by_name(username))})


@router.get("/users/{user_id}")
async def by_id(visit: Asked, user_id: int) -> Response:
    """One user."""
    return visit.answer({"user": user(users.by_id(user_id))})
