"""The keys of a cluster as files, each for its owner only."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

from services.kit.credentials import Authority


def write_keys(folder: Path, *, services: Path | None = None, workers: Path | None = None) -> Authority:
    """Make keys in `folder`, or read those that are there, and write what services and workers are given.

    `service.creds` and `trial-signer.pub`, by which the gateway knows a task, go to the folder for services;
    `worker.creds`, for connecting, and `trial-signing.json`, the key for scripts, to that for workers. Both
    folders are `folder` unless named.
    `authority.json` stays where the cluster is administered.
    """
    services, workers = services or folder, workers or folder
    for each in (folder, services, workers):
        each.mkdir(parents=True, exist_ok=True, mode=0o700)
    kept = folder / "authority.json"
    if not kept.exists():
        _write(kept, Authority.create().to_json())
    authority = Authority.from_json(kept.read_text())
    _write(services / "service.creds", authority.service())
    _write(services / "trial-signer.pub", authority.trial_signer)
    _write(workers / "worker.creds", authority.worker())
    signing = {"account": authority.account, "seed": authority.trial_signing_seed}
    _write(workers / "trial-signing.json", json.dumps(signing))
    return authority


def keep_secret(path: Path) -> Path:
    """A file with a random secret, made at first use."""
    if not path.exists():
        _write(path, secrets.token_hex(32))
    return path


def _write(path: Path, text: str) -> None:
    """Whole or not at all: half a key is worse than none."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(text)
    draft.replace(path)
