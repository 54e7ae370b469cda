"""The keys of a cluster as files that only their owner can read."""

from __future__ import annotations

import json
import secrets
import sys
from pathlib import Path

from services.kit.credentials import Authority
from services.kit.files import set_aside, write_atomic
from services.kit.service_subjects import OWNERS


def write_keys(folder: Path, *, services: Path | None = None, workers: Path | None = None) -> Authority:
    """Create or load the keys in `folder`, and write the files for services and workers.

    The services folder gets a credentials file per service, `searcher.creds` and so on. The workers folder
    gets `worker-signing.json`, with which a worker connects under its own id, and `trial-signing.json`, the
    key for scripts. Both default to `folder`. `authority.json` and `operator.creds` stay in `folder`, where
    the cluster is administered.
    """
    services, workers = services or folder, workers or folder
    for each in (folder, services, workers):
        each.mkdir(parents=True, exist_ok=True, mode=0o700)
    authority = _load_authority(folder / "authority.json")
    _write(folder / "operator.creds", authority.operator())
    for owner in OWNERS:
        _write(services / f"{owner}.creds", authority.service(owner))
    worker = {"account": authority.workers, "seed": authority.worker_signing_seed}
    _write(workers / "worker-signing.json", json.dumps(worker))
    signing = {"account": authority.scripts, "seed": authority.trial_signing_seed}
    _write(workers / "trial-signing.json", json.dumps(signing))
    # Of earlier versions, in which one file was for all services, or for all workers.
    for earlier in (services / "service.creds", workers / "worker.creds"):
        earlier.unlink(missing_ok=True)
    return authority


def write_worker(authority: Authority, path: Path, worker_id: str) -> Path:
    """Write the credentials of one worker, valid for that worker only."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    _write(path, authority.worker(worker_id))
    return path


def ensure_secret(path: Path) -> Path:
    """Return a file with a random secret, created on first use and replaced if it is empty."""
    if path.exists() and not path.stat().st_size:
        print(f"{path} is empty: kept as {set_aside(path).name}, a new one is created", file=sys.stderr)
    if not path.exists():
        _write(path, secrets.token_hex(32))
    return path


class KeysDamaged(Exception):
    """The file with the cluster's keys cannot be read. The text says what to do."""


def _load_authority(file: Path) -> Authority:
    if not file.exists():
        _write(file, Authority.create().to_json())
    try:
        authority = Authority.from_json(file.read_text())
        if authority.to_json() != file.read_text():
            # An earlier version had fewer keys.
            _write(file, authority.to_json())
        return authority
    except (ValueError, TypeError, KeyError) as error:
        # Never create new keys: the broker stores the log under the name of the account these keys belong to.
        raise KeysDamaged(
            f"{file} is damaged ({error}). It holds the keys of the cluster, by which its log is found: put "
            "the copy from your backup in its place. Without one, remove the whole folder of the cluster"
        ) from None


def _write(path: Path, text: str) -> None:
    """Write atomically: half a key is worse than none."""
    write_atomic(path, text.encode())
