"""Queries to webhooks: where notifications go, and their deliveries."""

from __future__ import annotations

import msgspec


class Webhooks(msgspec.Struct, frozen=True, tag="webhooks"):
    """To webhooks: rows `{webhook_id, kind, host, url, signing_key, triggers: [{id, state}], user, waiting}`.

    Sorted by id; `waiting` is the number of pending deliveries.
    """


class Deliveries(msgspec.Struct, frozen=True, kw_only=True, tag="deliveries"):
    """To webhooks: `{rows, total}` of the stored deliveries of one webhook, newest first.

    A row is `{delivery_id, occasion, experiment, happened_at, state, next_at, attempts: [{attempt, at,
    status, problem, took_s}], reason}`.
    """

    webhook_id: int
    offset: int = 0
    limit: int = 100
