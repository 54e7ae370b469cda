"""The commands about people and places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from det_contracts.administration import BindPool, RebuildDatabase, RetryDecisions, SetLogging, SkipEvent
from det_contracts.commands import (
    AssignRoles,
    CloseSession,
    CreateToken,
    KeepSettings,
    MoveExperiment,
    OpenSession,
    RemoveGroup,
    RemoveProject,
    RemoveTemplate,
    RemoveWorkspace,
    RenewPassword,
    RenewSession,
    ResetPassword,
    RevokeToken,
    SetAuthz,
    SetFirstPassword,
    SetGroup,
    SetPassword,
    SetProject,
    SetQuota,
    SetTemplate,
    SetUser,
    SetWorkspace,
    SignIn,
    ViewProject,
)
from det_contracts.events.gateway import CreationKept
from services.kit.idempotency import idempotent
from services.kit.rules import Call, Result
from services.people.commands import (
    groups,
    identities,
    logs,
    parked,
    pools,
    quotas,
    rebuilding,
    roles,
    sessions,
    templates,
    users,
    workspaces,
)
from services.people.domain import People

COMMANDS: dict[Any, Callable[[People, Any, Call], Result]] = {
    OpenSession: sessions.open_session,
    SignIn: identities.sign_in,
    RenewSession: sessions.renew_session,
    CloseSession: sessions.close_session,
    CreateToken: sessions.create_token,
    RevokeToken: sessions.revoke_token,
    SetUser: idempotent(users.set_user, CreationKept),
    SetPassword: users.set_password,
    SetFirstPassword: users.set_first_password,
    RenewPassword: users.renew_password,
    ResetPassword: users.reset_password,
    KeepSettings: users.keep_settings,
    ViewProject: users.view_project,
    SetTemplate: idempotent(templates.set_template, CreationKept),
    RemoveTemplate: templates.remove_template,
    SetGroup: idempotent(groups.set_group, CreationKept),
    RemoveGroup: groups.remove_group,
    SetQuota: quotas.set_quota,
    BindPool: pools.bind_pool,
    RetryDecisions: parked.retry_decisions,
    SkipEvent: parked.skip_event,
    RebuildDatabase: rebuilding.rebuild_database,
    SetLogging: logs.set_logging,
    AssignRoles: roles.assign_roles,
    SetAuthz: roles.set_authz,
    SetWorkspace: idempotent(workspaces.set_workspace, CreationKept),
    RemoveWorkspace: workspaces.remove_workspace,
    SetProject: idempotent(workspaces.set_project, CreationKept),
    RemoveProject: workspaces.remove_project,
    MoveExperiment: workspaces.move_experiment,
}
