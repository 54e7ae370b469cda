"""The authorization mode is a fact of the log, so that all judges agree; settings only state it."""

from __future__ import annotations

import structlog

from det_contracts.commands import SetAuthz
from services.catalogue.catalogue import Catalogue
from services.catalogue.peers import Peers
from services.gateway.running.settings import Settings
from services.kit.authz.roles import is_rbac
from services.kit.settings import BadSettings

log = structlog.get_logger()
MODES = ("basic", "rbac")


async def settle(settings: Settings, catalogue: Catalogue, peers: Peers) -> None:
    """State the configured authorization mode and log the one in effect. Raises `BadSettings`."""
    wanted = settings.authz
    if wanted and wanted not in MODES:
        raise BadSettings(f"STEADFAST_AUTHZ must be basic or rbac, not '{wanted}'")
    if wanted:
        await peers.command(SetAuthz(mode="rbac" if wanted == "rbac" else "basic"))
    by = "roles: det rbac list-roles" if is_rbac(catalogue.state) else "ownership, and administrators"
    log.info("rights.judged", by=by)
