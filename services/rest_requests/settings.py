"""The gateway's settings, beyond those shared by all services."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from det_contracts.commands import Password
from services.kit import blobs, passwords, yamlfile
from services.kit.allowed_paths import directory_of
from services.kit.disks import Disks
from services.kit.host_addresses import is_loopback
from services.kit.settings import BadSettings
from services.kit.sqlite_files import sqlite_file
from services.people.oidc.settings import OidcSettings

log = structlog.get_logger()


@dataclass(frozen=True)
class Settings(OidcSettings):
    """Read from the environment."""

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: int = 8080
    """Port to listen on; 0 for any free one."""
    allowed_hosts: str = ""
    """Comma-separated host names of the gateway, beyond localhost, this host's own names, and IP addresses.
    """
    allowed_origins: str = ""
    """Comma-separated origins, such as https://example.org, whose pages may act for a logged-in user."""
    trusted_proxies: str = ""
    """Addresses or networks of reverse proxies that are trusted to name the client."""
    initial_password: str = ""
    """Password, or its Argon2id hash, for the users `admin` and `determined` while they have none."""
    initial_password_file: Path | None = None
    """File that holds the initial password instead."""
    connections: int = 10_000
    """Maximum number of open connections; fewer if the system allows fewer open files."""
    connections_each: int = 4_000
    """Maximum number of open connections from one address."""
    streams: int = 8_000
    """Maximum number of long-running answers, such as open pages, followed logs and requests that wait."""
    streams_each: int = 2_000
    """Maximum number of long-running answers for one user."""
    requests_each: int = 1_000
    """Requests that one user, API token or script may have in progress. As many again may queue."""
    requests_rate: float = 500.0
    """Sustained requests per second of one user, API token or script; faster ones wait. 0 means unlimited."""
    authz: str = ""
    """Authorization mode, `basic` or `rbac`. If empty, the last one stated stays; it starts as `basic`."""
    shell_needs_session: bool = False
    """Whether `det shell open` needs a login besides the shell's key. Clients of 0.25 do not log in."""
    tensorboard_timeout: float = 300.0
    """Seconds for which nobody may look at a TensorBoard whose configuration has no `idle_timeout`."""
    notebook_timeout: float = 0.0
    """Seconds for which a notebook whose configuration has no `idle_timeout` may be idle. 0 means unlimited.
    """
    cluster_id: str = "local"
    """Unique cluster id. Clients use it to keep tokens of several clusters apart."""
    cluster_name: str = "local"
    """The cluster's name in the web UI."""
    token_key: Path | None = None
    """File with the secret that signs session tokens, shared by all replicas. None: a new one at each start.
    """
    task_key: Path | None = None
    """File with the key of task tokens, shared with the scheduler. None: tasks cannot use the REST API."""
    sealing_key: Path | None = None
    """File with the key that seals secrets in the log, shared with workers. None: secrets are not sealed."""
    pools: Path | None = None
    """The file that defines the resource pools. `task_container_defaults` are read from it."""
    blobs: str = ""
    """Where contexts are stored: an absolute directory, or s3://bucket[/prefix]."""
    reachable: str = ""
    """Comma-separated networks and `host[:port]` of object stores that users may name, besides public ones.
    """
    checkpoints_probe: bool = True
    """Whether checkpoint directories are on this host, so that they can be probed at submit."""


def is_remotely_reachable(settings: Settings) -> bool:
    """Whether people on other machines can reach the gateway."""
    return not is_loopback(settings.host) or bool(settings.trusted_proxies)


def first_password(settings: Settings) -> Password | None:
    """The first password for built-in users. Slow, so do not call it on the event loop."""
    text = settings.initial_password
    if settings.initial_password_file is not None:
        try:
            text = settings.initial_password_file.read_text().strip()
        except OSError as error:
            raise BadSettings(
                f"STEADFAST_INITIAL_PASSWORD_FILE={settings.initial_password_file} cannot be read: "
                f"{error.strerror}"
            ) from error
    if not text:
        return None
    return passwords.from_setting(text)


def signing_key(settings: Settings) -> bytes:
    """The secret that signs session tokens."""
    if settings.token_key is None:
        log.warning(
            "tokens.temporary", help="set STEADFAST_TOKEN_KEY to keep people logged in over a restart"
        )
        return secrets.token_bytes(32)
    try:
        key = settings.token_key.read_bytes().strip()
    except OSError as error:
        raise BadSettings(
            f"STEADFAST_TOKEN_KEY={settings.token_key} cannot be read: {error.strerror}"
        ) from error
    # An empty file, or one whose writing was interrupted, would sign tokens that anybody can make.
    if len(key) < 16:
        raise BadSettings(f"STEADFAST_TOKEN_KEY={settings.token_key} holds less than 16 bytes")
    return key


def default_storage(settings: Settings) -> dict[str, Any] | None:
    """The default `checkpoint_storage` for configurations that name none."""
    text = settings.checkpoints
    if not text:
        return None
    if text.startswith("/"):
        return {"type": "shared_fs", "host_path": text}
    try:
        storage = yamlfile.parse(text)
    except yamlfile.YamlProblem as error:
        raise BadSettings(f"STEADFAST_CHECKPOINTS: {error}") from error
    if not isinstance(storage, dict):
        raise BadSettings("STEADFAST_CHECKPOINTS is neither an absolute directory nor a map in YAML")
    return storage


def blob_store(settings: Settings) -> blobs.BlobStore:
    """The store for contexts."""
    try:
        return blobs.connect(
            settings.blobs,
            endpoint_url=settings.s3_endpoint_url,
            access_key=settings.s3_access_key,
            secret_key=settings.s3_secret_key,
        )
    except ValueError as error:
        raise BadSettings(f"STEADFAST_BLOBS: {error}") from error


def disks(settings: Settings, storage: dict[str, Any] | None) -> Disks:
    """The disks of this host that experiments fill, keyed by what they hold."""
    paths = {"log": settings.log_disk} if settings.log_disk else {}
    database = sqlite_file(settings.database_url)
    paths |= {"database": database} if database else {}
    paths |= {"experiments' code": Path(settings.blobs)} if settings.blobs.startswith("/") else {}
    if storage and settings.checkpoints_probe and storage["type"] in ("shared_fs", "directory"):
        paths["checkpoints"] = directory_of(storage)
    return Disks(paths, settings.disk_reserve_mib)
