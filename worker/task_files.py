"""The files through which a task reaches the cluster, and those that only its user may read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from det_contracts import orders
from det_contracts.roots import Roots
from services.kit.credentials import mint_trial, trial_inbox
from worker.account import Accounts
from worker.briefing import Briefing
from worker.environment import Cluster
from worker.settings import WorkerSettings

BUS, CREDENTIALS, MASTER_CA = "bus.json", "bus.creds", "master.pem"
DELETION = "deletion.json"
TENSORBOARD = "tensorboard.json"
SERVICE_FILES = {"NOTEBOOK": "notebook.json", "SHELL": "shell.json"}
"""By kind, the file with what a task that is reached through the gateway needs. Only its user may read it."""


class SigningKey(msgspec.Struct, frozen=True):
    """The key that signs credentials for scripts."""

    account: str
    seed: str


class TaskFiles:
    """Makes these files for the tasks of one worker."""

    def __init__(
        self, settings: WorkerSettings, accounts: Accounts, roots: Roots, *, in_containers: bool
    ) -> None:
        self._settings = settings
        self._accounts = accounts
        self._roots = roots
        self._in_containers = in_containers
        self._signing = _signing_key(settings.trial_signing)

    def cluster(self, info_dir: Path) -> Cluster:
        """How a task reaches the gateway. Copies the certificate that it needs for that."""
        settings = self._settings
        certificate = None
        if (authority := self._master_ca()) is not None:
            # A copy, because the task may run as another user or see other folders.
            certificate = info_dir / MASTER_CA
            info_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            certificate.write_bytes(authority.read_bytes())
        return Cluster(
            master_url=settings.master_url,
            cluster_id=settings.cluster_id,
            agent_id=settings.worker_id,
            cert_file=str(certificate) if certificate is not None else None,
            cert_name=settings.master_cert_name,
        )

    def private_files(self, info_dir: Path, briefing: Briefing) -> dict[str, Mapping[str, Any]]:
        """The content of files that only the task's user may read, by name. Writes a trial's credentials."""
        task = briefing.task
        if briefing.deletion is not None:
            storage = briefing.config["checkpoint_storage"]
            deletion = briefing.deletion
            order = {"uuids": list(deletion.uuids), "globs": deletion.globs}
            swept = deletion.experiment_id if deletion.sweep else None
            roots = msgspec.to_builtins(self._roots)
            # In a file that only its user may read: the storage may have keys, and the environment is
            # visible.
            return {DELETION: {"storage": storage, "roots": roots, "experiment": swept, **order}}
        if task.task_type == "TENSORBOARD":
            roots = msgspec.to_builtins(self._roots)
            host = briefing.gang.addresses[briefing.gang.rank]
            apart = self._accounts.choose(briefing.agent_user) is not None or self._in_containers
            own = {"roots": roots, "host": host, "apart": apart}
            return {TENSORBOARD: {**briefing.config["tensorboard"], **own}}
        if task.task_type in SERVICE_FILES:
            host = briefing.gang.addresses[briefing.gang.rank]
            return {SERVICE_FILES[task.task_type]: {**briefing.config["serves"], "host": host}}
        if task.trial is None:
            return {}
        if self._signing is not None:
            _write_credentials(info_dir, self._mint_credentials(self._signing, task.trial.trial_id))
        return {BUS: self._bus_settings(info_dir, task.trial.trial_id)}

    def renewed(self, info_dir: Path, briefing: orders.Briefing) -> dict[str, bytes]:
        """The files that have changed since the task began, or that will expire, by name."""
        files = {}
        if (authority := self._master_ca()) is not None:
            files[MASTER_CA] = authority.read_bytes()
        if briefing.trial is not None and self._signing is not None:
            files[CREDENTIALS] = self._mint_credentials(self._signing, briefing.trial.trial_id).encode()
        if briefing.trial is not None and self._settings.tls_ca is not None:
            files[BUS] = json.dumps(self._bus_settings(info_dir, briefing.trial.trial_id)).encode()
        return files

    def _master_ca(self) -> Path | None:
        """Path of the CA that signed the gateway's certificate; None if tasks need none from us."""
        authority = self._settings.master_cert_file or self._settings.tls_ca
        return authority if self._settings.master_url.startswith("https://") else None

    def _bus_settings(self, info_dir: Path, trial_id: int) -> dict[str, Any]:
        """How a script reaches the broker."""
        urls = (self._settings.script_nats_url or self._settings.nats_url).split(",")
        bus: dict[str, Any] = {"urls": urls, "inbox_prefix": trial_inbox(trial_id)}
        if self._settings.tls_ca is not None and urls[0].startswith("tls://"):
            # The content and not the path: the script may run where the file does not exist or cannot be
            # read.
            bus["ca"] = self._settings.tls_ca.read_text()
        if self._signing is not None:
            bus["credentials"] = str(info_dir / CREDENTIALS)
        return bus

    def _mint_credentials(self, signing: SigningKey, trial_id: int) -> str:
        valid_s = self._settings.script_credentials_s or None
        return mint_trial(signing.seed, signing.account, trial_id, valid_s=valid_s)


def _write_credentials(info_dir: Path, text: str) -> None:
    info_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = info_dir / CREDENTIALS
    # The mode first. A file that is written and then restricted can be opened in between.
    path.touch(mode=0o600)
    path.write_text(text)


def _signing_key(path: Path | None) -> SigningKey | None:
    return msgspec.convert(json.loads(path.read_text()), SigningKey) if path is not None else None
