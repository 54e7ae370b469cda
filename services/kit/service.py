"""What a service declares. `services.kit.host` runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from services.kit.database import Database
from services.kit.job import Job
from services.kit.log import Log
from services.kit.parts import Parts
from services.kit.process_metrics import Measures, Reading
from services.kit.rules import Rules, record_decoders
from services.kit.saver import Projection
from services.kit.self_watch import SelfWatch
from services.kit.settings import ServiceSettings, field_types
from services.kit.snapshot import Snapshot
from services.kit.snapshot_store import DatabaseSaver
from services.kit.unsaved import BACKLOG_LIMIT


@dataclass(frozen=True)
class Restoration:
    """What a service needs to fill an empty database from elsewhere than the log."""

    owner: str
    settings: ServiceSettings
    database: Database
    journal: Log
    watch: SelfWatch
    snapshot: Snapshot


@dataclass(frozen=True)
class Service:
    """The parts of a service that it does not share with the others."""

    rules: Rules[Any]
    folder: str = ""
    """The folder of its migrations in `services`; empty: that of the owner's name."""
    asked_as: str = ""
    """Name in the subjects of queries that this process answers; empty: that of the owner."""
    settings: type[ServiceSettings] = ServiceSettings
    projection: Projection | None = None
    """Writes the read model beside the snapshot."""
    projected: frozenset[type] | None = None
    """Kinds of events that the projection needs; None: all."""
    clear_projection: Callable[[sa.Connection], None] | None = None
    """Clears the read model. Set only if it follows from CONTROL alone and can be rebuilt."""
    read_model_queries: Mapping[type, Callable[[sa.Connection, Any], Any]] = field(default_factory=dict)
    """One function per query that the read model answers."""
    offloaded_queries: Mapping[type, Job] = field(default_factory=dict)
    """Slow queries that need no state; each is answered in another process."""
    restore: Callable[[Restoration], Awaitable[bool]] | None = None
    """Fills a database that is empty, or is to be rebuilt, from elsewhere than the log, before that is read;
    returns whether it did."""
    background_tasks: Callable[[Parts], Awaitable[None]] | None = None
    """Coroutine run beside the runner for the life of the service: HTTP, heartbeats."""
    always_saves: bool = False
    """True if every replica has its own database (the gateway); otherwise only the leader saves."""
    backlog_limit: int = BACKLOG_LIMIT
    """Number of unsaved events allowed; small if single events are large."""
    measures: type[Measures] = Measures
    """Metrics counted beside those common to all services."""
    readings: Callable[[Any], Iterable[Reading]] | None = None
    """Prometheus readings derived from the folded state."""
    preparation: Callable[[], None] | None = None
    """What each start needs, whatever its settings are, and is kept once it is made."""

    def saver(self, database: Database, **options: Any) -> DatabaseSaver:
        """Return what saves the state. The options are those of `DatabaseSaver` that differ by process."""
        rules = self.rules
        return DatabaseSaver(
            database,
            rules.owner,
            rules.state,
            fold_version=rules.fold_version,
            projection=self.projection,
            projected=self.projected,
            clear_projection=self.clear_projection,
            rebuilt_at_start=self.restore is not None,
            backlog_limit=self.backlog_limit,
            roots=rules.roots,
            **options,
        )

    def prepare(self) -> None:
        """Make what each start needs. Whoever forks services calls this before, so that forks share it."""
        record_decoders(self.rules.state)
        field_types(self.settings)
        if self.preparation is not None:
            self.preparation()
