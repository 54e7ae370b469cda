"""Everything that routes work with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from services.gateway.catalogue import Catalogue
from services.gateway.follow import Following
from services.gateway.live import Live
from services.gateway.peers import Peers
from services.gateway.settings import Settings
from services.gateway.tails import Tails
from services.kit.blobs import BlobStore
from services.kit.log import Log
from services.kit.measures import Measures

if TYPE_CHECKING:
    from services.kit.spans import Tracer


@dataclass(frozen=True)
class Backend:
    """One running gateway, without its HTTP side."""

    settings: Settings
    catalogue: Catalogue
    peers: Peers
    live: Live
    journal: Log
    blobs: BlobStore
    token_key: bytes
    """Signs session tokens."""
    trial_signer: str | None
    """Public key of the tokens of tasks."""
    storage: dict[str, Any] | None
    """Default `checkpoint_storage` of the cluster."""
    measures: Measures
    tracer: Tracer | None = None

    @cached_property
    def following(self) -> Following:
        """Logs that are followed here."""
        return Following(self.peers, Tails(self.journal, self.catalogue))
