"""Validates and seals the addresses, triggers and keys of webhooks, and opens them for administrators."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from det_contracts.events.webhooks import KINDS, TRIGGER_STATES, TriggerState, WebhookKind
from det_contracts.problems import invalid
from det_contracts.webhook_commands import SetWebhook
from services.kit.sealing import FOR_WEBHOOKS, CannotOpen, Sealer, is_sealed
from services.rest_requests.bodies import STATE_CHANGE, TriggerBody, WebhookBody

if TYPE_CHECKING:
    from services.rest_requests.backend import Backend

MAX_URL_LENGTH = 2048
MAX_KEY_LENGTH = 256


def creation_command(backend: Backend, request: WebhookBody, user: str) -> SetWebhook:
    """The command that creates a webhook. Raises `Refused` (400)."""
    host = _host(request.url)
    if is_sealed(request.url) or is_sealed(request.signing_key):
        raise invalid("url, signingKey: sealed values from the log are not accepted; give the plain values")
    if len(request.signing_key) > MAX_KEY_LENGTH:
        raise invalid(f"signingKey: at most {MAX_KEY_LENGTH} characters are expected")
    key = request.signing_key or secrets.token_hex(32)
    return SetWebhook(
        kind=_kind(request.webhook_type),
        host=host,
        url=_seal(backend.sealer, request.url),
        signing_key=_seal(backend.sealer, key),
        states=tuple(_state(trigger) for trigger in request.triggers),
        user=user,
    )


def _host(url: str) -> str:
    try:
        parsed = urlsplit(url)
        host, port = parsed.hostname, parsed.port
    except ValueError as error:
        raise invalid(f"url: this is not a valid address: {error}") from None
    if parsed.scheme not in ("http", "https") or not host:
        raise invalid("url: an address that begins with http:// or https:// is expected, with a host")
    # The host is shown and logged, and libraries disagree about where it begins in such an address.
    if parsed.username is not None or parsed.password is not None:
        raise invalid("url: give no user and no password in the address; put a secret into its path or query")
    if len(url) > MAX_URL_LENGTH or any(not c.isprintable() or c.isspace() for c in url):
        raise invalid(f"url: at most {MAX_URL_LENGTH:,} printable characters without spaces are expected")
    return f"{host}:{port}" if port is not None else host


def _kind(name: str) -> WebhookKind:
    short = name.removeprefix("WEBHOOK_TYPE_")
    for kind in KINDS:
        if kind == short:
            return kind
    accepted = ", ".join(f"WEBHOOK_TYPE_{kind}" for kind in KINDS)
    raise invalid(f"webhookType: '{name}' is not one of {accepted}")


def _state(trigger: TriggerBody) -> TriggerState:
    if trigger.trigger_type != STATE_CHANGE:
        raise invalid(
            f"triggers: '{trigger.trigger_type}' is not offered; {STATE_CHANGE} is, with a condition such as "
            '{"state": "COMPLETED"}'
        )
    short = trigger.condition.state.removeprefix("STATE_")
    for state in TRIGGER_STATES:
        if state == short:
            return state
    accepted = ", ".join(TRIGGER_STATES)
    raise invalid(f"triggers: condition.state is '{trigger.condition.state}', and must be one of {accepted}")


def _seal(sealer: Sealer | None, text: str) -> str:
    return text if sealer is None else sealer.seal(FOR_WEBHOOKS, text)


def unseal(sealer: Sealer | None, text: str) -> str:
    """Open a logged value for administrators; empty if this gateway has a different key."""
    if not is_sealed(text):
        return text
    try:
        return str(sealer.open(FOR_WEBHOOKS, text)) if sealer is not None else ""
    except CannotOpen:
        return ""
