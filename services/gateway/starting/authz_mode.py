"""The authorization mode is a fact of the log, so that all judges agree; settings only state it."""

from __future__ import annotations

import structlog

from det_contracts.commands import SetAuthz
from services.catalogue.catalogue import Catalogue
from services.catalogue.peers import Peers
from services.kit.authz.roles import is_rbac
from services.kit.settings import BadSettings
from services.rest_requests.settings import Settings

log = structlog.get_logger()
MODES = ("basic", "rbac")


async def apply(settings: Settings, catalogue: Catalogue, peers: Peers) -> None:
    """State the configured authorization mode and log the one in effect. Raises `BadSettings`."""
    requested_mode = settings.authz
    if requested_mode and requested_mode not in MODES:
        raise BadSettings(f"STEADFAST_AUTHZ must be basic or rbac, not '{requested_mode}'")
    # An empty setting changes nothing, so a gateway that was started without it cannot open the cluster
    # (decision 38).
    if requested_mode:
        await peers.command(SetAuthz(mode="rbac" if requested_mode == "rbac" else "basic"))
    by = "roles: det rbac list-roles" if is_rbac(catalogue.state) else "ownership, and administrators"
    log.info("rights.judged", by=by)
