"""What the gateway needs to know beside the common settings."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from det_contracts.commands import Password
from services.kit import blobs, passwords, yamlfile
from services.kit.allowed_paths import directory_of
from services.kit.disk_space import Disks
from services.kit.hosts_named import is_loopback
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
    """Names of the gateway, with commas, beside localhost, this host's own, and addresses."""
    allowed_origins: str = ""
    """Origins, such as https://example.org, whose pages may act for whoever is logged in, with commas."""
    trusted_proxies: str = ""
    """Addresses or networks of reverse proxies in front of the gateway, whose word of clients counts."""
    initial_password: str = ""
    """For the users `admin` and `determined`, as long as they have none; or its Argon2id hash."""
    initial_password_file: Path | None = None
    """File that holds it instead."""
    connections: int = 10_000
    """Connections that are kept open; fewer where the system allows fewer open files."""
    connections_each: int = 4_000
    """Of these, from one address."""
    streams: int = 8_000
    """Answers that go on, such as open pages and followed logs, and requests that wait for something."""
    streams_each: int = 2_000
    """Of these, of one user."""
    requests_each: int = 1_000
    """Requests that one user, API token or script has in hand until they are answered; as many more wait."""
    requests_rate: float = 500.0
    """Requests per second of each of these in the long run; faster ones wait. 0: any number."""
    authz: str = ""
    """How rights are judged: `basic` or `rbac`. Empty: as was stated last; at first `basic`."""
    shell_needs_session: bool = False
    """Whether `det shell open` must be logged in besides having the shell's key; clients of 0.25 are not."""
    cluster_id: str = "local"
    """Unique; clients keep tokens apart by it."""
    cluster_name: str = "local"
    """What the web UI calls the cluster."""
    token_key: Path | None = None
    """File with the secret that signs session tokens; all replicas share it. None: new at each start."""
    task_key: Path | None = None
    """File with the key of tasks' tokens, as the scheduler has it. None: they cannot use the REST API."""
    sealing_key: Path | None = None
    """File with the key that secrets are sealed with in the log; workers have it, too. None: no sealing."""
    pools: Path | None = None
    """The file that names the resource pools: `task_container_defaults` are read from it."""
    blobs: str = ""
    """Where contexts are stored: an absolute directory, or s3://bucket[/prefix]."""
    reachable: str = ""
    """Networks and `host[:port]`, with commas, where people's object stores may be, beside public ones."""
    checkpoints_probe: bool = True
    """Whether checkpoint directories are those of this host, so that they can be tried at submit."""


def is_open_to_others(settings: Settings) -> bool:
    """Whether people on other machines reach the gateway."""
    return not is_loopback(settings.host) or bool(settings.trusted_proxies)


def first_password(settings: Settings) -> Password | None:
    """What the users from the beginning get who have no password. Slow: not for the event loop."""
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
    """The secret that signs tokens."""
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
    if len(key) < 16:
        raise BadSettings(f"STEADFAST_TOKEN_KEY={settings.token_key} holds less than 16 bytes")
    return key


def default_storage(settings: Settings) -> dict[str, Any] | None:
    """The `checkpoint_storage` that configurations are completed with."""
    text = settings.checkpoints
    if not text:
        return None
    if text.startswith("/"):
        return {"type": "shared_fs", "host_path": text}
    try:
        found = yamlfile.parse(text)
    except yamlfile.YamlProblem as error:
        raise BadSettings(f"STEADFAST_CHECKPOINTS: {error}") from error
    if not isinstance(found, dict):
        raise BadSettings("STEADFAST_CHECKPOINTS is neither an absolute directory nor a map in YAML")
    return found


def blob_store(settings: Settings) -> blobs.BlobStore:
    """Where contexts go."""
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
    """The disks of this host that experiments fill, by what lies there."""
    found = {"log": settings.log_disk} if settings.log_disk else {}
    database = sqlite_file(settings.database_url)
    found |= {"database": database} if database else {}
    found |= {"experiments' code": Path(settings.blobs)} if settings.blobs.startswith("/") else {}
    if storage and settings.checkpoints_probe and storage["type"] in ("shared_fs", "directory"):
        found["checkpoints"] = directory_of(storage)
    return Disks(found, settings.disk_reserve_mib)
