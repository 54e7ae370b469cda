"""The keys of a cluster as files, each for its owner only."""

from __future__ import annotations

import json
from pathlib import Path

from services.kit.credentials import Authority


def write_keys(folder: Path) -> Authority:
    """Make keys, or read those that are there, and write what services and workers are given.

    `service.creds` and `worker.creds` are for connecting, `trial-signing.json` is the worker's key for
    scripts. `authority.json` stays where the cluster is administered.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    kept = folder / "authority.json"
    if not kept.exists():
        _write(kept, Authority.create().to_json())
    authority = Authority.from_json(kept.read_text())
    _write(folder / "service.creds", authority.service())
    _write(folder / "worker.creds", authority.worker())
    signing = {"account": authority.account, "seed": authority.trial_signing_seed}
    _write(folder / "trial-signing.json", json.dumps(signing))
    return authority


def _write(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)
