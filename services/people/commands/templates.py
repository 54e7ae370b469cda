"""Commands about templates, which are named partial configurations."""

from __future__ import annotations

import hashlib

from det_contracts.commands import RemoveTemplate, SetTemplate
from det_contracts.events.gateway import TemplateRemoved, TemplateSet
from det_contracts.problems import Problem, Refused, invalid, not_found
from services.kit.authz.roles import is_rbac
from services.kit.names import check_name
from services.kit.rules import Call, Result
from services.people import workspace_records
from services.people.domain.state import People

MAX_NAME_CHARACTERS = 256


def template_id(name: str) -> str:
    """The id of the template with this name: 16 hexadecimal digits."""
    # Names may hold anything, and an id becomes a token of a subject.
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def set_template(state: People, command: SetTemplate, call: Call) -> Result:
    """Create or replace a template, as `replaces` allows. Has no effect if nothing changes."""
    template = state.templates.get(template_id(command.name))
    if template is None:
        check_name("a template", command.name, MAX_NAME_CHARACTERS)
    if template is None and command.replaces:
        raise not_found("template", command.name)
    if template is not None and command.replaces is False:
        raise Refused(Problem("already_exists", f"template '{command.name}' exists already"))
    if template is None and command.workspace_id is None and is_rbac(state):
        raise invalid(f"template '{command.name}': say which workspace it is for")
    workspace_id = command.workspace_id or (
        template.workspace_id if template is not None else workspace_records.FIRST
    )
    workspace_records.workspace(state, workspace_id)
    if template is not None and (template.config, template.workspace_id) == (command.config, workspace_id):
        return Result(value=command.name)
    reason = f"{'changed' if template else 'made'} by {command.user}"
    return Result(
        [
            TemplateSet(
                template_id=template_id(command.name),
                name=command.name,
                config=command.config,
                workspace_id=workspace_id,
                reason=reason,
            )
        ],
        command.name,
    )


def remove_template(state: People, command: RemoveTemplate, call: Call) -> Result:
    """Remove a template."""
    id = template_id(command.name)
    if id not in state.templates:
        raise not_found("template", command.name)
    return Result([TemplateRemoved(template_id=id, name=command.name, reason=f"removed by {command.user}")])
