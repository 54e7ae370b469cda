"""Gives the built-in users a first password.

They start without one, which is fine on a laptop but not where other machines can connect.
"""

from __future__ import annotations

import asyncio

import structlog

from det_contracts.commands import SetFirstPassword
from services.catalogue.catalogue import Catalogue
from services.catalogue.peers import Peers
from services.kit.settings import BadSettings
from services.people import users
from services.rest_requests.settings import Settings, first_password, is_remotely_reachable

log = structlog.get_logger()
MISSING = "first_password.missing"
"""Log event written before the gateway refuses to start."""


async def apply(settings: Settings, catalogue: Catalogue, peers: Peers) -> None:
    """Give users without a password the configured one. Raises `BadSettings` if it is required but unset."""
    users_without_password = users.users_without_password(catalogue.state)
    if not users_without_password:
        return
    password = await asyncio.to_thread(first_password, settings)
    if password is not None:
        for user in users_without_password:
            await peers.command(SetFirstPassword(user_id=user.id, password=password))
    elif is_remotely_reachable(settings):
        names = " and ".join(f"'{user.username}'" for user in users_without_password)
        log.critical(MISSING, users=names, host=settings.host)
        raise BadSettings(
            f"{names} may log in without a password, and other machines reach the gateway at "
            f"{settings.host}: set STEADFAST_INITIAL_PASSWORD or STEADFAST_INITIAL_PASSWORD_FILE, which gives"
            " them one; or have it listen on loopback (STEADFAST_HOST=127.0.0.1), and give them passwords "
            "there: det user change-password"
        )
