"""Assembles the webhooks service."""

from __future__ import annotations

import asyncio
from functools import partial

from services.kit.addresses import Addresses
from services.kit.authz.commands import add_access_checks
from services.kit.authz.people import add_people_fold
from services.kit.parts import Parts, settings_of
from services.kit.rules import Rules
from services.kit.sealing import FOR_WEBHOOKS, CannotOpen, Sealer, is_sealed, sealer_from
from services.kit.service import Service
from services.kit.settings import BadSettings
from services.kit.tls import client_context
from services.webhooks.commands import COMMANDS, MAX_WEBHOOKS
from services.webhooks.domain import State, evolve
from services.webhooks.lanes import Lanes
from services.webhooks.measures import readings
from services.webhooks.queries import ANSWERS
from services.webhooks.react import react
from services.webhooks.rights import directory
from services.webhooks.sending import Sender, ThreadedSender
from services.webhooks.settings import Settings

FOLD = add_people_fold(evolve)
RULES = Rules(
    owner="webhooks",
    fold_version=1,
    state=State,
    evolve=FOLD,
    reads=FOLD.kinds,
    react=react,
    commands=add_access_checks(COMMANDS, directory),
    answers=ANSWERS,
)


def unseal(sealer: Sealer | None, text: str) -> str:
    """Decrypt a text from the log if it is sealed. Raises `CannotOpen`."""
    if not is_sealed(text):
        return text
    if sealer is None:
        raise CannotOpen("this process has no STEADFAST_SEALING_KEY")
    return str(sealer.open(FOR_WEBHOOKS, text))


async def _run_background_tasks(parts: Parts) -> None:
    settings = settings_of(parts, Settings)
    try:
        addresses = Addresses(allowed=settings.reachable)
    except ValueError as error:
        raise BadSettings(f"STEADFAST_REACHABLE={settings.reachable}: {error}") from error
    sender = Sender(addresses, await asyncio.to_thread(client_context, settings.tls_ca))
    threads = ThreadedSender(sender, MAX_WEBHOOKS)
    lanes = Lanes(
        parts.runner,
        threads,
        partial(unseal, sealer_from(settings.sealing_key)),
        parts.is_leader,
        settings.public_url.rstrip("/"),
    )
    await parts.runner.ready.wait()
    try:
        await lanes.run()
    finally:
        threads.close()


SERVICE = Service(RULES, settings=Settings, background_tasks=_run_background_tasks, readings=readings)
