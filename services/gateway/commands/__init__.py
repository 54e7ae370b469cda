"""What may be asked of the gateway itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from det_contracts.commands import (
    CloseSession,
    JoinGather,
    KeepSettings,
    MoveExperiment,
    RemoveProject,
    RemoveTemplate,
    RemoveWorkspace,
    Serve,
    SetPassword,
    SetProject,
    SetTemplate,
    SetUser,
    SetWorkspace,
)
from services.gateway.commands import gathers, places, templates, users
from services.gateway.domain import State
from services.kit.rules import Call, Ruling

COMMANDS: dict[Any, Callable[[State, Any, Call], Ruling]] = {
    CloseSession: users.close_session,
    SetUser: users.set_user,
    SetPassword: users.set_password,
    KeepSettings: users.keep_settings,
    JoinGather: gathers.join_gather,
    Serve: gathers.serve,
    SetTemplate: templates.set_template,
    RemoveTemplate: templates.remove_template,
    SetWorkspace: places.set_workspace,
    RemoveWorkspace: places.remove_workspace,
    SetProject: places.set_project,
    RemoveProject: places.remove_project,
    MoveExperiment: places.move_experiment,
}
