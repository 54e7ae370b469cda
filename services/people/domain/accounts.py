"""Folds events about users, sessions, tokens, templates, workspaces and projects."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from det_contracts.commands import Password
from det_contracts.envelope import Recorded
from det_contracts.events import gateway
from services.kit.rules import Key
from services.people.domain.indexed_records import (
    close_unknown_session,
    drop_project,
    drop_token,
    drop_workspace,
    forget_closed_sessions,
    put_identity,
    put_project,
    put_session,
    put_template,
    put_token,
    put_user,
    put_workspace,
)
from services.people.domain.state import (
    MAX_RECENT_PROJECTS,
    Kept,
    KnownAs,
    OpenSession,
    People,
    RecentProjects,
    SessionFloor,
    Template,
    User,
)

replace = msgspec.structs.replace
ADMIN = 1
BUILT_IN = {
    ADMIN: User(id=ADMIN, username="admin", admin=True),
    2: User(id=2, username="determined"),
}
"""Users that exist from the start."""


def session_opened(state: People, recorded: Recorded) -> Iterable[Key]:
    """A user logged in."""
    event: gateway.SessionOpened = recorded.event
    opened = OpenSession(
        user_id=event.user_id,
        opened_at=event.opened_at,
        until=event.until,
        token_until=event.until,
        address=event.address,
        client=event.client,
    )
    yield from put_session(state, event.session_id, opened)
    yield from forget_closed_sessions(state, recorded.at)


def session_renewed(state: People, recorded: Recorded) -> Iterable[Key]:
    """A session was extended."""
    event: gateway.SessionRenewed = recorded.event
    session = state.open_sessions.get(event.session_id)
    if session is None:
        return ()
    return put_session(state, event.session_id, replace(session, until=event.until))


def sessions_forgotten(state: People, recorded: Recorded) -> Iterable[Key]:
    """Old sessions of a user were removed."""
    event: gateway.SessionsForgotten = recorded.event
    for id in event.session_ids:
        yield from put_session(state, id, None)
    before = state.session_floors.get(event.user_id, SessionFloor(0.0))
    state.session_floors[event.user_id] = SessionFloor(max(before.at, event.floor))
    yield "session_floors", event.user_id


def token_created(state: People, recorded: Recorded) -> Iterable[Key]:
    """A user created an API token."""
    return put_token(state, recorded.event)


def token_revoked(state: People, recorded: Recorded) -> Iterable[Key]:
    """An API token was revoked."""
    return drop_token(state, recorded.event.token_id)


def session_closed(state: People, recorded: Recorded) -> Iterable[Key]:
    """A user logged out, or a session was revoked."""
    event: gateway.SessionClosed = recorded.event
    session = state.open_sessions.get(event.session_id)
    if session is not None:
        yield from put_session(state, event.session_id, replace(session, closed_at=recorded.at))
        return
    yield from close_unknown_session(state, event.session_id, event.user, recorded.at)


def template_set(state: People, recorded: Recorded) -> Iterable[Key]:
    """A template was created or replaced."""
    event: gateway.TemplateSet = recorded.event
    return put_template(state, event.template_id, Template(event.name, event.config, event.workspace_id))


def template_removed(state: People, recorded: Recorded) -> Iterable[Key]:
    """A template was removed."""
    return put_template(state, recorded.event.template_id, None)


def user_set(state: People, recorded: Recorded) -> Iterable[Key]:
    """A user was created or changed."""
    event: gateway.UserSet = recorded.event
    user = state.users.get(event.user_id) or User(id=event.user_id, username=event.username)
    changed = replace(
        user,
        username=event.username,
        former=event.former,
        admin=event.admin,
        active=event.active,
        remote=event.remote,
        display_name=event.display_name,
        agent_user=event.agent_user,
        changed_at=recorded.at,
    )
    yield from put_user(state, changed)
    # Unlinked: whoever signs in next with that name must not find the account by the old identity.
    if not event.remote and event.user_id in state.identities:
        yield from put_identity(state, event.user_id, None)


def signed_in(state: People, recorded: Recorded) -> Iterable[Key]:
    """A user signed in through a provider, which links them with their identity there."""
    event: gateway.SignedIn = recorded.event
    return put_identity(state, event.user_id, KnownAs(event.issuer, event.subject, event.groups))


def password_set(state: People, recorded: Recorded) -> Iterable[Key]:
    """A user's password was changed."""
    event: gateway.PasswordSet = recorded.event
    user = state.users.get(event.user_id) or BUILT_IN.get(event.user_id)
    if user is None:
        return ()
    password = Password(event.salt, event.hashed)
    return put_user(state, replace(user, password=password, password_at=recorded.at))


def password_renewed(state: People, recorded: Recorded) -> Iterable[Key]:
    """A user's unchanged password was rehashed."""
    event: gateway.PasswordRenewed = recorded.event
    user = state.users.get(event.user_id)
    if user is None:
        return ()
    return put_user(state, replace(user, password=Password(hashed=event.hashed)))


def workspace_set(state: People, recorded: Recorded) -> Iterable[Key]:
    """A workspace was created or changed."""
    event: gateway.WorkspaceSet = recorded.event
    return put_workspace(state, event)


def workspace_removed(state: People, recorded: Recorded) -> Iterable[Key]:
    """A workspace was removed."""
    return drop_workspace(state, recorded.event.workspace_id)


def project_set(state: People, recorded: Recorded) -> Iterable[Key]:
    """A project was created or changed."""
    event: gateway.ProjectSet = recorded.event
    return put_project(state, event)


def project_removed(state: People, recorded: Recorded) -> Iterable[Key]:
    """A project was removed."""
    return drop_project(state, recorded.event.project_id)


def settings_set(state: People, recorded: Recorded) -> Iterable[Key]:
    """A user's stored settings of pages were changed."""
    event: gateway.SettingsSet = recorded.event
    state.settings[event.user_id] = Kept(event.settings)
    yield "settings", event.user_id


def project_viewed(state: People, recorded: Recorded) -> Iterable[Key]:
    """A user opened a project."""
    event: gateway.ProjectViewed = recorded.event
    recent_projects = state.recent_projects.get(event.user_id, RecentProjects(()))
    ids = (event.project_id, *(id for id in recent_projects.ids if id != event.project_id))
    state.recent_projects[event.user_id] = RecentProjects(ids[:MAX_RECENT_PROJECTS])
    yield "recent_projects", event.user_id


def event_skipped(state: People, recorded: Recorded) -> Iterable[Key]:
    """An owner is to skip an event."""
    event: gateway.EventSkipped = recorded.event
    state.skips[event.owner] = event
    return [("skips", event.owner)]
