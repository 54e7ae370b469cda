"""Whose the things are that people command the webhooks service about."""

from __future__ import annotations

from services.kit.authz.people import Directory
from services.webhooks.domain import State


def directory(state: State) -> Directory:
    """What a judge looks up: webhooks are the administrators', so there is nothing to look up of them."""
    return Directory(state, lambda _, __: None)
