"""Templates: named partial configurations (REST spec, section 7)."""

from __future__ import annotations

from typing import Annotated, Any

from starlette.responses import Response

from det_contracts import expconf
from det_contracts.commands import RemoveTemplate, SetTemplate
from det_contracts.problems import not_found
from services.kit import paging
from services.people import workspace_records
from services.people.commands.templates import template_id
from services.people.domain import Template
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.backend import Backend
from services.rest_requests.bodies import TemplateBody
from services.rest_requests.body import request_schema
from services.rest_routes.present import records
from services.rest_routes.present.answers import page_schema, record_schema
from services.submission import configuration, secrets
from services.web.query import FromQuery, Paged, enum_value
from services.web.routes import Routes

router = Routes()


def _shown(template: Template) -> dict[str, Any]:
    return {
        "name": template.name,
        "config": expconf.mask_secrets(template.config),
        "workspaceId": template.workspace_id,
    }


class TemplatesQuery(Paged):
    """GET /templates"""

    name: str = ""
    sort_by: Annotated[str, enum_value("SORT_BY_", ("NAME",))] = "NAME"


@router.get("/templates", ("view", "listed"), **page_schema("templates", records.Template))
async def templates(call: Authenticated, query: FromQuery[TemplatesQuery]) -> Response:
    """All templates, by name."""
    part = query.name.lower()
    stored_templates = sorted(
        call.catalogue.state.templates.values(), key=lambda stored_template: stored_template.name
    )
    visibility = call.visibility
    stored_templates = visibility.filter_visible(
        lambda stored_template: visibility.includes_workspace(stored_template.workspace_id), stored_templates
    )
    shown = [
        _shown(stored_template)
        for stored_template in stored_templates
        if part in stored_template.name.lower()
    ]
    page, pagination = paging.cut(shown, query.window)
    return call.answer({"templates": page, "pagination": pagination})


def _template(call: UserCall, name: str) -> dict[str, Any]:
    stored_template = call.catalogue.state.templates.get(template_id(name))
    if stored_template is None:
        raise not_found("template", name)
    return {"template": _shown(stored_template)}


@router.get("/templates/{name:path}", ("view", "template"), **record_schema("template", records.Template))
async def template(call: Authenticated, name: str) -> Response:
    """One template."""
    return call.answer(_template(call, name))


def _seal_template(backend: Backend, name: str, config: dict[str, Any]) -> dict[str, Any]:
    """Seal a template for the log. Masked secrets are taken from the existing template of that name."""
    former, owner = backend.catalogue.state.templates.get(template_id(name)), secrets.template_owner(name)
    former_config = secrets.unseal_config(former.config, owner, backend.sealer) if former is not None else {}
    full_config = secrets.unmask(config, expconf.secrets_of(former_config))
    if full_config == former_config and former is not None:
        # Sealing again would make it look changed.
        return former.config
    return secrets.seal_config(full_config, owner, backend.sealer)


async def _set(
    call: UserCall, name: str, config: Any, replaces: bool | None, workspace_id: int = 0
) -> Response:
    exists = template_id(name) in call.catalogue.state.templates
    full_config = await configuration.check_template(call.backend, call.user.username, name, config)
    full_config = _seal_template(call.backend, name, full_config)
    command = SetTemplate(
        name=name,
        config=full_config,
        user=call.user.username,
        replaces=replaces,
        # None leaves a known template in its workspace.
        workspace_id=workspace_id or (None if exists else workspace_records.FIRST),
    )
    return call.answer(_template(call, await call.create(command)))


@router.post("/templates", ("edit", "body"))
async def create(call: Authenticated, body: TemplateBody) -> Response:
    """Create a template. Its name must be new."""
    return await _set(call, body.name, body.config, False, body.workspace_id)


@router.post("/templates/{name:path}", ("edit", "template"))
async def create_named(call: Authenticated, name: str, body: TemplateBody) -> Response:
    """Create a template, with the name in the address."""
    return await _set(call, name, body.config, False, body.workspace_id)


@router.put("/templates/{name:path}", ("edit", "template"))
async def put(call: Authenticated, name: str, body: TemplateBody) -> Response:
    """Create a template, or replace the one of that name."""
    return await _set(call, name, body.config, None, body.workspace_id)


@router.patch(
    "/templates/{name:path}", ("edit", "template"), **request_schema({"type": "object"}, required=False)
)
async def patch(call: Authenticated, name: str) -> Response:
    """Replace a template's configuration. The body is the configuration itself, or has it in `config`."""
    body = await call.json()
    config = body.get("config", body) if isinstance(body, dict) else body
    return await _set(call, name, config, True)


@router.delete("/templates/{name:path}", ("edit", "template"))
async def remove(call: Authenticated, name: str) -> Response:
    """Delete a template."""
    await call.peers.command(RemoveTemplate(name=name, user=call.user.username))
    return call.answer({})
