"""The part of the rights table about commands: what permission each needs, and on what.

Owners of facts enforce it. Each row describes one command. Where the answer depends on the command's fields,
it is a function of the command.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from det_contracts import commands
from services.kit.authz.access_check import AccessRequest, RightsLookup, require
from services.kit.authz.permissions import EVERYBODY, OF_ROLE
from services.kit.rules import Call, Result

S = TypeVar("S")
Rule = Callable[[S, Any, Call], Result]
Needs = Callable[[Any], Iterable[AccessRequest]]
UNSET = msgspec.UNSET
_POOLS = ("default_compute_pool", "default_aux_pool")
SHOWN = {"name", "description", "labels", "notes"}
"""Fields that only describe an experiment. Changing any other field changes what the experiment does."""


def _experiment(permission: Any) -> Needs:
    return lambda command: (AccessRequest(permission, "experiment", command.experiment_id),)


def _trial(permission: Any) -> Needs:
    return lambda command: (AccessRequest(permission, "trial", command.trial_id),)


def _run(command: Any) -> Iterable[AccessRequest]:
    return (AccessRequest("speak", "run", command.allocation_id),)


def _cluster(permission: Any) -> Needs:
    return lambda _: (AccessRequest(permission),)


def _account(command: Any) -> Iterable[AccessRequest]:
    return (AccessRequest("own_account", "user", command.user_id),)


def _change_experiment(command: commands.ChangeExperiment) -> Iterable[AccessRequest]:
    permission: Any = "delete" if command.action == "delete" else "control"
    return (AccessRequest(permission, "experiment", command.experiment_id),)


def _revise_experiment(command: commands.ReviseExperiment) -> Iterable[AccessRequest]:
    permission: Any = "edit" if command.changes.keys() <= SHOWN else "control"
    return (AccessRequest(permission, "experiment", command.experiment_id),)


def _set_user(command: commands.SetUser) -> Iterable[AccessRequest]:
    fields = commands.given_fields(command, "username", "admin", "active", "remote", "agent_user")
    if command.user_id is None or fields:
        return (AccessRequest("administer_users"),)
    return _account(command)


def _set_workspace(command: commands.SetWorkspace) -> Iterable[AccessRequest]:
    # Only administrators decide which host account tasks run as, here as for users.
    if commands.given_fields(command, "agent_user"):
        yield AccessRequest("administer_users")
    if command.workspace_id is None:
        yield AccessRequest("create_workspace")
        return
    changed = commands.given_fields(command, "name", "archived", "checkpoint_storage", *_POOLS)
    yield AccessRequest("control_workspace" if changed else "view", "workspace", command.workspace_id)


def _set_project(command: commands.SetProject) -> Iterable[AccessRequest]:
    space = command.workspace_id
    if command.project_id is not None:
        changed = commands.given_fields(command, "name", "archived", "workspace_id")
        yield AccessRequest("control_project" if changed else "edit_project", "project", command.project_id)
    if space is not UNSET:
        yield AccessRequest("create_project", "workspace", space)


def _move_experiment(command: commands.MoveExperiment) -> Iterable[AccessRequest]:
    yield AccessRequest("control", "experiment", command.experiment_id)
    yield AccessRequest("create", "project", command.project_id)


def _report_trial_source(command: commands.ReportTrialSource) -> Iterable[AccessRequest]:
    yield AccessRequest("speak", "trial", command.trial_id)
    yield AccessRequest("view", "checkpoint", command.uuid)
    if command.model_id is not None:
        yield AccessRequest("view", "model", command.model_id)


def _change_job(command: commands.ChangeJob) -> Iterable[AccessRequest]:
    # A negative number stands for a task.
    permission: Any = "control" if command.experiment_id > 0 else "control_task"
    return (AccessRequest(permission, "experiment", command.experiment_id),)


def _assign_roles(command: commands.AssignRoles) -> Iterable[AccessRequest]:
    """Nobody can grant more than they have: the granting user needs every permission of the role there."""
    for grant in sorted({assignment.grant for assignment in (*command.add, *command.remove)}):
        kind: Any = "workspace" if grant.workspace_id else "cluster"
        yield AccessRequest("assign_roles", kind, grant.workspace_id)
        for permission in sorted(OF_ROLE.get(grant.role, ())):  # type: ignore[call-overload]
            if permission not in EVERYBODY:
                yield AccessRequest(permission, kind, grant.workspace_id)


def _set_template(command: commands.SetTemplate) -> Iterable[AccessRequest]:
    yield AccessRequest("edit", "template", command.name)
    if command.workspace_id is not None:
        yield AccessRequest("edit", "workspace", command.workspace_id)


def _set_model(command: commands.SetModel) -> Iterable[AccessRequest]:
    if command.model_id is not None:
        changed = commands.given_fields(command, "archived", "workspace_id")
        yield AccessRequest("control" if changed else "edit", "model", command.model_id)
    # A move into a workspace needs what a creation there needs, or it would be a way around.
    if command.model_id is None or command.workspace_id is not UNSET:
        yield AccessRequest(
            "create", "workspace", 1 if command.workspace_id is UNSET else command.workspace_id
        )


def _set_version(command: commands.SetVersion) -> Iterable[AccessRequest]:
    yield AccessRequest("edit", "model", command.model_id)
    if command.number is None:
        yield AccessRequest("view", "checkpoint", command.checkpoint)


COMMANDS: dict[str, Needs] = {
    "CreateExperiment": lambda command: (AccessRequest("create", "project", command.project_id),),
    "ChangeExperiment": _change_experiment,
    "ReviseExperiment": _revise_experiment,
    "PostOperations": _experiment("control"),
    "CreateTrial": _experiment("speak"),
    "OpenRun": _trial("speak"),
    "EndTrial": _trial("speak"),
    "KillTrial": _trial("control"),
    "ChangeJob": _change_job,
    "SubmitTask": lambda command: (AccessRequest("create_task", "workspace", command.workspace_id),),
    "StopTask": lambda command: (AccessRequest("control_task", "task", command.task_id),),
    "StateIdle": lambda command: (AccessRequest("control_task", "task", command.task_id),),
    "MarkDaemon": _run,
    "AskToLeave": _run,
    "SwitchWorker": _cluster("administer_cluster"),
    "SwitchSlot": _cluster("administer_cluster"),
    "SetTemplate": _set_template,
    "RemoveTemplate": lambda command: (AccessRequest("edit", "template", command.name),),
    "SetModel": _set_model,
    "RemoveModel": lambda command: (AccessRequest("delete", "model", command.model_id),),
    "SetVersion": _set_version,
    "RemoveVersion": lambda command: (AccessRequest("delete", "model", command.model_id),),
    "DeleteCheckpoints": lambda command: [
        AccessRequest("delete", "checkpoint", uuid) for uuid in command.uuids
    ],
    "SetMetadata": lambda command: (AccessRequest("edit", "checkpoint", command.uuid),),
    "SetUser": _set_user,
    "SetPassword": _account,
    "KeepSettings": _account,
    "ViewProject": _account,
    "CreateToken": _account,
    "RevokeToken": lambda command: (AccessRequest("own_account", "token", command.token_id),),
    "CloseSession": lambda command: (AccessRequest("own_account", "session", command.session_id),),
    "SetGroup": _cluster("administer_users"),
    "RemoveGroup": _cluster("administer_users"),
    "SetQuota": _cluster("administer_cluster"),
    "BindPool": _cluster("administer_cluster"),
    "RetryDecisions": _cluster("administer_cluster"),
    "RebuildDatabase": _cluster("administer_cluster"),
    "SkipEvent": _cluster("administer_cluster"),
    "SetLogging": _cluster("administer_cluster"),
    "SetWebhook": _cluster("administer_cluster"),
    "RemoveWebhook": _cluster("administer_cluster"),
    "TryWebhook": _cluster("administer_cluster"),
    "AssignRoles": _assign_roles,
    "SetWorkspace": _set_workspace,
    "RemoveWorkspace": lambda command: (
        AccessRequest("control_workspace", "workspace", command.workspace_id),
    ),
    "SetProject": _set_project,
    "RemoveProject": lambda command: (AccessRequest("control_project", "project", command.project_id),),
    "MoveExperiment": _move_experiment,
    "ReportTrialSource": _report_trial_source,
    "Serve": _run,
    "JoinGather": _run,
    # Among services. The gateway has already checked the deletion task's token, passwords, and identity
    # provider signatures.
    "ListFiles": _cluster("service"),
    "OpenSession": _cluster("service"),
    "SignIn": _cluster("service"),
    "RenewSession": _cluster("service"),
    "SetFirstPassword": _cluster("service"),
    "SetAuthz": _cluster("service"),
    "RenewPassword": _cluster("service"),
    "ResetPassword": _cluster("service"),
    "ConfigurePools": _cluster("service"),
    "ReportWorkers": _cluster("service"),
    "ReportSilence": _cluster("service"),
    "GiveUp": _cluster("service"),
    "ReportScriptSilent": _cluster("service"),
    "ReportScriptHeard": _cluster("service"),
    "Settle": _cluster("service"),
    "StateAttempt": _cluster("service"),
    "Trim": _cluster("service"),
    "Drop": _cluster("service"),
    "Share": _cluster("service"),
    "Join": _cluster("service"),
}
"""Per command name."""


def add_access_checks(
    rules: Mapping[Any, Rule[S]], lookup_of: Callable[[S], RightsLookup]
) -> dict[Any, Rule[S]]:
    """Wrap an owner's commands so that each is decided only if the caller is allowed to ask for it.

    `lookup_of` returns what the judge looks up in the owner's state. Raises `LookupError` for a command
    without a row.
    """
    return {command: _add_access_check(command, rule, lookup_of) for command, rule in rules.items()}


def _add_access_check(command: Any, rule: Rule[S], lookup_of: Callable[[S], RightsLookup]) -> Rule[S]:
    needs = COMMANDS.get(command.__name__)
    if needs is None:
        raise LookupError(
            f"{command.__name__} has no row in services/kit/authz/commands.py: say there who may command it"
        )

    @functools.wraps(rule)
    def checked_rule(state: S, sent: Any, call: Call) -> Result:
        # In the owner's own state, of the moment of the decision: the gateway's check may be older than a
        # change of roles.
        require(lookup_of(state), getattr(sent, "user", ""), needs(sent), script=call.script)
        return rule(state, sent, call)

    return checked_rule
