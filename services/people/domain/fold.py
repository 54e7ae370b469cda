"""Maps each event to the function that folds it into the state of people and places."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import gateway
from services.kit.idempotency import fold_result
from services.kit.rules import Key
from services.people.domain import accounts, groups
from services.people.domain.state import People

Fold = Callable[[People, Recorded], Iterable[Key]]
FOLDS: dict[type[msgspec.Struct], Fold] = {
    gateway.SessionOpened: accounts.session_opened,
    gateway.SessionRenewed: accounts.session_renewed,
    gateway.SessionsForgotten: accounts.sessions_forgotten,
    gateway.SessionClosed: accounts.session_closed,
    gateway.AccessToken: accounts.token_created,
    gateway.TokenRevoked: accounts.token_revoked,
    gateway.TemplateSet: accounts.template_set,
    gateway.TemplateRemoved: accounts.template_removed,
    gateway.UserSet: accounts.user_set,
    gateway.SignedIn: accounts.signed_in,
    gateway.PasswordSet: accounts.password_set,
    gateway.PasswordRenewed: accounts.password_renewed,
    gateway.SettingsSet: accounts.settings_set,
    gateway.ProjectViewed: accounts.project_viewed,
    gateway.GroupSet: groups.group_set,
    gateway.GroupRemoved: groups.group_removed,
    gateway.RolesSet: groups.roles_set,
    gateway.QuotaSet: groups.quota_set,
    gateway.PoolBound: groups.pool_bound,
    gateway.AuthzSet: groups.authz_set,
    gateway.WorkspaceSet: accounts.workspace_set,
    gateway.WorkspaceRemoved: accounts.workspace_removed,
    gateway.ProjectSet: accounts.project_set,
    gateway.ProjectRemoved: accounts.project_removed,
    gateway.CreationKept: fold_result,
    gateway.EventSkipped: accounts.event_skipped,
}
