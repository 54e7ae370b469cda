"""Commands about users."""

from __future__ import annotations

import msgspec

from det_contracts.commands import (
    KeepSettings,
    Password,
    RenewPassword,
    ResetPassword,
    SetFirstPassword,
    SetPassword,
    SetUser,
    ViewProject,
    given_fields,
)
from det_contracts.events.gateway import (
    AgentUser,
    PasswordRenewed,
    PasswordSet,
    ProjectViewed,
    SettingsSet,
    UserSet,
)
from det_contracts.problems import Problem, Refused, failed_precondition, invalid
from services.kit.names import check_name, identity_problem, latin_look, name_problem
from services.kit.rules import Call, Result
from services.people import users, workspace_records
from services.people.domain.accounts import ADMIN
from services.people.domain.state import People

MAX_NAME_CHARACTERS = 128
MAX_SETTINGS_CHARACTERS = 1 << 20
USER_FIELDS = ("username", "admin", "active", "remote", "display_name", "agent_user")


def set_user(state: People, command: SetUser, call: Call) -> Result:
    """Create a user, or change the given fields of one. Has no effect if nothing changes."""
    changes = given_fields(command, *USER_FIELDS)
    if command.user_id is None:
        id = users.next_id(state)
        before = UserSet(user_id=id, username="", reason=f"made by {command.user}")
    else:
        id = command.user_id
        before = users.user_set_event(users.by_id(state, id), f"changed by {command.user}")
    _check_display_name(id, before.display_name, command.display_name)
    check_agent_user(command.agent_user)
    wanted = _check_new_name(state, before, msgspec.structs.replace(before, **changes))
    require_an_administrator(state, before, wanted)
    events: list[UserSet | PasswordSet] = [wanted] if wanted != before else []
    if command.password is not None:
        events.append(_password_set(id, command.password, wanted.reason))
    return Result(events, id)


def require_an_administrator(state: People, before: UserSet, wanted: UserSet) -> None:
    """Refuse a change that leaves no active administrator, as nobody could appoint another."""
    if not (before.admin and before.active) or (wanted.admin and wanted.active):
        return
    if all(id == before.user_id for id in users.administrators(state)):
        raise failed_precondition(
            f"user '{before.username}' is the last active administrator: "
            "make another user an administrator first"
        )


def _check_display_name(id: int, before: str, wanted: str | msgspec.UnsetType) -> None:
    """Only the built-in administrator may have the display name `admin`."""
    if wanted is msgspec.UNSET or wanted == before or id == ADMIN:
        return
    if latin_look(wanted.strip()) == "admin":
        raise invalid(f"the display name '{wanted}' would be taken for the user 'admin': choose another one")
    if wanted and (problem := name_problem(wanted, MAX_NAME_CHARACTERS)):
        raise invalid(f"a display name cannot be {wanted[:MAX_NAME_CHARACTERS]!r}: {problem}")


def check_agent_user(wanted: AgentUser | msgspec.UnsetType | None) -> None:
    """Check that names and ids are given together, because tasks run as both."""
    if wanted is msgspec.UNSET or wanted is None:
        return
    if not wanted.user or not wanted.group:
        raise invalid("agentUserGroup needs agentUser and agentGroup, the names that belong to its ids")
    if wanted.uid < 0 or wanted.gid < 0:
        raise invalid("agentUserGroup: agentUid and agentGid must be 0 or more")


def _check_new_name(state: People, before: UserSet, wanted: UserSet) -> UserSet:
    if before.username and wanted.username == before.username:
        return wanted
    name = wanted.username
    check_name("a user", name, MAX_NAME_CHARACTERS, identity_problem)
    # A name in look-alike letters of another alphabet would pass for the user whose name it imitates.
    for taken in (name,) if name.isascii() else (name, latin_look(name)):
        owner = users.by_any_name(state, taken)
        if owner is not None and owner.id != wanted.user_id:
            raise Refused(Problem("already_exists", f"the name '{taken}' belongs to user {owner.id}, or did"))
    former = tuple(n for n in (*before.former, before.username) if n and n != name)
    return msgspec.structs.replace(wanted, former=former)


def set_password(state: People, command: SetPassword, call: Call) -> Result:
    """Change a user's password."""
    users.by_id(state, command.user_id)
    return Result([_password_set(command.user_id, command.password, f"set by {command.user}")])


def set_first_password(state: People, command: SetFirstPassword, call: Call) -> Result:
    """Set the password of a user who has none."""
    # Each gateway sends this at its start. Only the first may have an effect, or a restart would undo a
    # changed password.
    if users.by_id(state, command.user_id).password.hashed:
        return Result()
    return Result([_password_set(command.user_id, command.password, "first password, from the settings")])


def reset_password(state: People, command: ResetPassword, call: Call) -> Result:
    """Set a user's password, and change the account as far as is needed to sign in with it."""
    if not command.password.hashed:
        raise invalid(f"the new password of user '{command.username}' is empty: choose one")
    user = users.by_name(state, command.username)
    reason = f"reset on the cluster's host by {command.by}"
    before = users.user_set_event(user, reason)
    wanted = msgspec.structs.replace(before, active=True, remote=False, admin=before.admin or command.admin)
    changed = [wanted] if wanted != before else []
    return Result([*changed, _password_set(user.id, command.password, reason)], user.id)


def renew_password(state: People, command: RenewPassword, call: Call) -> Result:
    """Store a rehashed password if the user's password is still the one that was checked."""
    # Hashing takes a tenth of a second, in which the password may have been changed; that one must not be put
    # back.
    if users.by_id(state, command.user_id).password != command.before:
        return Result()
    reason = "rehashed at the current cost when it was used"
    return Result([PasswordRenewed(user_id=command.user_id, hashed=command.password.hashed, reason=reason)])


def _password_set(id: int, password: Password, reason: str) -> PasswordSet:
    return PasswordSet(user_id=id, salt=password.salt, hashed=password.hashed, reason=reason)


def keep_settings(state: People, command: KeepSettings, call: Call) -> Result:
    """Store settings of pages for a user. Has no effect if nothing changes."""
    stored_settings = state.settings.get(command.user_id)
    before = stored_settings.settings if stored_settings is not None else ()
    settings_by_key = (
        {} if command.forget else {(setting.storage_path, setting.key): setting for setting in before}
    )
    for setting in command.settings:
        if not setting.key:
            raise invalid("a setting needs a key")
        settings_by_key[setting.storage_path, setting.key] = setting
    settings = tuple(settings_by_key.values())
    if (
        sum(len(setting.storage_path) + len(setting.key) + len(setting.value) for setting in settings)
        > MAX_SETTINGS_CHARACTERS
    ):
        raise invalid(f"all settings of a user together may have {MAX_SETTINGS_CHARACTERS} characters")
    if settings == before:
        return Result()
    what = "forgotten" if command.forget else "kept"
    return Result([SettingsSet(command.user_id, settings, f"{what} for {command.user}")])


def view_project(state: People, command: ViewProject, call: Call) -> Result:
    """Remember that a user opened a project. Has no effect if it is the one that they opened last."""
    workspace_records.project(state, command.project_id)
    recent_projects = state.recent_projects.get(command.user_id)
    if recent_projects is not None and recent_projects.ids[:1] == (command.project_id,):
        return Result()
    return Result([ProjectViewed(command.user_id, command.project_id, f"opened by {command.user}")])
