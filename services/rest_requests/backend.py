"""Everything that routes need."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import httpx

from det_contracts.object_stores import azure_account
from det_contracts.roots import Roots
from services.catalogue.catalogue import Catalogue
from services.catalogue.peers import Peers
from services.kit.addresses import Addresses
from services.kit.allowed_paths import roots_of
from services.kit.blobs import BlobStore
from services.kit.disks import Disks
from services.kit.log import Log
from services.kit.offload import Offload
from services.kit.process_metrics import Measures
from services.kit.sealing import Sealer
from services.kit.sqlite_files import sqlite_file
from services.live import Live
from services.live.follow import FollowerResources
from services.live.tails import Tails
from services.people.oidc.provider_http import ProviderClient
from services.people.oidc.settings import check_settings
from services.rest_requests.cluster_health import ClusterHealth
from services.rest_requests.heartbeats import HeartbeatThrottle
from services.rest_requests.renewals import Renewals
from services.rest_requests.settings import Settings
from services.web.limits import Limits
from services.web.logins import LoginLimiter
from services.web.proxies import Proxies

if TYPE_CHECKING:
    from services.kit.spans import Tracer
    from services.people.oidc.provider import Provider


@dataclass(frozen=True)
class Backend:
    """One running gateway, without its HTTP layer."""

    settings: Settings
    catalogue: Catalogue
    peers: Peers
    live: Live
    journal: Log
    blobs: BlobStore
    token_key: bytes
    """Signs session tokens."""
    task_key: bytes | None
    """Signs the tokens of tasks."""
    storage: dict[str, Any] | None
    """Default `checkpoint_storage` of the cluster."""
    measures: Measures
    health: ClusterHealth
    sealer: Sealer | None = None
    """Seals secrets before they enter the log. If None, they are logged in clear text."""
    tracer: Tracer | None = None
    disks: Disks = field(default_factory=lambda: Disks({}))
    """The disks whose free space is checked before anything new is accepted."""

    @cached_property
    def followed_logs(self) -> FollowerResources:
        """The logs being followed through this gateway."""
        return FollowerResources(self.peers, Tails(self.journal, self.catalogue))

    @cached_property
    def roots(self) -> Roots:
        """The locations where this gateway probes and reads checkpoints."""
        settings = self.settings
        keys = [settings.token_key, settings.task_key, settings.sealing_key]
        return roots_of(settings, [*keys, settings.blobs, sqlite_file(settings.database_url)], self.storage)

    @cached_property
    def addresses(self) -> Addresses:
        """The addresses that this gateway may contact when a user names an object store."""
        storage = self.storage or {}
        own = [self.settings.s3_endpoint_url, storage.get("endpoint_url")]
        if storage.get("type") == "azure":
            own.append(azure_account(storage).url)
        return Addresses([*own, os.environ.get("AWS_ENDPOINT_URL")], self.settings.reachable)

    @cached_property
    def proxies(self) -> Proxies:
        """The reverse proxies that may speak for clients."""
        return Proxies(self.settings.trusted_proxies)

    @cached_property
    def renewals(self) -> Renewals:
        """The sessions being extended."""
        return Renewals(self.peers)

    @cached_property
    def logins(self) -> LoginLimiter:
        """Failed login attempts."""
        return LoginLimiter()

    @cached_property
    def provider(self) -> Provider | None:
        """The external sign-in provider, if configured. Raises `BadSettings`."""
        oidc_settings = check_settings(self.settings)
        if oidc_settings is None:
            return None
        # Imports signature libraries that most gateways never need.
        from services.people.oidc.provider import Provider

        addresses = Addresses([oidc_settings.oidc_issuer], self.settings.reachable)
        return Provider(oidc_settings, ProviderClient(addresses, oidc_settings.tls_ca))

    @cached_property
    def heartbeats(self) -> HeartbeatThrottle:
        """Heartbeats that were passed on."""
        return HeartbeatThrottle()

    @cached_property
    def limits(self) -> Limits:
        """Limits on concurrent work."""
        settings = self.settings
        return Limits(settings.streams, settings.streams_each, settings.requests_each, settings.requests_rate)

    @cached_property
    def offload(self) -> Offload:
        """Processes for work that is too heavy for this one."""
        return Offload()

    @cached_property
    def task_transport(self) -> httpx.AsyncHTTPTransport:
        """Connections to tasks. Not an httpx client, which would share one user's cookies with the others."""
        # Tasks are called without TLS, so do not load the system's certificates.
        ssl_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # A connection that is kept would outlive its task, and lead to whoever gets the port next.
        limits = httpx.Limits(max_keepalive_connections=0)
        return httpx.AsyncHTTPTransport(verify=ssl_context, trust_env=False, limits=limits)

    async def close(self) -> None:
        """Stop all background work."""
        await self.renewals.close()
        await self.task_transport.aclose()
        self.limits.close()
        await self.offload.close()
