"""The components of a running service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from nats.aio.client import Client

from services.kit.bus import BusClient, BusServer
from services.kit.cluster_monitor import ClusterMonitor
from services.kit.conditions import Conditions
from services.kit.database import Database
from services.kit.lag import SAVING, HasLag
from services.kit.log import Log
from services.kit.log_jetstream import JetStreamLog
from services.kit.offload import Offload
from services.kit.process_metrics import Measures
from services.kit.runner import Runner
from services.kit.settings import ServiceSettings
from services.kit.snapshot_store import DatabaseSaver

if TYPE_CHECKING:
    from services.kit.spans import Tracer


@dataclass
class Parts:
    """Passed to a service's `background_tasks`."""

    settings: ServiceSettings
    connection: Client
    stranger_connection: Client
    """What scripts and workers send arrives here, apart from the log and from other services."""
    stream: JetStreamLog
    """The part of the log that is in the broker."""
    journal: Log
    """The whole log, including the archive."""
    database: Database
    saver: DatabaseSaver
    runner: Runner[Any]
    bus_client: BusClient
    offload: Offload
    bus_server: BusServer
    is_leader: Callable[[], bool]
    measures: Measures
    conditions: Conditions
    """Problems of this process."""
    cluster_monitor: ClusterMonitor
    tracer: Tracer | None
    waiting: str = ""
    """What holds the service up before it has read the log; empty if nothing does."""
    starting: str = ""
    """What the service's own part waits for before it is ready; empty once it is."""

    def lag(self) -> Mapping[str, HasLag]:
        """What is left to read of each stream, and to save."""
        return self.runner.lag() | {SAVING: self.saver.portions.lag}


_Settings = TypeVar("_Settings", bound=ServiceSettings)


def settings_of(parts: Parts, kind: type[_Settings]) -> _Settings:
    """Return the settings as the service's own record. Raises TypeError if they are of another type."""
    if not isinstance(parts.settings, kind):
        raise TypeError(f"the service has {type(parts.settings).__name__}, not {kind.__name__}")
    return parts.settings
