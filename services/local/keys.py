"""The keys of a cluster as files, each for its owner only."""

from __future__ import annotations

import json
import secrets
import sys
from pathlib import Path

from services.kit.credentials import OWNERS, Authority
from services.kit.files import set_aside, write_whole


def write_keys(folder: Path, *, services: Path | None = None, workers: Path | None = None) -> Authority:
    """Make keys in `folder`, or read those that are there, and write what services and workers are given.

    A credential for each service, `searcher.creds` and so on, goes to the folder for services;
    `worker-signing.json`, by which a worker connects under its own id, and `trial-signing.json`, the key for
    scripts, to that for workers. Both folders are `folder` unless named. `authority.json` and
    `operator.creds` stay where the cluster is administered.
    """
    services, workers = services or folder, workers or folder
    for each in (folder, services, workers):
        each.mkdir(parents=True, exist_ok=True, mode=0o700)
    authority = _authority(folder / "authority.json")
    _write(folder / "operator.creds", authority.operator())
    for owner in OWNERS:
        _write(services / f"{owner}.creds", authority.service(owner))
    worker = {"account": authority.workers, "seed": authority.worker_signing_seed}
    _write(workers / "worker-signing.json", json.dumps(worker))
    signing = {"account": authority.scripts, "seed": authority.trial_signing_seed}
    _write(workers / "trial-signing.json", json.dumps(signing))
    for earlier in (services / "service.creds", workers / "worker.creds"):
        earlier.unlink(missing_ok=True)
    return authority


def write_worker(authority: Authority, path: Path, worker_id: str) -> Path:
    """Write the credentials of one worker: they speak for it alone."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    _write(path, authority.worker(worker_id))
    return path


def keep_secret(path: Path) -> Path:
    """A file with a random secret, made at first use, and again where it is empty."""
    if path.exists() and not path.stat().st_size:
        print(f"{path} is empty: kept as {set_aside(path).name}, and a new secret is made", file=sys.stderr)
    if not path.exists():
        _write(path, secrets.token_hex(32))
    return path


class KeysDamaged(Exception):
    """The file with the keys of a cluster cannot be read; the text says what to do."""


def _authority(file: Path) -> Authority:
    if not file.exists():
        _write(file, Authority.create().to_json())
    try:
        authority = Authority.from_json(file.read_text())
        if authority.to_json() != file.read_text():
            # An earlier version had fewer.
            _write(file, authority.to_json())
        return authority
    except (ValueError, TypeError, KeyError) as error:
        # Not made anew: the broker keeps the log under the name of the account that these keys are of.
        raise KeysDamaged(
            f"{file} is damaged ({error}). It holds the keys of the cluster, by which its log is found: put "
            "the copy from your backup in its place. Without one, remove the whole folder of the cluster"
        ) from None


def _write(path: Path, text: str) -> None:
    """Whole or not at all: half a key is worse than none."""
    write_whole(path, text.encode())
