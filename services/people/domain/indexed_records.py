"""The only functions that store or drop indexed records, so that the indexes stay consistent.

The folds of experiments and models maintain where those are filed (`experiments_in`, `project_of`,
`models_in`).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from det_contracts.events.gateway import AccessToken, ProjectSet, WorkspaceSet
from services.kit.idempotency import results_by_age
from services.kit.rules import Key
from services.kit.sorted_keys import Key as IndexKey
from services.kit.sorted_keys import SortedKeys
from services.people.domain.state import ClosedSession, Highest, KnownAs, OpenSession, People, Template, User
from services.people.tokens import MAX_SESSION_S

FORGOTTEN_AT_ONCE = 50
"""Maximum number of closed sessions to forget each time a session is opened or closed."""


def build_indexes(state: People) -> None:
    """Build all indexes of people from the records."""
    state.made_at = results_by_age(state.creations)
    state.closed_at = SortedKeys((session.at, id) for id, session in state.sessions.items())
    state.experiments_in, state.project_of, state.models_in = SortedKeys(()), {}, SortedKeys(())
    state.templates_in = SortedKeys((template.workspace_id, id) for id, template in state.templates.items())
    state.workspaces_of = SortedKeys((workspace.owner, id) for id, workspace in state.workspaces.items())
    state.projects_of = SortedKeys((project.owner, id) for id, project in state.projects.items())
    state.projects_in = SortedKeys((project.workspace_id, id) for id, project in state.projects.items())
    state.sessions_of = SortedKeys(_session_key(id, session) for id, session in state.open_sessions.items())
    state.tokens_of = SortedKeys((token.user_id, token.at, id) for id, token in state.tokens.items())
    state.token_digests = {token.digest: id for id, token in state.tokens.items()}
    state.subjects = {(identity.issuer, identity.subject): id for id, identity in state.identities.items()}
    state.administrators = SortedKeys(
        place for user in state.users.values() if (place := _admin_key(user)) is not None
    )
    state.user_names = {}
    for user in state.users.values():
        _name_user(state, user)
    state.group_names = {group.name.lower(): id for id, group in state.groups.items()}
    state.granted_in = SortedKeys(
        (id, holder) for holder, held in state.roles.items() for id in {g.workspace_id for g in held.grants}
    )
    state.workspace_names = {workspace.name.lower(): id for id, workspace in state.workspaces.items()}
    state.project_names = {(p.workspace_id, p.name.lower()): id for id, p in state.projects.items()}


def _session_key(id: str, session: OpenSession) -> IndexKey:
    return session.user_id, session.forgettable_from, id


def put_session(state: People, id: str, changed: OpenSession | None) -> Iterable[Key]:
    """Store a session, or forget it."""
    before = state.open_sessions.pop(id, None)
    if changed is not None:
        state.open_sessions[id] = changed
    state.sessions_of.swap(
        _session_key(id, before) if before is not None else None,
        _session_key(id, changed) if changed is not None else None,
    )
    yield "open_sessions", id


def close_unknown_session(state: People, id: str, user: str, at: float) -> Iterable[Key]:
    """Remember that an otherwise unknown session is closed, and forget those whose tokens have expired."""
    session = state.sessions.get(id)
    state.closed_at.swap((session.at, id) if session else None, (at, id))
    state.sessions[id] = ClosedSession(user, at)
    yield "sessions", id
    yield from forget_closed_sessions(state, at)


def forget_closed_sessions(state: People, now: float) -> Iterable[Key]:
    """Forget some old closed sessions. This long after login, every token has expired anyway."""
    for at, id in list(islice(state.closed_at.up_to(now - MAX_SESSION_S), FORGOTTEN_AT_ONCE)):
        state.closed_at.discard(at, id)
        del state.sessions[id]
        yield "sessions", id


def put_token(state: People, token: AccessToken) -> Iterable[Key]:
    """Store an API token."""
    state.tokens[token.token_id] = token
    state.tokens_of.add(token.user_id, token.at, token.token_id)
    state.token_digests[token.digest] = token.token_id
    yield "tokens", token.token_id


def drop_token(state: People, id: str) -> Iterable[Key]:
    """Forget an API token."""
    token = state.tokens.pop(id, None)
    if token is not None:
        state.tokens_of.discard(token.user_id, token.at, id)
        state.token_digests.pop(token.digest, None)
    yield "tokens", id


def put_template(state: People, id: str, changed: Template | None) -> Iterable[Key]:
    """Store a template, or forget it."""
    before = state.templates.pop(id, None)
    if changed is not None:
        state.templates[id] = changed
    state.templates_in.swap(
        (before.workspace_id, id) if before is not None else None,
        (changed.workspace_id, id) if changed is not None else None,
    )
    yield "templates", id


def put_user(state: People, changed: User) -> Iterable[Key]:
    """Store a user."""
    before = state.users.get(changed.id)
    state.administrators.swap(_admin_key(before) if before else None, _admin_key(changed))
    state.users[changed.id] = changed
    _name_user(state, changed)
    yield "users", changed.id
    yield from record_highest_id(state, "users", changed.id)


def _admin_key(user: User) -> IndexKey | None:
    return (user.id,) if user.admin and user.active else None


def put_identity(state: People, user_id: int, identity: KnownAs | None) -> Iterable[Key]:
    """Store a user's identity at a provider, or remove it."""
    before = state.identities.pop(user_id, None)
    if before is not None:
        del state.subjects[before.issuer, before.subject]
    if identity is not None:
        state.identities[user_id] = identity
        state.subjects[identity.issuer, identity.subject] = user_id
    yield "identities", user_id


def _name_user(state: People, user: User) -> None:
    for name in (user.username, *user.former):
        # The first who had a name keeps it for good: ownership is recorded by names (decision 32).
        state.user_names.setdefault(name, user.id)


def record_highest_id(state: People, kind: str, id: int) -> Iterable[Key]:
    """Update the highest id given out."""
    if id > state.highest.get(kind, Highest()).id:
        state.highest[kind] = Highest(id)
        yield "highest", kind


def put_workspace(state: People, changed: WorkspaceSet) -> Iterable[Key]:
    """Store a workspace."""
    # Its old name has to leave the index, too.
    yield from drop_workspace(state, changed.workspace_id)
    state.workspaces[changed.workspace_id] = changed
    state.workspaces_of.add(changed.owner, changed.workspace_id)
    state.workspace_names.setdefault(changed.name.lower(), changed.workspace_id)
    yield from record_highest_id(state, "workspaces", changed.workspace_id)


def drop_workspace(state: People, id: int) -> Iterable[Key]:
    """Forget a workspace."""
    workspace = state.workspaces.pop(id, None)
    if workspace is not None:
        state.workspaces_of.discard(workspace.owner, id)
        if state.workspace_names.get(workspace.name.lower()) == id:
            del state.workspace_names[workspace.name.lower()]
    yield "workspaces", id


def put_project(state: People, changed: ProjectSet) -> Iterable[Key]:
    """Store a project."""
    yield from drop_project(state, changed.project_id)
    state.projects[changed.project_id] = changed
    state.projects_in.add(changed.workspace_id, changed.project_id)
    state.projects_of.add(changed.owner, changed.project_id)
    state.project_names.setdefault((changed.workspace_id, changed.name.lower()), changed.project_id)
    yield from record_highest_id(state, "projects", changed.project_id)


def drop_project(state: People, id: int) -> Iterable[Key]:
    """Forget a project."""
    project = state.projects.pop(id, None)
    if project is not None:
        state.projects_in.discard(project.workspace_id, id)
        state.projects_of.discard(project.owner, id)
        name = project.workspace_id, project.name.lower()
        if state.project_names.get(name) == id:
            del state.project_names[name]
    yield "projects", id
