"""Ids of checkpoints that only the trial that made them can register; see `det_contracts.checkpoint_ids`."""

from __future__ import annotations

import secrets

from det_contracts import checkpoint_ids


class OwnIds:
    """Makes ids for the checkpoints of a trial, and keeps the secrets with which it registers them."""

    def __init__(self, trial_id: int) -> None:
        self._trial = trial_id
        self._secrets: dict[str, str] = {}
        """By the id that was made of it, until the checkpoint is reported."""

    def new(self) -> str:
        """Return an id that was never used."""
        secret = secrets.token_hex(16)
        id = checkpoint_ids.make(self._trial, secret)
        self._secrets[id] = secret
        return id

    def take_secret(self, id: str) -> str:
        """Return the secret of an id, once; empty if it was not made here."""
        return self._secrets.pop(id, "")
