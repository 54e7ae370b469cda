"""Users (REST spec, section 2)."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Annotated, Any

from starlette.responses import Response

from det_contracts.commands import KeepSettings, Password, SetPassword, SetUser
from det_contracts.events.gateway import Setting
from det_contracts.problems import invalid
from services.kit import paging, passwords
from services.people import users
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.bodies_of_people import SettingsBody, UserBody, UserCreation, agent_user
from services.rest_requests.body import request_schema
from services.rest_routes.present import records
from services.rest_routes.present.answers import page_schema, record_schema
from services.rest_routes.present.user import user
from services.web.query import FromQuery, Paged, enum_value
from services.web.routes import Routes

router = Routes()
SORTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "ID": itemgetter("id"),
    "DISPLAY_NAME": itemgetter("displayName"),
    "USER_NAME": itemgetter("username"),
    "ADMIN": itemgetter("admin"),
    "ACTIVE": itemgetter("active"),
    "MODIFIED_TIME": lambda shown_user: shown_user["modifiedAt"] or "",
    "NAME": lambda shown_user: shown_user["displayName"] or shown_user["username"],
}


class UsersQuery(Paged):
    """GET /users"""

    name: str = ""
    """A part of the user name or the display name."""
    sort_by: Annotated[str, enum_value("SORT_BY_", SORTS)] = "ID"


@router.get("/users", ("logged_in", "cluster"), **page_schema("users", records.User))
async def list_users(call: Authenticated, query: FromQuery[UsersQuery]) -> Response:
    """All users; if no order is given, by id."""
    part = query.name.lower()
    shown_users = [user(listed_user) for listed_user in users.all_users(call.catalogue.state)]
    shown_users = [
        shown_user
        for shown_user in shown_users
        if part in shown_user["username"].lower() or part in shown_user["displayName"].lower()
    ]
    shown_users.sort(key=lambda shown_user: (SORTS[query.sort_by](shown_user), shown_user["id"]))
    page, pagination = paging.cut(shown_users, query.window)
    return call.answer({"users": page, "pagination": pagination})


@router.post("/users", ("administer_users", "cluster"))
async def create(call: Authenticated, body: UserCreation) -> Response:
    """Create a user. For administrators."""
    new_user = body.user
    password = await _password(call, body.password, is_hashed=body.is_hashed)
    id = await call.create(
        SetUser(
            username=new_user.username or "",
            admin=bool(new_user.admin),
            active=new_user.active is not False,
            remote=bool(new_user.remote),
            display_name=new_user.display_name or "",
            agent_user=agent_user(new_user.agent_user_group),
            password=password,
            user=call.user.username,
        )
    )
    return _answer(call, id)


@router.get("/users/setting", ("logged_in", "cluster"))
async def settings(call: Authenticated) -> Response:
    """The user's stored settings of pages."""
    user_settings = call.catalogue.state.settings.get(call.user.id)
    return call.answer(
        {
            "settings": [
                {"storagePath": setting.storage_path, "key": setting.key, "value": setting.value}
                for setting in (user_settings.settings if user_settings is not None else ())
            ]
        }
    )


@router.post("/users/setting", ("own_account", "cluster"))
async def keep_settings(call: Authenticated, body: SettingsBody) -> Response:
    """Store settings of the user. Older ones with the same path and key are replaced."""
    body_settings = [*body.settings, *([body.setting] if body.setting is not None else [])]
    settings = tuple(Setting(setting.storage_path, setting.key, setting.value) for setting in body_settings)
    return await _store_settings(call, settings, forget=False)


@router.post("/users/setting/reset", ("own_account", "cluster"))
async def forget_settings(call: Authenticated) -> Response:
    """Delete all settings of the user."""
    return await _store_settings(call, (), forget=True)


async def _store_settings(call: UserCall, settings: tuple[Setting, ...], *, forget: bool) -> Response:
    command = KeepSettings(user_id=call.user.id, settings=settings, forget=forget, user=call.user.username)
    await call.peers.command(command)
    return call.answer({})


@router.get("/users/{username}/by-username", ("logged_in", "cluster"))
async def by_username(call: Authenticated, username: str) -> Response:
    """One user, by name."""
    return call.answer({"user": user(users.by_name(call.catalogue.state, username))})


@router.get("/users/{user_id}", ("logged_in", "cluster"), **record_schema("user", records.User))
async def by_id(call: Authenticated, user_id: int) -> Response:
    """One user, by id."""
    return _answer(call, user_id)


@router.patch("/users/{user_id}", ("own_account", "user"))
async def change(call: Authenticated, user_id: int, body: UserBody) -> Response:
    """Change the given fields of a user. For administrators, except one's own display name and password."""
    users.by_id(call.catalogue.state, user_id)
    fields: dict[str, Any] = {
        name: value
        for name in ("username", "admin", "active", "remote", "display_name")
        if (value := getattr(body, name)) is not None
    }
    if body.agent_user_group is not None:
        fields["agent_user"] = agent_user(body.agent_user_group)
    if body.password is not None:
        call.require_login()
        fields["password"] = await _password(call, body.password, is_hashed=body.is_hashed)
    await call.peers.command(SetUser(user_id=user_id, user=call.user.username, **fields))
    return _answer(call, user_id)


@router.post(
    "/users/{user_id}/password",
    ("own_account", "user"),
    **request_schema({"type": "string"}, required=False),
)
async def set_password(call: Authenticated, user_id: int) -> Response:
    """Set one's own password or, as an administrator, another user's. Existing sessions end.

    The body is the password as clients send it at login, as a JSON string.
    """
    # A stolen API token must not be enough to take over the account.
    call.require_login()
    users.by_id(call.catalogue.state, user_id)
    # Clients of 0.25 send an empty password as an empty body.
    text = await call.json() if await call.request.body() else ""
    if not isinstance(text, str):
        raise invalid("the request: a JSON string is expected, the new password")
    password = await _password(call, text, is_hashed=True)
    command = SetPassword(user_id=user_id, password=password, user=call.user.username)
    await call.peers.command(command)
    return _answer(call, user_id)


def _answer(call: UserCall, id: int) -> Response:
    return call.answer({"user": user(users.by_id(call.catalogue.state, id))})


async def _password(call: UserCall, text: str | None, *, is_hashed: bool) -> Password:
    sent = text or ""
    sent = sent if is_hashed else passwords.client_hash(sent)
    return await call.backend.limits.passwords.run(call.address, passwords.to_stored, sent)
